"""HTML as values: whatever is not marked as HTML is text, and is escaped."""

from __future__ import annotations

from html import escape


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: object) -> Html:
    """An element. ``class_`` is the class, underscores in names are hyphens; False and None leave an attribute out."""
    return Html(f"<{name}{''.join(_attribute(*pair) for pair in attributes.items())}>{joined(*content)}</{name}>")


def joined(*content: str) -> Html:
    """Text and HTML one after the other."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in content))


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
