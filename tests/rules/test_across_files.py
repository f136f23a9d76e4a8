"""What a rule says of one file rests on what the program's other files do with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import HUSHED, HUSHED_STEP

from mslint.engine import check_source
from mslint.findings import Severity
from mslint.program.project import Program
from mslint.rules.registry import all_rules
from mslint.source.text import read

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def test_what_stands_behind_the_main_guard_of_an_imported_file_does_not_run(tmp_path: Path) -> None:
    train = (FIXTURES / "rank-blind-seed" / "bad.py").read_text(encoding="utf-8")
    (tmp_path / "train.py").write_text(f"import nets\n{train}", encoding="utf-8")
    (tmp_path / "nets.py").write_text(
        'import mindspore as ms\n\n\ndef try_it():\n    ms.set_seed(0)\n\n\nif __name__ == "__main__":\n    try_it()\n',
        encoding="utf-8",
    )
    files = [tmp_path / "nets.py", tmp_path / "train.py"]
    program = Program(files)
    rules = [rule for rule in all_rules() if rule.code == "MS302"]
    assert [len(check_source(read(file), rules, program).findings) for file in files] == [0, 1]


def test_a_seed_is_judged_by_the_start_that_draws_from_it(tmp_path: Path) -> None:
    start = """
import random
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
from mindspore.communication import init
from seeds import seed_all

def turned(picture):
    return picture{drawn}

init()
seed_all(1)
net = nn.Dense(4, 4)
data = ds.ImageFolderDataset("pictures").map(turned, "image")
ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(1, data)
"""
    (tmp_path / "plain.py").write_text(start.format(drawn=""), encoding="utf-8")
    (tmp_path / "with_noise.py").write_text(start.format(drawn=" + random.random()"), encoding="utf-8")
    seeds = (
        "import random\nimport mindspore as ms\n\ndef seed_all(seed):\n    random.seed(seed)\n    ms.set_seed(seed)\n"
    )
    (tmp_path / "seeds.py").write_text(seeds, encoding="utf-8")
    (tmp_path / "pyproject.toml").touch()
    files = [tmp_path / "plain.py", tmp_path / "seeds.py", tmp_path / "with_noise.py"]
    rules = [rule for rule in all_rules() if rule.code == "MS302"]
    found = check_source(read(tmp_path / "seeds.py"), rules, Program(files)).findings
    assert [(finding.start.row, finding.severity) for finding in found] == [(5, Severity.WARNING), (6, Severity.INFO)]


@pytest.mark.parametrize(
    "start",
    [
        "try:\n    from mindspore import set_seed as seed\nexcept ImportError:\n    from random import seed\n"
        "seed(get_rank())\n",
        "from random import seed\ndef begin():\n    from mindspore import set_seed as seed\n    seed(get_rank())\nbegin()\n",
    ],
)
def test_a_seed_counts_that_has_the_name_of_another_one_elsewhere(tmp_path: Path, start: str) -> None:
    imports = "import mindspore.dataset as ds\nfrom mindspore.communication import init, get_rank, get_group_size\n"
    built = 'train(ds.ImageFolderDataset("x", num_shards=get_group_size(), shard_id=get_rank()))\n'
    file = tmp_path / "train.py"
    file.write_text(f"{imports}init()\n{start}{built}", encoding="utf-8")
    rules = [rule for rule in all_rules() if rule.code == "MS303"]
    assert [finding.code for finding in check_source(read(file), rules, Program([file])).findings] == ["MS303"]


@pytest.mark.parametrize("importing", ["from nets", "from .."])
def test_a_package_is_trained_by_whoever_imports_it_from_inside(tmp_path: Path, importing: str) -> None:
    package = tmp_path / "nets"
    (package / "steps").mkdir(parents=True)
    (package / "__init__.py").write_text(HUSHED, encoding="utf-8")
    step = HUSHED_STEP.replace("from nets", importing)
    (package / "steps" / "train.py").write_text(step, encoding="utf-8")
    files = [package / "__init__.py", package / "steps" / "train.py"]
    rules = [rule for rule in all_rules() if rule.code == "MS103"]
    assert [len(check_source(read(file), rules, Program(files)).findings) for file in files] == [1, 0]
