"""The user's working directory kept from standing in for our own modules."""

from __future__ import annotations

import os
import sys


def drop_working_directory() -> None:
    """Take the working directory out of the front of ``sys.path``.

    ``python -m mslint`` puts it first, and ``PYTHONPATH=.`` is common around training scripts: a ``codemods`` folder or
    a ``libcst.py`` there would be imported instead of ours, and a stray ``*.egg-info`` would count as a plugin. Behind
    the standard library it does no harm, and an editable install of a plugin may need it there.
    """
    try:
        cwd = os.path.realpath(os.getcwd())
    except OSError:
        return
    if cwd == os.path.dirname(os.path.dirname(os.path.realpath(__file__))):
        return  # an uninstalled checkout: ours are to be found nowhere else
    library = os.path.dirname(os.__file__)
    front = sys.path.index(library) if library in sys.path else len(sys.path)
    kept = [entry for entry in sys.path[:front] if os.path.realpath(entry) != cwd]
    sys.path[:front] = kept
