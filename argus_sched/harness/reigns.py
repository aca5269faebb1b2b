"""Who led when: spans of time out of beliefs, deaths and freezes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from argus_sched.harness.history import Belief, Died, Frozen, History, Service

LEADER = "leader"


@dataclass(frozen=True)
class Spell:
    """`worker` led (or ran its service) from `start` to `end`, in the term numbered `epoch`."""

    worker: str
    epoch: int
    start: float
    end: float


def reigns(history: History) -> tuple[Spell, ...]:
    """Every spell in which a worker could act as leader.

    It ends with the worker's next belief, its death, its trust or a freeze, whichever comes first: a dead or
    frozen process believes nothing, and one whose trust ran out does not act although it says "leader".
    """
    by_worker: dict[str, list[Belief]] = defaultdict(list)
    for belief in history.of_kind(Belief):
        by_worker[belief.worker].append(belief)
    deaths, freezes = death_times(history), history.of_kind(Frozen)
    spells = []
    for worker, beliefs in by_worker.items():
        last = deaths.get(worker, inf)
        frozen = [(freeze.at, freeze.until) for freeze in freezes if freeze.worker == worker]
        for start, end, epoch in _believed(beliefs, last):
            spells += [Spell(worker, epoch, left, right) for left, right in without(start, end, frozen)]
    return tuple(sorted(_joined(spells), key=lambda spell: spell.start))


def services(history: History) -> tuple[Spell, ...]:
    """Every spell in which a worker's leader-only service ran, cut as in `reigns`."""
    deaths, freezes = death_times(history), history.of_kind(Frozen)
    running: dict[str, float] = {}
    spells = []
    ends = [*history.of_kind(Service), *(Service(at, worker, False) for worker, at in deaths.items())]
    for event in sorted(ends, key=lambda event: event.at):
        start = running.pop(event.worker, None)
        if start is not None:
            frozen = [(freeze.at, freeze.until) for freeze in freezes if freeze.worker == event.worker]
            spells += [Spell(event.worker, 0, *piece) for piece in without(start, event.at, frozen)]
        if event.running:
            running[event.worker] = event.at
    spells += [Spell(worker, 0, start, inf) for worker, start in running.items()]
    return tuple(sorted(spells, key=lambda spell: spell.start))


def death_times(history: History) -> dict[str, float]:
    """When each dead worker died."""
    return {death.worker: death.at for death in history.of_kind(Died)}


def spans_with(spells: Iterable[Spell], count: range, start: float, end: float) -> list[tuple[float, float]]:
    """The spans of [start, end] in which the number of running spells lies in `count`."""
    changes = [(max(spell.start, start), 1) for spell in spells if spell.start < end and spell.end > start]
    changes += [(min(spell.end, end), -1) for spell in spells if spell.start < end and spell.end > start]
    spans: list[tuple[float, float]] = []
    running, since = 0, start
    for at, step in [*sorted(changes), (end, 0)]:
        if running in count and at > since:
            spans.append((since, at))
        running, since = running + step, max(since, at)
    return _merged(spans)


def seconds(spans: Sequence[tuple[float, float]]) -> float:
    """The total length of `spans`."""
    return sum(right - left for left, right in spans)


def without(start: float, end: float, holes: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """[start, end] less `holes`."""
    pieces, cursor = [], start
    for left, right in sorted(holes):
        if left < end and right > cursor:
            if left > cursor:
                pieces.append((cursor, left))
            cursor = right
    if cursor < end:
        pieces.append((cursor, end))
    return pieces


def _believed(beliefs: Sequence[Belief], last: float) -> Iterable[tuple[float, float, int]]:
    following = [belief.at for belief in beliefs[1:]] + [inf]
    for belief, until in zip(beliefs, following, strict=True):
        trust = inf if belief.trusted_until is None else belief.trusted_until
        end = min(until, last, trust)
        if belief.role == LEADER and end > belief.at:
            yield belief.at, end, belief.epoch


def _joined(spells: Sequence[Spell]) -> Iterable[Spell]:
    """Spells of one worker and term that touch, as one."""
    joined: dict[tuple[str, int], list[Spell]] = defaultdict(list)
    for spell in sorted(spells, key=lambda spell: spell.start):
        chain = joined[spell.worker, spell.epoch]
        if chain and spell.start <= chain[-1].end:
            chain[-1] = Spell(spell.worker, spell.epoch, chain[-1].start, max(spell.end, chain[-1].end))
        else:
            chain.append(spell)
    return [spell for chain in joined.values() for spell in chain]


def _merged(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for left, right in spans:
        if merged and left <= merged[-1][1]:
            merged[-1] = (merged[-1][0], right)
        else:
            merged.append((left, right))
    return merged
