"""What stands against shards for a data set: a reason and a way out for a person, or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from codemods.base import Manual
from codemods.ranks import covers, module_at
from mslint.program.distribution import Run
from mslint.program.rehearsal.values import NONE, Function, Object, Partial, Place, Value, options
from mslint.program.unsharded import Build, UnshardedSource
from mslint.semantics.module import Module, find

_SAMPLERS = ("sampler", "batch_sampler")
_STAGES = ("PipelineCell", "Pipeline")
_HELD_OUT = re.compile(r"""["'](test|val|valid|validation|eval|evaluation|dev)["']""")
_LOOPS = (cst.For, cst.While, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)


def written(source: UnshardedSource, name: str) -> cst.Arg | None:
    """Return the argument of the call for the parameter ``name``."""
    for position, argument in enumerate(source.node.args):
        named = argument.keyword.value == name if argument.keyword is not None else None
        if named or (named is None and position == source.kind.position(name)):
            return argument
    return None


def require_shardable(home: Module, source: UnshardedSource) -> None:
    """Refuse a data set that MindSpore cannot shard, or that shards would do harm to."""
    name = source.kind.name
    for build in source.unsharded:
        if _has_stages(build.run):
            raise Manual(
                "the network runs in pipeline stages, and the stages must read the same samples: pass the number of "
                "ranks in one stage as num_shards, and the rank within its stage as shard_id"
            )
        for sampler in _SAMPLERS:
            given = build.event.argument(source.kind.position(sampler), sampler)
            if given is not None and given != NONE:
                raise Manual(
                    f"{name} has a {sampler}, and MindSpore takes either that or shards: let the sampler give each rank "
                    "its part, as ds.DistributedSampler(get_group_size(), get_rank()) does"
                )
        _require_one_purpose(home, build)
        place = build.run.rehearsal.split.get(build.event.number)
        if place is not None:
            raise Manual(
                f"it is split in row {place.row} of {place.path.name}, and MindSpore splits none that is sharded "
                "(RuntimeError): behind that, give the training part its sampler, by "
                "use_sampler(ds.DistributedSampler(get_group_size(), get_rank()))"
            )
    if name == "GeneratorDataset":
        for build in source.unsharded:
            _require_random_access(source, build)


def _has_stages(run: Run) -> bool:
    """Tell whether the run may split the network into pipeline stages."""
    if any(stages not in (None, 1) for stages in run.setting("pipeline_stages")):
        return True
    program = run.rehearsal.program
    uses = [(path, use) for path in {path for path, _ in run.rehearsal.executed} for use in program.facts(path).uses]
    lasts = {use.rpartition(".")[2] for _, use in uses}
    if "pipeline_stage" in lasts or {"AutoParallel", "pipeline"} <= lasts:
        return True
    return any(
        use.rpartition(".")[2] in _STAGES and (program.dotted_in(path, use) or "").startswith("mindspore.")
        for path, use in uses
    )


def _require_one_purpose(home: Module, build: Build) -> None:
    """Refuse a call that a loop makes for the training set and for the evaluation set, which is to stay whole."""
    run, event = build.run, build.event
    trained = run.trained_at(event)
    if trained is None:
        return
    training = [place for other in run.events if other.place == trained for place in (*other.calls, other.place)]
    for place in (*event.calls, event.place):
        module = module_at(home, place.path)
        for loop in _loops_around(module, place):
            if any(covers(module, loop, one) for one in (*training, trained)):
                continue
            # The loop is over when training starts: what it built is told apart by a name or a position.
            if _HELD_OUT.search(_goes_through(module, loop)) or event.number in run.rehearsal.evaluated:
                raise Manual(
                    f"the loop in row {module.start(loop).row} of {place.path.name} builds the evaluation set by the same "
                    "call, and that is to stay whole; build the training set in a call of its own"
                )


def _loops_around(module: Module, place: Place) -> Iterator[cst.CSTNode]:
    yield from (loop for kind in _LOOPS for loop in find(module.tree, kind) if covers(module, loop, place))


def _goes_through(module: Module, loop: cst.CSTNode) -> str:
    """Return what a loop takes its items from, as it is written."""
    if isinstance(loop, cst.While):
        return ""
    return module.code(loop.iter if isinstance(loop, cst.For) else loop.for_in.iter)  # type: ignore[attr-defined]


def _require_random_access(source: UnshardedSource, build: Build) -> None:
    """Refuse a source that MindSpore cannot shard: it wants ``__getitem__`` for that, and the length."""
    given = build.event.argument(0, "source") or NONE
    argument = written(source, "source")
    text = source.module.code(argument.value) if argument is not None else "the source"
    for option in options(given):
        missing = _missing(source.module, option, argument)
        if missing is None:
            raise Manual(
                f"what `{text}` is cannot be told, and MindSpore shards only a source with __getitem__ and __len__; if "
                "it has both pass num_shards and shard_id, else let it leave out the other ranks' samples itself"
            )
        if missing:
            raise Manual(
                f"`{text}` has no {' and no '.join(missing)}, without which MindSpore cannot shard it; let it leave out "
                "the other ranks' samples itself: take every get_group_size()-th one, from get_rank() on"
            )


def _missing(module: Module, source: Value, argument: cst.Arg | None) -> list[str] | None:
    """Return which of the methods for random access ``source`` lacks; None if that is not known."""
    if isinstance(source, (Function, Partial)):
        return ["__getitem__"]
    if isinstance(source, Object):
        names = {name for kind in source.kind.lineage() for name in kind.names}
        lacking = [name for name in ("__getitem__", "__len__") if name not in names]
        return None if lacking and any(source.kind.foreign()) else lacking
    value = argument.value if argument is not None else None
    if isinstance(value, (cst.List, cst.Tuple)):
        return []
    if isinstance(value, cst.Call) and module.resolve(value.func) is None:
        return [] if isinstance(value.func, cst.Name) and value.func.value in ("list", "tuple") else None
    return None
