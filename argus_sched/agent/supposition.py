"""A pass at another instant, from what one pass read: what would be graded when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from argus_sched.agent.check import Result
from argus_sched.agent.instants import clock_text, rfc3339
from argus_sched.agent.judging.coverage import Span
from argus_sched.agent.judging.evidence import Evidence, Track, known_until
from argus_sched.agent.kinds.scheduler_jobs import LogLook, judge_log
from argus_sched.agent.reading.stamps import nanoseconds
from argus_sched.agent.telling.visible_text import visible

Grades = dict[datetime, tuple[Result, ...]]


def grades(looks: Iterable[LogLook], instants: Iterable[datetime]) -> Grades:
    """The results at each instant, in the order given: before the read by what was written until then, after
    it as if nothing more were written."""
    looks = list(looks)
    return {
        at: tuple(result for look in looks for result in judge_log(at_instant(look, at))[0])
        for at in instants
    }


def at_instant(look: LogLook, at: datetime) -> LogLook:
    """`look` as a pass at `at` would have it."""
    at_host = at + look.sight.clock_ahead
    evidence = known_until(look.evidence, nanoseconds(at_host))
    return replace(
        look, evidence=_read_until(evidence, at_host), sight=replace(look.sight, watermark=at_host)
    )


def table(found: Grades) -> str:
    """A line for each target, a column for each instant, and when it would be CRIT without a further run."""
    heads = ["TARGET", *map(clock_text, found), "CRIT AFTER"]
    rows = [heads, *([visible(word) for word in row] for row in _rows(found))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = ("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def as_document(found: Grades) -> list[dict[str, Any]]:
    """The same as JSON-ready values."""
    return [
        {"at": rfc3339(at), "results": [_plain(result) for result in results]}
        for at, results in found.items()
    ]


def _read_until(evidence: Evidence, at: datetime) -> Evidence:
    """`evidence` of logs that were read to their end at `at`."""
    return replace(
        evidence, containers={key: _prolonged(track, at) for key, track in evidence.containers.items()}
    )


def _prolonged(track: Track, at: datetime) -> Track:
    if not track.spans:
        return track
    last = track.spans[-1]
    return replace(track, spans=(*track.spans[:-1], Span(last.from_ns, max(last.to_ns, nanoseconds(at)))))


def _rows(found: Grades) -> Iterable[list[str]]:
    columns = list(found.values())
    for target in dict.fromkeys(result.target for results in columns for result in results):
        cells = [next((one for one in results if one.target == target), None) for results in columns]
        deadline = next((cell.deadline for cell in cells if cell and cell.deadline), None)
        words = [f"{cell.status.name} {cell.phase.value}" if cell else "-" for cell in cells]
        yield [target, *words, clock_text(deadline) if deadline else "-"]


def _plain(result: Result) -> dict[str, Any]:
    return {
        "target": result.target,
        "name": result.name,
        "status": result.status.name,
        "phase": result.phase.value,
        "summary": result.summary,
        "reason": result.reason,
        "age_seconds": result.age_seconds,
        "deadline": rfc3339(result.deadline) if result.deadline else None,
    }
