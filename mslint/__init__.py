"""A static analyser and rewriter for MindSpore training scripts."""

__version__ = "0.1.0"
