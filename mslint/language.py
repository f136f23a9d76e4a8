"""The language that people are addressed in: English, or Simplified Chinese by the catalogue mslint/data/zh.json.

Sentences of the command line and summaries of rules and codemods are in the catalogue; what rules conclude, and all that
programs read, is English.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

LANGUAGES = ("en", "zh")
_CATALOGUE = Path(__file__).parent / "data" / "zh.json"
_SIMPLIFIED = ("zh_CN", "zh_SG", "zh_Hans")
_spoken = ["en"]


def use(language: str) -> None:
    """Address people in ``language``, one of LANGUAGES, from now on."""
    _spoken[0] = language


def of_locale() -> str:
    """Return the language that the environment asks for, as POSIX says: the first variable that is set counts."""
    asked = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "")
    return "zh" if asked.partition(".")[0] == "zh" or asked.startswith(_SIMPLIFIED) else "en"


def translated(sentence: str, **values: object) -> str:
    """Return ``sentence`` in the language in use, with ``values`` in its fields."""
    known = catalogue()["sentences"] if _spoken[0] == "zh" else {}
    return known.get(sentence, sentence).format(**values)


def counted(number: int, noun: str) -> str:
    """Return ``1 finding``, ``2 findings``."""
    if _spoken[0] == "zh":
        return catalogue()["nouns"].get(noun, f"{{}} {noun}").format(number)
    return f"{number} {noun}{'' if number == 1 else 's'}"


def summary(kind: str, key: str, english: str) -> str:
    """Return the line about the rule with the code, or the codemod with the name, ``key``; ``kind`` is of the catalogue."""
    return chinese(kind, key) or english


def chinese(kind: str, key: str) -> str | None:
    """Return the entry ``key`` among ``kind``, if Chinese is spoken and there is one."""
    return catalogue()[kind].get(key) if _spoken[0] == "zh" else None


@cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """Return the Chinese for English sentences, nouns with their number, rules and codemods."""
    import json  # for those who read Chinese alone

    entries: Mapping[str, Mapping[str, str]] = json.loads(_CATALOGUE.read_text(encoding="utf-8"))
    return entries
