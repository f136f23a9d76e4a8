"""What a child process does: it runs the script of a job up to its first training steps."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import sys
import time
import traceback
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import mindspore
from mindspore import communication

from mslint.verify.child import graphs, packages, sources, standins, surplus, world
from mslint.verify.child.fakedata import FakeData
from mslint.verify.child.guard import forbid_writes, lead_writes_aside
from mslint.verify.child.probe import Probe
from mslint.verify.child.replacing import prepare_replacing
from mslint.verify.child.report import Report
from mslint.verify.child.timing import Stopwatch
from mslint.verify.job import DESCRIPTOR, Job, rank_folder

_PR_SET_PDEATHSIG = 1


def prepare() -> None:
    """Do what every run would have to do first; a fork of this process has it done."""
    prepare_replacing()
    # What is there by now need not be looked through any more when garbage is collected: that takes 0.08 s each time.
    gc.collect()
    gc.freeze()


def run(job: Job) -> NoReturn:
    """Run the script; never returns: threads of data sets and kernels must not delay or spoil the end."""
    limit = int(job.memory_gb * 2**30)
    # Beyond what the system can count there is no limit.
    resource.setrlimit(resource.RLIMIT_AS, (limit if limit < sys.maxsize else resource.RLIM_INFINITY,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(job.directory)
    if job.mode == "pynative":
        os.environ["MS_JIT"] = "0"
    conditions = job.conditions
    out = Path(job.out)
    replay = Path(job.replay) if job.replay else None
    if conditions.launch:
        end_with_the_parent()
        if os.environ["MS_ROLE"] == "MS_SCHED":
            _schedule()
        rank = int(os.environ["RANK_ID"])
        out, replay = rank_folder(out, rank), replay and rank_folder(replay, rank)
        out.mkdir()
    if job.sources:
        sources.install(out / "dumps", job.root)
    report = Report(out)

    def end(how: str) -> NoReturn:
        report.data["end"] = how
        report.save()
        sys.stdout.flush()
        sys.stderr.flush()
        while conditions.launch:
            # The other ranks may still have to hear from this one.
            time.sleep(60)
        os._exit(0)

    (out / DESCRIPTOR).write_bytes(graphs.descriptor())
    report.data["mindspore"] = mindspore.__version__
    report.data["native_mode"] = "pynative"
    standins.install(job.mode, report)
    world.install(report, conditions.ranks, conditions.launch)
    surplus.install(report)
    packages.install(report)
    FakeData(report, conditions.fake_data, conditions.inputs).install()
    if not job.dropout:
        standins.drop_dropout(report)
    probe = None
    if job.timing is None:
        probe = Probe(
            report,
            out,
            replay,
            job.root,
            lambda: end("trained"),
            numbers=conditions.runs_steps,
            own_state=conditions.launch,
        )
        probe.install()
    else:
        Stopwatch(report, job.root, job.timing, lambda: end("trained")).install()
    if not conditions.launch:
        # Ranks that are not seeded alike are what launching them is to show.
        mindspore.set_seed(1)
    report.save()
    sys.dont_write_bytecode = True
    lead_writes_aside(
        job.scratch, job.protected, lambda path: report.stand_in(f"writing {path}: led to a temporary folder")
    )
    forbid_writes(job.scratch, job.protected, lambda path: report.stand_in(f"writing {path}: refused"))
    how = "ended"
    try:
        _run(job)
    except SystemExit as error:
        if error.code not in (None, 0):
            how = f"exited with {error.code}"
    except BaseException as error:
        traceback.print_exc()
        how = _described(error, job.root)
    if probe is not None:
        probe.close()
    end(how)


def end_with_the_parent() -> None:
    """Ask the kernel to kill this process when its parent ends: msrun or the fork server, whose session it is not in."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _schedule() -> NoReturn:
    """Be the scheduler, by which ranks find each other; it never runs the script."""
    mindspore.set_device("CPU")
    communication.init()
    os._exit(0)


def _run(job: Job) -> None:
    """Execute the script under a name by which graph parsing can import the module that holds its functions."""
    sys.argv = [job.script, *job.arguments]
    sys.path[0] = os.path.dirname(job.script)
    name = "__main__" if job.entry is None else Path(job.script).stem
    module = ModuleType(name)
    module.__file__ = job.script
    module.__loader__ = SourceFileLoader(name, job.script)
    module.__dict__["__builtins__"] = __builtins__
    sys.modules[name] = module
    exec(compile(Path(job.script).read_bytes(), job.script, "exec"), module.__dict__)
    if job.entry is not None:
        getattr(module, job.entry)()


def _described(error: BaseException, root: str) -> str:
    # MindSpore appends its C++ and graph call stacks behind lines of dashes.
    message = " ".join(str(error).split("\n----")[0].split())[:300]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(root + os.sep)]
    place = f" ({os.path.relpath(frames[-1].filename, root)}:{frames[-1].lineno})" if frames else ""
    return f"raised {type(error).__name__}: {message}{place}"
