"""Stands in for data sets whose files are missing: those of MindSpore, and the user's own classes that read files."""

from __future__ import annotations

import builtins
import glob
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

import mindspore.dataset as dataset
from mindspore.dataset.engine.datasets import SourceDataset

from mslint.verify.child import rows
from mslint.verify.child.place import of_a_library
from mslint.verify.child.report import Report
from mslint.verify.conditions import Input, parse_input

# Enough for a few batches of any usual size; they are drawn as they are read.
_ROWS = 1024
_BATCHES = 16
_PATHS = ("dataset_dir", "dataset_file", "dataset_files")
# What a pipeline does to the rows of a source: batches that the user describes are what comes out of all of it.
_PASSED = (
    "add_sampler", "apply", "batch", "bucket_batch_by_length", "filter", "flat_map", "map", "padded_batch", "project",
    "rename", "repeat", "shuffle", "skip", "take", "use_sampler",
)  # fmt: skip
_SHARES = ("num_samples", "shuffle", "sampler", "num_shards", "shard_id")
_HOW_TO_DESCRIBE = "--input NAME=TYPE[SHAPE], once for each column of its batches, stands in for it"


class _Batches(dataset.GeneratorDataset):  # type: ignore[misc]
    """Batches as the user describes them; whatever the script makes of the data set, these come out."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        """Nothing: where it stands for a GeneratorDataset, Python hands it that one's arguments once more."""

    @classmethod
    def of(cls, inputs: list[Input], names: list[str]) -> _Batches:
        made = object.__new__(cls)
        source = _Drawn(lambda number: rows.batch(inputs, names, number), _BATCHES)
        dataset.GeneratorDataset.__init__(made, source, names, shuffle=False)
        return made

    def split(self, sizes: Sequence[Any], randomize: bool = True) -> list[Any]:
        return [self] * len(sizes)


def _passing(self: Any, *_arguments: Any, **_options: Any) -> Any:
    return self


for _name in _PASSED:
    setattr(_Batches, _name, _passing)


class _Drawn:
    """A source with random access."""

    def __init__(self, draw: Callable[[int], tuple[Any, ...]], length: int) -> None:
        self._draw = draw
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        if number >= self._length:
            raise IndexError(number)
        return self._draw(int(number))


class FakeData:
    """Puts rows or batches in the place of missing data sets, if the user wants that; else notes what would."""

    def __init__(self, report: Report, fake: bool, inputs: Sequence[str]) -> None:
        self._report = report
        self._fake = fake
        self._inputs = [parse_input(text) for text in inputs]

    def install(self) -> None:
        """Put the hooks in place; before the script is run."""
        for name in dir(dataset):
            kind = getattr(dataset, name)
            if inspect.isclass(kind) and issubclass(kind, SourceDataset):
                signature = inspect.signature(kind.__init__)
                if any(path in signature.parameters for path in _PATHS):
                    self._hook_files(kind, signature)
        self._hook_generators()
        self._hook_classes()

    # -- data sets of MindSpore ----------------------------------------------------------------------------------------

    def _hook_files(self, kind: Any, signature: inspect.Signature) -> None:
        # Copies are made without arguments.
        def create(cls: Any, *arguments: Any, **options: Any) -> Any:
            if arguments or options:
                try:
                    bound = signature.bind(None, *arguments, **options).arguments
                except TypeError:
                    # Creating it will say what is wrong.
                    return object.__new__(cls)
                path = bound.get(next(name for name in _PATHS if name in signature.parameters))
                if _missing(path):
                    substitute = self._substitute(cls.__name__, path, bound)
                    if substitute is not None:
                        return substitute
            return object.__new__(cls)

        kind.__new__ = create

    def _substitute(self, kind: str, path: Any, options: dict[str, Any]) -> Any:
        what = f"{kind}({path!r})"
        if self._inputs:
            columns = options.get("columns_list") or options.get("column_names") or ()
            return self._batches(what, list(columns))
        row = rows.documented_row(kind, options)
        if row is None:
            self._lack(f"{what} is missing and only its files tell its columns: {_HOW_TO_DESCRIBE}")
            return None
        if not self._fake:
            self._lack(f"{what} is missing: --fake-data stands in for it")
            return None
        first = row(0)
        columns = list(first)
        described = ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in first.items())
        self._report.stand_in(f"{what}: missing, random rows stand in ({described})")
        return dataset.GeneratorDataset(
            _Drawn(lambda number: tuple(row(number).values()), _ROWS),
            columns,
            **{name: options[name] for name in _SHARES if options.get(name) is not None},
        )

    def _batches(self, what: str, columns: list[str]) -> _Batches:
        names = self._names(columns)
        described = ", ".join(
            f"{name} {one.dtype}{list(one.shape)}" for name, one in zip(names, self._inputs, strict=True)
        )
        self._report.stand_in(f"{what}: missing, random batches stand in for it and its pipeline ({described})")
        return _Batches.of(self._inputs, names)

    def _names(self, columns: list[str]) -> list[str]:
        known = (
            columns if len(columns) == len(self._inputs) else [f"input{place}" for place in range(len(self._inputs))]
        )
        return [one.name or name for one, name in zip(self._inputs, known, strict=True)]

    # -- classes of the user -------------------------------------------------------------------------------------------

    def _hook_generators(self) -> None:
        kind = dataset.GeneratorDataset

        def create(cls: Any, source: Any = None, column_names: Any = None, *_arguments: Any, **_options: Any) -> Any:
            if cls is kind and source is not None and not isinstance(source, _Drawn):
                broken = "mslint_broken" in vars(type(source)) if not inspect.isclass(source) else False
                empty = self._inputs and not broken and _length(source) == 0
                if broken or empty:
                    columns = [column_names] if isinstance(column_names, str) else list(column_names or ())
                    return self._batches(f"GeneratorDataset({type(source).__name__})", columns)
            return object.__new__(cls)

        kind.__new__ = create

    def _hook_classes(self) -> None:
        """Every class of the user that can be a source of data is created even if it finds no files."""
        build = builtins.__build_class__

        def followed(function: Any, name: str, *bases: Any, **options: Any) -> Any:
            made = build(function, name, *bases, **options)
            if not of_a_library(function.__code__.co_filename) and _is_source(made):
                self._follow_creation(made)
            return made

        vars(builtins)["__build_class__"] = followed

    def _follow_creation(self, kind: Any) -> None:
        initialise = kind.__init__

        @wraps(initialise)
        def hooked(instance: Any, *arguments: Any, **options: Any) -> None:
            try:
                initialise(instance, *arguments, **options)
            except (OSError, ImportError) as error:
                if not self._inputs:
                    self._lack(f"{kind.__name__} does not find its data ({error}): {_HOW_TO_DESCRIBE}")
                    raise
                self._report.stand_in(
                    f"{kind.__name__}: it does not find its data ({error}), random batches stand in for it"
                )
                instance.__class__ = _broken(type(instance), self._inputs, self._names([]))

        kind.__init__ = hooked

    def _lack(self, what: str) -> None:
        if what not in self._report.data["lacks"]:
            self._report.data["lacks"].append(what)


def _broken(kind: Any, inputs: list[Input], names: list[str]) -> Any:
    """A subclass whose instances give random batches."""
    drawn = _Drawn(lambda number: rows.batch(inputs, names, number), _BATCHES)

    def iterate(_self: Any) -> Iterator[Any]:
        return iter(drawn)

    return type(
        kind.__name__,
        (kind,),
        {
            "mslint_broken": True,
            "__module__": kind.__module__,
            "__len__": lambda _self: _BATCHES,
            "__getitem__": lambda _self, number: drawn[number],
            "__iter__": iterate,
        },
    )


def _is_source(kind: Any) -> bool:
    """Whether instances can be read by number or one after the other, and are no containers by birth."""
    if not inspect.isclass(kind) or "__init__" not in vars(kind):
        return False
    if issubclass(kind, (dict, list, tuple, set, str, BaseException)):
        return False
    return hasattr(kind, "__getitem__") or hasattr(kind, "__iter__")


def _length(source: Any) -> int | None:
    try:
        return len(source)
    except Exception:
        return None


def _missing(path: Any) -> bool:
    """Whether there is no file where the data set should be, or nobody said where: an environment variable is not set."""
    if path is None:
        return True
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path) if isinstance(path, (list, tuple)) else []
    return bool(paths) and not any(map(_holds_files, paths))


def _holds_files(path: Any) -> bool:
    path = os.fspath(path)
    if os.path.isdir(path):
        return any(files for _, _, files in os.walk(path))
    return os.path.exists(path) or bool(glob.glob(path))
