"""Which networks a program builds, freezes and trains, found by following it: see ``interpreter``.

``definitions`` finds what names mean, ``objects`` and ``methods`` what values hold, ``library`` what other
packages' functions do, ``optimizers`` what is trained, ``forward`` what the output of a network depends on.
"""
