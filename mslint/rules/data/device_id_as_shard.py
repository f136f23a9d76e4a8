"""MS305."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from mslint.findings import Finding, Related, Severity
from mslint.program.datasets import dataset_class
from mslint.program.distribution import Run
from mslint.program.facts import dotted as dotted_name
from mslint.program.rehearsal.follow import Event
from mslint.program.rehearsal.values import DEVICE_ID, NONE, Constant, Symbol, Value, options
from mslint.rules.base import Rule
from mslint.rules.data.screens import ambiguous_names, building, passes
from mslint.rules.data.sharding import Site, built, dataset_sites, related, route, runs_of, sampler_sites, where
from mslint.semantics.flow import origins
from mslint.semantics.module import Module, dotted

_ENVIRONMENT = ("DEVICE_ID", "ASCEND_DEVICE_ID", "LOCAL_RANK")
_SAMPLER_POSITION = 1


class DeviceIdAsShard(Rule):
    """The shard of a data set is chosen by the device id instead of the rank.

    What it does
        Reports a data set, or a ``DistributedSampler``, whose ``shard_id`` is the number of the device in its host: the
        environment's ``DEVICE_ID`` (or ``LOCAL_RANK``), ``get_context("device_id")`` or ``get_local_rank()``, through
        variables, helper functions and other files, where the number of shards is that of all ranks. That a variable is
        called ``device_id`` proves nothing: where it holds ``get_rank()`` it is left alone.

    Why it matters
        Device ids start anew on each host. On one host with all its devices in use they equal the ranks, and all is well.
        On two hosts of eight devices the shards 0 to 7 are read twice and the shards 8 to 15 never: half of the data is
        missing and no message says so. A job on the devices 4 to 7 of a host asks for shards that do not exist.

    Evidence
        Measured on MindSpore 2.10.0, CPU, by ``python fixtures/device-id-as-shard/bad.py``, which plays the ranks of two
        hosts with two devices each, one after the other, over 16 samples: with the device id for a shard 8 samples are
        read twice and 8 never, with the rank (fixed.py) each is read once. ``num_shards=2, shard_id=2`` is a ValueError.

    Example
        .. code-block:: python

            images = ds.ImageFolderDataset(path, num_shards=int(os.getenv("RANK_SIZE")), shard_id=int(os.getenv("DEVICE_ID")))

    Use instead
        .. code-block:: python

            images = ds.ImageFolderDataset(path, num_shards=get_group_size(), shard_id=get_rank())

    Fix safety
        There is no automatic fix yet: which expression holds the rank differs from program to program.

    References
        https://www.mindspore.cn/docs/en/master/api_python/mindspore.communication.html
    """

    code = "MS305"
    name = "device-id-as-shard"
    severity = Severity.ERROR
    summary = "The shard of a data set is the device id, which starts anew on each host, instead of the rank"
    triggers = (b"shard_id", b"DistributedSampler")
    INVALID = (
        """
        import os

        import mindspore.dataset as ds
        from mindspore.communication import init

        init()
        size = int(os.getenv("RANK_SIZE"))
        device = int(os.environ["DEVICE_ID"])
        images = ds.ImageFolderDataset("train", num_shards=size, shard_id=device)  # <- MS305
        """,
        # Through a helper and a parameter; a sampler.
        """
        import os

        import mindspore.dataset as ds
        from mindspore.communication.management import get_group_size, init

        def own_number():
            return int(os.getenv("DEVICE_ID", "0"))

        def images(size, number):
            order = ds.DistributedSampler(size, number)  # <- MS305
            return ds.ImageFolderDataset("train", sampler=order)

        if __name__ == "__main__":
            init()
            images(get_group_size(), own_number())
        """,
        # Nothing is known to run this.
        """
        import mindspore as ms
        import mindspore.dataset as ds

        def images(size):
            device = ms.get_context("device_id")
            return ds.ImageFolderDataset("train", num_shards=size, shard_id=device)  # <- MS305
        """,
    )
    VALID = (
        # The name says device, the value is the rank.
        """
        import os

        import mindspore as ms
        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init

        init()
        device_id = get_rank()
        ms.set_context(device_id=int(os.getenv("DEVICE_ID")))
        ds.ImageFolderDataset("train", num_shards=get_group_size(), shard_id=device_id)
        ds.ImageFolderDataset("train", num_shards=int(os.getenv("RANK_SIZE")), shard_id=int(os.getenv("RANK_ID")))
        """,
        # Not known, and a shard of one.
        """
        import os

        import mindspore.dataset as ds

        def images(options):
            device_id = int(os.getenv("DEVICE_ID", "0"))
            ds.ImageFolderDataset("train", num_shards=1, shard_id=device_id)
            return ds.ImageFolderDataset("train", num_shards=options.device_num, shard_id=options.device_id)
        """,
        # The device id on one device, the rank on several.
        """
        import os

        import mindspore.dataset as ds
        from mindspore.communication import get_group_size, get_rank, init
        from settings import options

        if options.parallel:
            init()
            number, size = get_rank(), get_group_size()
        else:
            number, size = int(os.getenv("DEVICE_ID", "0")), None
        ds.ImageFolderDataset("train", num_shards=size, shard_id=number)
        """,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not any(_may_be_local(module, call) for call in _sharding(module)):  # which is known without the file's tree
            return
        for site in (*dataset_sites(module), *sampler_sites(module)):
            at, number = _positions(site.name)
            written = _written(site.node, at, "shard_id")
            if written is None:
                continue
            events = [(run, event) for run in runs_of(module) for event in built(run, site)]
            found = next((pair for pair in events if _is_local(pair[1], at, number)), None)
            if found is not None:
                yield self._finding(module, site, *found)
            elif not events and _comes_from_device(module, written) and not _is_one(site.node, number):
                yield self._finding(module, site, None, None)

    def _finding(self, module: Module, site: Site, run: Run | None, event: Event | None) -> Finding:
        message = "shard_id is the device id, which starts anew on each host: "
        places: tuple[Related, ...] = ()
        if run is not None and event is not None and run.init is not None:
            message = (
                f"shard_id is the device id in the run of init() at {where(run.init.place, module)}, not the rank: "
            )
            places = (*route(event), related(run.init.place, "makes the run distributed"))
        message += "on several hosts some shards are read more than once and others never; pass get_rank()"
        start, end = module.start(site.node), module.end(site.node)
        return self.finding(module, start, end, message, related=places)


def _positions(name: str) -> tuple[int, int]:
    """Return the positions of ``shard_id`` and ``num_shards`` in the class ``name``."""
    kind = dataset_class(name)
    return (kind.position("shard_id"), kind.position("num_shards")) if kind else (_SAMPLER_POSITION, 0)


def _sharding(module: Module) -> Iterator[ast.Call]:
    """Yield the calls of the file that may build a data set, or a sampler, for one shard."""
    tree = module.program.tree(module.source.path) or ast.Module([], [])
    # What a name means in one place does not tell what it means in another.
    ambiguous = ambiguous_names(tree)
    for call in building(tree):
        name = dotted_name(call.func)
        if name and passes(call, "shard_id", _SAMPLER_POSITION):
            is_clear = name.partition(".")[0] not in ambiguous
            meant = module.program.dotted_in(module.source.path, name) if is_clear else None
            if meant is None or meant.startswith("mindspore.dataset."):
                yield call


def _may_be_local(module: Module, call: ast.Call) -> bool:
    """Tell whether the device id chooses the shard of ``call`` in a run; where none comes by, the file itself is to tell."""
    path = module.source.path.absolute()
    events = [event for run in runs_of(module) for event in run.at(path, call.lineno, call.col_offset)]
    return not events or any(_is_local(event, *_positions(event.name.rpartition(".")[2])) for event in events)


def _is_local(event: Event, position: int, number: int) -> bool:
    shards = event.argument(number, "num_shards")
    if shards is None or all(option in (NONE, Constant(1)) for option in options(shards)):
        return False
    return _is_device_id(event.argument(position, "shard_id") or NONE)


def _is_device_id(value: Value) -> bool:
    return any(
        option is DEVICE_ID or (isinstance(option, Symbol) and option.local and not option.parallel)
        for option in options(value)
    )


def _written(call: cst.Call, position: int, name: str) -> cst.BaseExpression | None:
    for index, argument in enumerate(call.args):
        if argument.star:
            return None
        if argument.keyword.value == name if argument.keyword else index == position:
            return argument.value
    return None


def _is_one(call: cst.Call, position: int) -> bool:
    shards = _written(call, position, "num_shards")
    return isinstance(shards, cst.Integer) and shards.evaluated_value == 1


def _comes_from_device(module: Module, node: cst.BaseExpression) -> bool:
    """Tell whether ``node`` is computed from a device id, as far as the file itself shows."""
    return any(
        isinstance(origin.node, (cst.Call, cst.Subscript)) and _reads_device(origin.module, origin.node)
        for origin in origins(module, node, callers=True)
    )


def _reads_device(module: Module, node: cst.Call | cst.Subscript) -> bool:
    if isinstance(node, cst.Subscript):
        name, texts = dotted(node.value), [item.slice.value for item in node.slice if isinstance(item.slice, cst.Index)]
    else:
        resolved = module.resolve(node.func)
        if resolved == "mindspore.communication.get_local_rank":
            return True
        name, texts = resolved or dotted(node.func), [argument.value for argument in node.args[:1]]
    wanted = {
        "os.getenv": _ENVIRONMENT,
        "os.environ": _ENVIRONMENT,
        "os.environ.get": _ENVIRONMENT,
        "mindspore.get_context": ("device_id",),
    }.get(name or "", ())
    return any(isinstance(text, cst.SimpleString) and text.evaluated_value in wanted for text in texts)
