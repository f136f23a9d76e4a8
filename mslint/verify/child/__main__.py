"""Run as a file with the path of a job: one of the ranks that msrun starts."""

from __future__ import annotations

import sys
from pathlib import Path

# Run as a file, python puts this folder first in the search path (unless told to be safe): nothing is looked for here.
if sys.path[0] == str(Path(__file__).parent):
    del sys.path[0]
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from mslint.verify.child import script
from mslint.verify.job import Job

script.prepare()
script.run(Job.read(Path(sys.argv[1])))
