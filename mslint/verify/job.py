"""What the parent asks of a child, and the names of the files in which the child answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mslint.verify.conditions import Conditions

REPORT = "report.json"
DESCRIPTOR = "mind_ir.descriptor"


@dataclass(frozen=True)
class Timing:
    """Asks for the time that steps take instead of for what they compute."""

    steps: list[tuple[str, str | None]]
    """Name and place of the call with which each step begins."""
    rounds: int
    """How often each step is measured."""
    own_turn: str
    """A named pipe: a byte in it says that this process may make a step, an ``x`` that the other one has ended."""
    other_turn: str


@dataclass(frozen=True)
class Job:
    """One run of one script in one mode, up to its first training steps."""

    script: str
    """The script's copy in the mirror."""
    arguments: list[str]
    directory: str
    """The working directory: a folder of the mirror."""
    mode: str
    """``graph`` or ``pynative``; forced upon the script."""
    root: str
    """The root of the mirrored project: what lies below it is the user's code."""
    out: str
    """Where the answers go."""
    entry: str | None = None
    """A function to call after importing the script; without one the script is the main program."""
    replay: str | None = None
    """The ``out`` of the run whose parameters and inputs every step starts from."""
    dropout: bool = True
    """False: every dropout passes its input on."""
    sources: bool = False
    """Whether graphs are to tell the lines of the script that their nodes come from; takes a dump of each."""
    timing: Timing | None = None
    conditions: Conditions = field(default_factory=Conditions)
    memory_gb: float = 8
    """Address space that the child may use."""
    scratch: str = ""
    """The one folder tree in which the script may write."""
    protected: list[str] = field(default_factory=list)
    """Folders of the user in which nothing may be written, even where they lie in the temporary directory."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Job:
        stored = json.loads(path.read_text(encoding="utf-8"))
        timing = stored.pop("timing")
        if timing is not None:
            timing = Timing(**{**timing, "steps": [(name, location) for name, location in timing["steps"]]})
        return cls(**{**stored, "conditions": Conditions(**stored["conditions"])}, timing=timing)


def job_file(out: Path) -> Path:
    """Where a job is written down for the child that answers in ``out``."""
    return out / "job.json"


def mirror_folder(scratch: Path) -> Path:
    """Below which the copy of the project lies that a job runs in."""
    return scratch / "tree"


def rank_folder(out: Path, rank: int) -> Path:
    """Where one of several ranks answers."""
    return out / f"rank{rank}"


def state_file(out: Path, step: int) -> Path:
    """All parameters and the inputs, just before the step."""
    return out / f"step{step}.before.arrays"


def repeated_inputs_file(out: Path, step: int, repetition: int) -> Path:
    """The inputs with which a step came round before an optimizer ended it."""
    return out / f"step{step}.inputs{repetition}.arrays"


def result_file(out: Path, step: int) -> Path:
    """What the step gave: loss and other outputs, gradients, parameters."""
    return out / f"step{step}.after.arrays"


def graph_file(out: Path, step: int, number: int) -> Path:
    """A graph that ran in the step, as a serialised MindIR ``ModelProto``."""
    return out / f"step{step}.graph{number}.mindir"
