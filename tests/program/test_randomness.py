"""What the numbers drawn in a program are for."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from mslint.program.project import Program
from mslint.program.randomness import Purpose, randomness_of

CASES = {
    "a lambda given to the pipeline": (
        """
        import numpy as np
        import mindspore.dataset as ds

        def open_set(folder):
            data = ds.ImageFolderDataset(folder)
            return data.map(
                lambda picture: (
                    picture,
                    np.random.normal(size=(8,)),  # <- here
                ),
                "image",
            )
        """,
        Purpose.SAMPLE,
    ),
    "a function given to a pipeline without a name": (
        """
        import random
        import mindspore.dataset as ds

        def noisy(picture):
            return picture + random.random()  # <- here

        data = ds.ImageFolderDataset("pictures").shuffle(8).map(operations=[noisy], input_columns="image").batch(8)
        """,
        Purpose.SAMPLE,
    ),
    "what a loop over batches calls": (
        """
        import numpy as np

        class Trainer:
            def train(self, data):
                batches = data.create_tuple_iterator()
                for picture, label in batches:
                    self.step(picture, label)

            def step(self, picture, label):
                return self.network(picture, np.random.randn(8), label)  # <- here
        """,
        Purpose.SAMPLE,
    ),
    "beside a loop over batches": (
        """
        import numpy as np

        def train(data, network):
            fixed = np.random.randn(8)  # <- here
            for batch in data.create_dict_iterator():
                network(batch, fixed)
        """,
        Purpose.OTHER,
    ),
    "in a sampler": (
        """
        import numpy as np
        import mindspore.dataset as ds

        class Rows(ds.Sampler):
            def __iter__(self):
                for _ in range(self.rows):
                    yield self.row()

            def row(self):
                return np.random.randint(0, self.rows)  # <- here
        """,
        Purpose.ORDER,
    ),
    "by the constructor of a source that is made where the data set is": (
        """
        import numpy as np
        import mindspore.dataset as ds

        class Rows:
            def __init__(self):
                self.rows = np.random.rand(8, 4)  # <- here

            def __getitem__(self, index):
                return self.rows[index]

        data = ds.GeneratorDataset(Rows(), ["x"])
        """,
        Purpose.OTHER,
    ),
    "in a generator": (
        """
        import numpy as np

        def samples(rows):
            for row in rows:
                yield row + np.random.randn(8)  # <- here
        """,
        Purpose.SAMPLE,
    ),
}


@pytest.mark.parametrize(("text", "purpose"), CASES.values(), ids=CASES)
def test_what_a_number_is_drawn_for(text: str, purpose: Purpose, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(dedent(text), encoding="utf-8")
    (tmp_path / "pyproject.toml").touch()
    row = next(row for row, line in enumerate(dedent(text).splitlines(), 1) if "# <- here" in line)
    draws = randomness_of(Program([path]).call_graph(path)).draws
    assert [(draw.row, draw.purpose) for draw in draws] == [(row, purpose)]


def test_a_file_of_a_package_that_is_called_like_a_module_of_python_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "__init__.py").touch()
    path = folder / "random.py"
    path.write_text("import random\n\n\ndef seed_all(seed):\n    random.seed(seed)\n", encoding="utf-8")
    assert list(randomness_of(Program([path]).call_graph(path)).seeds_in(path)) == [5]
