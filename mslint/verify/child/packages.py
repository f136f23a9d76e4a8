"""Lets a script import packages that are not installed: what they are asked for beyond that decides how it goes on."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from mindspore.train.callback import Callback

from mslint.verify.child.place import of_a_library
from mslint.verify.child.report import Report

# They show, log or move files: whatever they are asked for may be left undone.
_SILENT = {
    "IPython", "download", "loguru", "matplotlib", "mindinsight", "moxing", "mpl_toolkits", "prettytable", "seaborn",
    "tabulate", "tensorboardX", "termcolor", "visualdl", "wandb",
}  # fmt: skip
# Modules of earlier versions whose content lies elsewhere now.
_MOVED = {
    f"mindspore.dataset.{package}.{language}_transforms": f"mindspore.dataset.{package}"
    for package in ("vision", "transforms")
    for language in ("c", "py")
}
_CATCHING = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def install(report: Report) -> None:
    """From now on the user's code finds a placeholder where it imports a package that is missing."""
    sys.meta_path.append(_Finder(report))


class _Finder(MetaPathFinder, Loader):
    def __init__(self, report: Report) -> None:
        self._report = report

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in _MOVED:
            return ModuleSpec(name, self)
        package = name.partition(".")[0]
        if isinstance(sys.modules.get(package), _Package):
            return ModuleSpec(name, self, is_package=True)
        if package != name or not self._asked_for_by_the_user(name):
            return None
        return ModuleSpec(name, self, is_package=True)

    def _asked_for_by_the_user(self, name: str) -> bool:
        """Whether code of the user imports it, and has no other plan if it is missing."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and (frame.f_code.co_filename == __file__ or "importlib" in frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None or of_a_library(frame.f_code.co_filename):
            return False
        if _lies_near(name, Path(frame.f_code.co_filename)):
            # The user's own, but not in the search path: the name of a folder such as src tells nobody that.
            return False
        return not any(first <= frame.f_lineno <= last for first, last in _guarded(frame.f_code.co_filename))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.name in _MOVED:
            self._report.stand_in(f"{spec.name}: MindSpore has it no more, {_MOVED[spec.name]} stands in")
            moved = ModuleType(spec.name)
            vars(moved).update(
                {key: value for key, value in vars(import_module(_MOVED[spec.name])).items() if key[:2] != "__"}
            )
            return moved
        package = spec.name.partition(".")[0]
        if package == spec.name:
            what = "it is left undone" if package in _SILENT else "using it fails"
            if package in _REAL:
                what = "a small one of mslint's stands in"
            self._report.stand_in(f"package {package} is not installed: importing it passes, {what}")
        module = _Package(spec.name)
        vars(module).update(_REAL.get(spec.name, {}))
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Package(ModuleType):
    """A module that has every attribute."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Member(f"{self.__name__}.{name}", self.__name__.partition(".")[0] in _SILENT)


class _Member:
    """Something of a missing package; a class may derive from it."""

    def __init__(self, path: str, silent: bool) -> None:
        self._path = path
        self._silent = silent

    def __getattr__(self, name: str) -> _Member:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Member(f"{self._path}.{name}", self._silent)

    def __call__(self, *_arguments: Any, **_options: Any) -> _Member:
        # How a library behaves (threads, warnings, styles) does not matter while nothing else of it is used.
        if self._silent or self._path.rpartition(".")[2].startswith("set"):
            return _Member(f"{self._path}()", self._silent)
        raise ModuleNotFoundError(
            f"{self._path}: the package {self._path.partition('.')[0]} is not installed",
            name=self._path.partition(".")[0],
        )

    def __mro_entries__(self, _bases: Any) -> tuple[type, ...]:
        return ()

    def __enter__(self) -> _Member:
        return self()

    def __exit__(self, *_error: Any) -> None:
        pass

    def __iter__(self) -> Iterator[_Member]:
        # Two are what most calls that give several things give: figure and axes.
        return iter((self(), self()))

    def __getitem__(self, _key: Any) -> _Member:
        return self()

    def __setitem__(self, _key: Any, _value: Any) -> None:
        self()


def _lies_near(name: str, file: Path) -> bool:
    """Whether a folder above the file is called that, or holds something that is."""
    return any(
        folder.name == name or (folder / name).is_dir() or (folder / f"{name}.py").is_file() for folder in file.parents
    )


@cache
def _guarded(filename: str) -> list[tuple[int, int]]:
    """The lines of a file where a failing import is caught."""
    try:
        tree = ast.parse(Path(filename).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    return [
        (node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and any(map(_catches_imports, node.handlers))
    ]


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(one, ast.Name) and one.id in _CATCHING for one in caught)


class _Progress:
    """tqdm: passes on what it is given."""

    def __init__(self, iterable: Any = (), *_arguments: Any, **_options: Any) -> None:
        self.iterable = iterable
        self.n = 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def __len__(self) -> int:
        return len(self.iterable)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_error: Any) -> None:
        pass

    def __getattr__(self, _name: str) -> Any:
        return lambda *_arguments, **_options: None

    @staticmethod
    def write(text: str, *_arguments: Any, **_options: Any) -> None:
        print(text)


class _EasyDict(dict):  # type: ignore[type-arg]
    """easydict: a dict whose keys are attributes, as are those of the dicts in it."""

    def __init__(self, given: Any = None, **more: Any) -> None:
        super().__init__()
        for key, value in {**(given or {}), **more}.items():
            self[key] = value

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, dict) and not isinstance(value, _EasyDict):
            value = _EasyDict(value)
        elif isinstance(value, (list, tuple)):
            value = type(value)(_EasyDict(one) if isinstance(one, dict) else one for one in value)
        super().__setitem__(key, value)

    __setattr__ = __setitem__

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def _as_it_is(*arguments: Any, **_options: Any) -> Any:
    """numba: functions stay what they are, with or without arguments to the decorator."""
    if len(arguments) == 1 and callable(arguments[0]):
        return arguments[0]
    return lambda function: function


def _no_callback(*_arguments: Any, **_options: Any) -> Callback:
    """mindvision: what it prints or saves is left undone."""
    return Callback()


_REAL: dict[str, dict[str, Any]] = {
    "mindvision.engine.callback": {"LossMonitor": _no_callback, "ValAccMonitor": _no_callback},
    "tqdm": {"tqdm": _Progress, "trange": lambda *sizes, **_options: _Progress(range(*sizes))},
    "easydict": {"EasyDict": _EasyDict},
    "numba": {"jit": _as_it_is, "njit": _as_it_is, "prange": range},
}
