"""How far one read of a log reached, and whether it joins on to what was read before."""

from __future__ import annotations

from dataclasses import dataclass

from argus_sched.agent.logevents import Coverage, Cursor


@dataclass(frozen=True, slots=True)
class Span:
    """The unbroken stretch a read is in: where it begins, and whether records before it are lost."""

    from_ns: int
    gap: bool


def first_span(
    oldest_ns: int | None, whole_log: bool, cursor: Cursor | None, horizon_ns: int, begins_ns: int | None
) -> Span | None:
    """The span of a read whose oldest record is `oldest_ns`; None when nothing at all is known.

    `whole_log` says that the log holds nothing older. Then the span begins where the log itself does:
    `begins_ns`, known for a container whose log never rotated. A cursor older than everything that is left
    means that records in between are lost.
    """
    if cursor is not None and oldest_ns is not None and oldest_ns <= cursor.stamp_ns:
        return Span(cursor.stamp_ns, gap=False)
    begins = begins_ns if whole_log and begins_ns is not None else oldest_ns
    if begins is None:
        return None
    if oldest_ns is not None:
        begins = min(begins, oldest_ns)
    return Span(max(begins, horizon_ns) if cursor is None else begins, gap=cursor is not None)


def next_span(span: Span | None, delivered_ns: int, oldest_ns: int) -> Span:
    """The span after another answer, which begins at `oldest_ns`; records up to `delivered_ns` were had."""
    if span is not None and oldest_ns <= delivered_ns:
        return span
    return Span(oldest_ns, gap=True)


def coverage(span: Span | None, newest_ns: int, asked_ns: int, reached_end: bool) -> Coverage | None:
    """What is covered: up to the instant of asking when the end was reached, else to the newest record."""
    if span is None:
        return None
    to_ns = max(asked_ns, newest_ns) if reached_end else newest_ns
    return Coverage(span.from_ns, max(to_ns, span.from_ns), reached_end, span.gap)
