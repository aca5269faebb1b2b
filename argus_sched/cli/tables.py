"""Rows as a table for people, or as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from argus_sched.cli import streams

WIDEST = 90


def show(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], output: str) -> None:
    """Print all of each row as JSON, or the named columns as a table."""
    if output == "json":
        streams.speak_utf8()
    print(as_json(rows) if output == "json" else as_table(rows, columns))


def as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """A list of objects; times in RFC 3339."""
    return json.dumps([dict(row) for row in rows], default=_text, ensure_ascii=False, indent=2)


def as_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Aligned columns under their names; a cell holds at most 90 characters, an empty column is left out."""
    used = [column for column in columns if any(row.get(column) not in (None, "") for row in rows)]
    if not used:
        return "nothing on record"
    cells = [[column.replace("_", " ") for column in used]]
    cells += [[_cell(row.get(column)) for column in used] for row in rows]
    widths = [max(len(line[place]) for line in cells) for place in range(len(used))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in cells]
    return "\n".join(line.rstrip() for line in lines)


def _cell(value: Any) -> str:
    text = " ".join(_text(value).split())
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)
