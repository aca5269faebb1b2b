"""A pass as text: a table for people, JSON for programs, one line for Nagios and its kin."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from argus_sched.agent.check import Node, PassReport, Result
from argus_sched.agent.instants import about, clock_text, rfc3339
from argus_sched.agent.status import Status
from argus_sched.agent.telling.visible_text import visible
from argus_sched.agent.tree import Row, rows, verdict

WIDTH = 80
INDENT = " " * 9
COLOURS = {Status.OK: "32", Status.WARN: "33", Status.CRIT: "31;1", Status.UNKNOWN: "35"}
# Nagios reads this much of a plugin's output and cuts the rest.
NAGIOS_BYTES = 8192
_NAGIOS_WORDS = {
    Status.OK: "OK",
    Status.WARN: "WARNING",
    Status.CRIT: "CRITICAL",
    Status.UNKNOWN: "UNKNOWN",
}


def table(report: PassReport, *, width: int = WIDTH, colour: bool = False) -> str:
    """The pass as a table, worst first, with the cause under each line that is not OK."""
    lines = [f"{'STATUS':<8} {'PHASE':<14} {'AGE':>6} {'LIMIT':>6}  TARGET"]
    for row in rows(report):
        lines += _table_row(row, width, colour)
    notes = [f"note: {visible(note)}" for note in report.notes]
    return "\n".join([*lines, "", *notes, summary(report), ""])


def summary(report: PassReport) -> str:
    """The pass in one line."""
    counts = Counter(result.status for result in report.results)
    words = [f"{counts[status]} {status.name}" for status in _worst_first() if counts[status]] or [
        "no target"
    ]
    sources = [node for node in report.nodes if not node.up]
    if sources:
        words.append(f"{len(sources)} source{'s' * (len(sources) > 1)} unreadable")
    words += [text for text, missing in (("incomplete", not report.complete),) if missing]
    words += [text for text, missing in (("state not saved", not report.state_saved),) if missing]
    if report.own and report.own.refused:
        channels = ", ".join(refusal.partition(":")[0] for refusal in report.own.refused)
        words.append(f"no alert gets through {channels}")
    return f"{verdict(report).name}: {', '.join(words)}; {clock_text(report.at)}, {report.seconds:.1f} s"


def as_json(report: PassReport) -> str:
    """The pass as one JSON object; statuses are words, instants RFC 3339, lengths seconds."""
    document = {
        "status": verdict(report).name,
        "at": rfc3339(report.at),
        "seconds": round(report.seconds, 3),
        "complete": report.complete,
        "state_saved": report.state_saved,
        "refused_channels": list(report.own.refused) if report.own else [],
        "notes": list(report.notes),
        "results": [_result(result) for result in report.results],
        "sources": [_source(node) for node in report.nodes],
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def nagios(report: PassReport) -> str:
    """One line of at most 8 KiB: the worst rows, then ages as performance data while there is room."""
    wrong = [row for row in rows(report) if row.status is not Status.OK]
    text = f"ARGUS {_NAGIOS_WORDS[verdict(report)]} - {summary(report)}"
    line = _fitted(text, [f"; {row.label}: {row.phase}, {row.text}" for row in wrong], NAGIOS_BYTES // 2)
    return _fitted(_plain(line) + " |", list(_perfdata(report)), NAGIOS_BYTES - 1) + "\n"


def _worst_first() -> list[Status]:
    return sorted(Status, key=lambda status: -status.severity)


def _table_row(row: Row, width: int, colour: bool) -> Iterator[str]:
    word = f"{row.status.name:<8}"
    word = f"\x1b[{COLOURS[row.status]}m{word}\x1b[0m" if colour else word
    age, limit = _length(row.age_seconds), _length(row.limit_seconds)
    yield f"{word} {row.phase:<14} {age:>6} {limit:>6}  {visible(row.label)}"
    if row.status is not Status.OK:
        cause = "; ".join(text for text in (row.text, row.reason) if text)
        yield from textwrap.wrap(visible(cause), width, initial_indent=INDENT, subsequent_indent=INDENT)


def _length(seconds: float | None) -> str:
    return "-" if seconds is None else about(timedelta(seconds=seconds))


def _result(result: Result) -> dict[str, Any]:
    return {
        "app": result.app,
        "check": result.check,
        "target": result.target,
        "name": result.name,
        "status": result.status.name,
        "phase": result.phase.value,
        "summary": result.summary,
        "reason": result.reason,
        "last_run": rfc3339(result.last_run) if result.last_run else None,
        "age_seconds": result.age_seconds,
        "limit_seconds": result.limit_seconds,
        "deadline": rfc3339(result.deadline) if result.deadline else None,
        "blind_by": result.blind_by,
        **result.details,
    }


def _source(node: Node) -> dict[str, Any]:
    return {
        "app": node.app,
        "source": node.source,
        "parent": node.parent,
        "up": node.up,
        "problem": node.problem,
    }


def _plain(text: str) -> str:
    # Nagios knows no escape for the bar that divides text from performance data.
    return visible(text).replace("|", "/")


def _fitted(text: str, pieces: list[str], size: int) -> str:
    """`text` and as many whole `pieces` as `size` bytes hold."""
    room = size - len(text.encode(errors="replace"))
    for piece in pieces:
        room -= len(piece.encode(errors="replace"))
        if room < 0:
            break
        text += piece
    return text


def _perfdata(report: PassReport) -> Iterator[str]:
    counts = Counter(result.status for result in report.results)
    for status in _worst_first():
        yield f" {status.name.lower()}={counts[status]}"
    for result in report.results:
        if result.age_seconds is not None and result.limit_seconds is not None:
            label = _plain(result.target).replace("'", "''").replace("=", "_")
            yield f" '{label}'={result.age_seconds:.0f}s;;{result.limit_seconds:.0f};0"
