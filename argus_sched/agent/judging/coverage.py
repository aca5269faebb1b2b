"""Which parts of one container's log were read: spans without a break, and the holes between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from argus_sched.agent.logevents import Coverage

SPANS_KEPT = 16


class Span(NamedTuple):
    """An unbroken stretch of a log that was read, or of one that was not; nanoseconds since the epoch."""

    from_ns: int
    to_ns: int


def extend(spans: tuple[Span, ...], coverage: Coverage) -> tuple[Span, ...]:
    """`spans` with one more read, oldest first, the newest SPANS_KEPT of them.

    A read without `gap` went on where the last one stopped, so it joins on even when the first record it met
    was written later; after a gap a new span begins, unless the two overlap.
    """
    new = Span(coverage.from_ns, max(coverage.from_ns, coverage.to_ns))
    if spans and not coverage.gap:
        new = Span(min(new.from_ns, spans[-1].to_ns), new.to_ns)
    return merged([*spans, new])[-SPANS_KEPT:]


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same stretches, in order, those that touch made one."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.from_ns <= found[-1].to_ns:
            found[-1] = Span(found[-1].from_ns, max(found[-1].to_ns, span.to_ns))
        else:
            found.append(span)
    return tuple(found)


def holes(spans: tuple[Span, ...], since_ns: int, until_ns: int) -> Iterator[Span]:
    """The stretches of [since, until] that no read covered, oldest first."""
    edges = [Span(since_ns, since_ns), *spans, Span(until_ns, until_ns)]
    for before, after in pairwise(edges):
        begin, end = max(before.to_ns, since_ns), min(after.from_ns, until_ns)
        if begin < end:
            yield Span(begin, end)
