"""Write dataset_classes.json: the data set classes of MindSpore and their parameters in order.

usage: python mslint/data/make_dataset_classes.py  (needs MindSpore)
"""

from __future__ import annotations

import inspect
import json
from importlib import import_module
from pathlib import Path


def table() -> dict[str, object]:
    """Read the table off the installed MindSpore."""
    datasets = import_module("mindspore.dataset")
    classes = {
        name: list(inspect.signature(value).parameters)
        for name, value in sorted(vars(datasets).items())
        if name.endswith("Dataset") and inspect.isclass(value)
    }
    return {"mindspore": import_module("mindspore").__version__, "classes": classes}


if __name__ == "__main__":
    text = json.dumps(table(), indent=1)
    Path(__file__).with_name("dataset_classes.json").write_text(f"{text}\n", encoding="utf-8")
