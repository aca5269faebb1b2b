"""What one read covers, and whether it joins on."""

from __future__ import annotations

import pytest

from argus_sched.agent.logevents import Coverage, Cursor
from argus_sched.agent.reading.reach import START_UP_NS, Span, coverage, first_span, next_span

CURSOR = Cursor(50, 1)
LATE = 30 + START_UP_NS


@pytest.mark.parametrize(
    ("oldest", "whole", "cursor", "begins", "span"),
    [
        # A first read: the window, the log's own beginning, or its oldest record.
        (5, False, None, None, Span(20, gap=False)),
        (30, False, None, 25, Span(30, gap=False)),
        (30, True, None, 25, Span(25, gap=False)),
        (30, True, None, None, Span(30, gap=False)),
        (30, True, None, 5, Span(20, gap=False)),
        # A log that begins longer after its container than a start takes may have been emptied.
        (LATE, True, None, 30, Span(30, gap=False)),
        (LATE + 1, True, None, 30, Span(LATE + 1, gap=False)),
        # The cursor is covered: the read joins on, wherever the log begins.
        (50, True, CURSOR, 5, Span(50, gap=False)),
        (10, False, CURSOR, None, Span(50, gap=False)),
        # Records after the cursor are gone.
        (60, False, CURSOR, None, Span(60, gap=True)),
        (60, True, CURSOR, 55, Span(55, gap=True)),
        (None, True, CURSOR, 55, Span(55, gap=True)),
        # The log was emptied since: its container's creation says nothing of what is gone.
        (60, True, CURSOR, 5, Span(60, gap=True)),
        (None, True, CURSOR, 5, None),
        # An empty log is covered from the container's creation; of a bare file nothing is known.
        (None, True, None, 25, Span(25, gap=False)),
        (None, True, None, None, None),
        (None, False, None, 25, None),
        # A clock that was set back: a record older than the creation it belongs to.
        (24, True, None, 25, Span(24, gap=False)),
    ],
)
def test_where_the_span_of_a_read_begins(
    oldest: int | None, whole: bool, cursor: Cursor | None, begins: int | None, span: Span | None
) -> None:
    assert first_span(oldest, whole, cursor, 20, begins) == span


def test_a_further_answer_joins_on_only_when_it_overlaps() -> None:
    span = Span(10, gap=False)
    assert next_span(span, 40, 40) is span
    assert next_span(span, 40, 41) == Span(41, gap=True)
    assert next_span(None, 40, 30) == Span(30, gap=True)


def test_the_end_is_the_instant_of_asking_only_when_it_was_reached() -> None:
    span = Span(10, gap=True)
    assert coverage(span, 40, 100, reached_end=True) == Coverage(10, 100, reached_end=True, gap=True)
    assert coverage(span, 40, 100, reached_end=False) == Coverage(10, 40, reached_end=False, gap=True)
    assert coverage(span, 120, 100, reached_end=True) == Coverage(10, 120, reached_end=True, gap=True)
    assert coverage(None, 40, 100, reached_end=True) is None
