"""A verification as one HTML file that loads nothing else and is whole without JavaScript."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from string import Template

from mslint.console import shown_path
from mslint.findings import Verdict
from mslint.report.drawing import drawings, summary_of
from mslint.report.markup import Html, element, joined
from mslint.report.units import difference, of_bytes, of_time
from mslint.verify import (
    Comparison,
    Counts,
    GraphNode,
    ModeResult,
    Rewrite,
    StepResult,
    StepTime,
    Verification,
)
from mslint.verify.compare import ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE
from mslint.verify.mindir import KINDS
