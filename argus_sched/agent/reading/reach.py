"""How far one read of a log reached, and whether it joins on to what was read before."""

from __future__ import annotations

from dataclasses import dataclass

from argus_sched.agent.logevents import Coverage, Cursor
from argus_sched.agent.reading.stamps import SECOND_NS

# Within this time of its creation a container that logs at all has logged: so much silence before the oldest
# record is believed. A longer one may be a log that was emptied, as by `truncate` or an outside logrotate.
START_UP_NS = 120 * SECOND_NS

# A stamp that is no further ahead than this may come of rounding.
AHEAD_NS = 2 * SECOND_NS
# How much is read once more from before such a stamp; what was had already counts once.
OVERLAP_NS = 600 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Span:
    """The unbroken stretch a read is in: where it begins, and whether records before it are lost."""

    from_ns: int
    gap: bool


def within(cursor: Cursor | None, now_ns: int) -> Cursor | None:
    """`cursor`, unless it stands in the future of its host: then one shortly before the host's now.

    The host's clock was set back, or one line carries a stamp far ahead. What is written after it has earlier
    stamps than some that were read; it would pass for old.
    """
    if cursor is None or cursor.stamp_ns <= now_ns + AHEAD_NS:
        return cursor
    return Cursor(now_ns - OVERLAP_NS, 0)


def first_span(
    oldest_ns: int | None, whole_log: bool, cursor: Cursor | None, horizon_ns: int, begins_ns: int | None
) -> Span | None:
    """The span of a read whose oldest record is `oldest_ns`; None when nothing at all is known.

    `whole_log` says that the log holds nothing older, `begins_ns` when its container was created, where
    rotation drops nothing. An absence must be proven: the span begins at the oldest record, and at the
    creation only when that is at most START_UP_NS older, or when the log is empty and was never otherwise. A
    cursor older than everything that is left means that records in between are lost, so nothing is known of
    the time before the oldest one.
    """
    if cursor is not None and oldest_ns is not None and oldest_ns <= cursor.stamp_ns:
        return Span(cursor.stamp_ns, gap=False)
    begins = oldest_ns
    if whole_log and begins_ns is not None and _is_from_creation(oldest_ns, cursor, begins_ns):
        begins = begins_ns if oldest_ns is None else min(begins_ns, oldest_ns)
    if begins is None:
        return None
    return Span(max(begins, horizon_ns) if cursor is None else begins, gap=cursor is not None)


def _is_from_creation(oldest_ns: int | None, cursor: Cursor | None, begins_ns: int) -> bool:
    """Whether a log whose oldest record is `oldest_ns` holds everything since `begins_ns`."""
    if cursor is not None and cursor.stamp_ns >= begins_ns:
        return False  # what the cursor stood at is gone
    return oldest_ns is None or oldest_ns - begins_ns <= START_UP_NS


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
