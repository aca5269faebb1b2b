"""Long lists as array literals: dumping 20,000 claims element by element takes a third of claiming them."""

from __future__ import annotations

from collections.abc import Iterable


def quoted_array(values: Iterable[str | None]) -> str:
    """The literal of a text (or timestamp) array; None stands for NULL."""
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def plain_array(values: Iterable[int]) -> str:
    """The literal of an integer or boolean array."""
    return "{" + ",".join([str(value) for value in values]) + "}"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
