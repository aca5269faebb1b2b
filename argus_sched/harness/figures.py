"""How long it took: demotion, promotion and lateness per fault."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from argus_sched.harness.history import Belief, Fault, Frozen, History, Started
from argus_sched.harness.reigns import LEADER, Spell


@dataclass(frozen=True)
class Percentiles:
    """Milliseconds by nearest rank, so each is a value that was measured; None when nothing was."""

    count: int = 0
    p50: float | None = None
    p99: float | None = None
    max: float | None = None

    @classmethod
    def of(cls, values: Iterable[float]) -> Percentiles:
        """The percentiles of some milliseconds."""
        ordered = sorted(values)
        if not ordered:
            return cls()
        return cls(len(ordered), _rank(ordered, 0.5), _rank(ordered, 0.99), round(ordered[-1], 3))

    def as_json(self) -> dict[str, float | None]:
        return {"p50": self.p50, "p99": self.p99, "max": self.max}


@dataclass(frozen=True)
class FaultFigures:
    """What one kind of fault cost over all its repetitions in a run."""

    count: int
    demotion_ms: Percentiles
    promotion_ms: Percentiles
    lateness_ms: Percentiles


@dataclass(frozen=True)
class Bound:
    """The longest demotion and promotion that a profile promises for one fault, in milliseconds."""

    demotion_ms: float | None = None
    promotion_ms: float | None = None


@dataclass(frozen=True)
class Sample:
    """One fault and what it cost; None where it cost nothing or was not aimed at the leader."""

    fault: Fault
    demotion_ms: float | None = None
    promotion_ms: float | None = None
    lateness_ms: tuple[float, ...] = field(default=())


def samples(
    history: History, spells: Sequence[Spell], end: float, late_by_rule: Container[str] = ()
) -> tuple[Sample, ...]:
    """What each fault cost, looking no further than the next fault's beginning or `end`.

    The jobs in `late_by_rule` have a jitter, so their lateness tells nothing and is left out.
    """
    faults = history.of_kind(Fault)
    horizons = [*(fault.at for fault in faults[1:]), end][: len(faults)]
    starts = [start for start in history.of_kind(Started) if start.job not in late_by_rule]
    dues = sorted((start.due_ms / 1000.0, start.at) for start in starts)
    return tuple(
        Sample(
            fault,
            _demotion(history, spells, fault, max(horizon, fault.until)) if fault.leading else None,
            _promotion(spells, fault, max(horizon, fault.until)) if fault.leading else None,
            _lateness(dues, fault, max(horizon, fault.until)),
        )
        for fault, horizon in zip(faults, horizons, strict=True)
    )


def by_fault(measured: Iterable[Sample]) -> dict[str, FaultFigures]:
    """The samples of each kind of fault as percentiles."""
    groups: dict[str, list[Sample]] = defaultdict(list)
    for sample in measured:
        groups[sample.fault.name].append(sample)
    return {
        name: FaultFigures(
            len(group),
            Percentiles.of(sample.demotion_ms for sample in group if sample.demotion_ms is not None),
            Percentiles.of(sample.promotion_ms for sample in group if sample.promotion_ms is not None),
            Percentiles.of(late for sample in group for late in sample.lateness_ms),
        )
        for name, group in sorted(groups.items())
    }


def slow(figures: Mapping[str, FaultFigures], bounds: Mapping[str, Bound]) -> tuple[str, ...]:
    """One sentence for each bound that was missed."""
    missed = []
    for name, measured in figures.items():
        bound = bounds.get(name, Bound())
        for what, values, limit in (
            ("demotion", measured.demotion_ms, bound.demotion_ms),
            ("promotion", measured.promotion_ms, bound.promotion_ms),
        ):
            if limit is not None and values.max is not None and values.max > limit:
                missed.append(f"{name}: {what} took up to {values.max:.0f} ms, bound {limit:.0f} ms")
    return tuple(missed)


def _demotion(history: History, spells: Sequence[Spell], fault: Fault, horizon: float) -> float | None:
    """Milliseconds until the worker it hit stopped acting as leader; a frozen one's count from its thaw."""
    if fault.name in {"kill", "pair", "fork"}:
        return None
    thaw = next(
        (f.until for f in history.of_kind(Frozen) if f.worker == fault.worker and f.at >= fault.at), None
    )
    if thaw is not None and fault.name == "freeze":
        return _first_other_belief(history, fault.worker, thaw, horizon)
    for spell in spells:
        if spell.worker == fault.worker and spell.start <= fault.at < spell.end:
            return (spell.end - fault.at) * 1000.0 if spell.end < horizon else None
    return None


def _first_other_belief(history: History, worker: str, since: float, horizon: float) -> float | None:
    for belief in history.of_kind(Belief):
        if belief.worker == worker and since <= belief.at <= horizon and belief.role != LEADER:
            return (belief.at - since) * 1000.0
    return None


def _promotion(spells: Sequence[Spell], fault: Fault, horizon: float) -> float | None:
    """Milliseconds until the next term began; None when the leader stayed."""
    before = max((spell.epoch for spell in spells if spell.start < fault.at), default=0)
    for spell in spells:
        if spell.epoch > before and fault.at <= spell.start <= horizon:
            return max(0.0, (spell.start - _awaited_from(spells, fault)) * 1000.0)
    return None


def _awaited_from(spells: Sequence[Spell], fault: Fault) -> float:
    """When the next leader could come: at a clean stop once the old one let go, else when the fault says."""
    if fault.name not in ("stop", "rolling"):
        return fault.promote_from
    return max((spell.end for spell in spells if spell.worker == fault.worker), default=fault.promote_from)


def _lateness(dues: Sequence[tuple[float, float]], fault: Fault, horizon: float) -> tuple[float, ...]:
    """How late each fire was whose due time fell into the fault or the second after it, in milliseconds."""
    left = bisect_left(dues, (fault.at, 0.0))
    right = bisect_right(dues, (min(fault.until + 1.0, horizon), float("inf")))
    return tuple(max(0.0, (at - due) * 1000.0) for due, at in dues[left:right])


def _rank(ordered: Sequence[float], share: float) -> float:
    return round(ordered[max(0, ceil(share * len(ordered)) - 1)], 3)
