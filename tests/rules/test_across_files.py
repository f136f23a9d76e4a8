"""What a rule says of one file rests on what the program's other files do with it."""

from __future__ import annotations

from pathlib import Path

from mslint.engine import check_source
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
