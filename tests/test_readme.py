"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from test_fixtures_rewritten import mslint
from test_fixtures_train import require_mindspore

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_session_shown_is_the_session_that_runs() -> None:
    require_mindspore()
    sessions = re.findall(r"```console\n\$ mslint ([^\n]*)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert sessions
    for command, shown in sessions:
        assert mslint(*shlex.split(command)).stdout.rstrip() == shown.rstrip()
