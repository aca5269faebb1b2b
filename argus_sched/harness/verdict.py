"""What the judge answers: the verdict, its violations, and the rules it judged by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from argus_sched.harness import figures


@dataclass(frozen=True)
class Rules:
    """What the run's settings promise; seconds, except in `bounds`.

    `two_leaders` and `two_services` are the longest spells of two that count as normal: a promotion may
    overtake a demotion by milliseconds, which is why claims carry the safety. `leaderless` is the longest
    spell without a leader while the database answers; None where nobody leads by design. `off_jitter` is how
    long after its computed jitter a fire may start while nothing is wrong, which is `quiet_after` a fault.
    `thawed` is how long a leader-only service may run on after its worker was thawed, which must be given the
    processor before it can know; longer than `two_services` it counts as slow.
    `in_flight` is how long after its sender was killed a claim may still be carried out by the database.
    """

    catch_up_window: float = 600.0
    early: float = 0.02
    two_leaders: float = 1.0
    two_services: float = 0.1
    leaderless: float | None = None
    off_jitter: float = 0.5
    quiet_after: float = 5.0
    in_flight: float = 1.0
    thawed: float = 1.0
    bounds: Mapping[str, figures.Bound] = field(default_factory=dict)


@dataclass(frozen=True)
class Violation:
    """One broken invariant: which, in a sentence, and the events around it as lines of a history."""

    rule: str
    message: str
    job: str = ""
    due_ms: int = 0
    around: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        due = iso(self.due_ms) if self.due_ms else None
        return {
            "rule": self.rule,
            "message": self.message,
            "job": self.job or None,
            "due": due,
            "around": list(self.around),
        }


@dataclass(frozen=True)
class Verdict:
    """What the judge says of one run. `held` is correctness alone; `slow` are missed bounds."""

    seed: int
    expected: int
    lost: int
    doubled: int
    interrupted: int
    beyond_window: int
    max_holders: int
    leaderless_seconds: float
    two_leader_seconds: float
    unfenced_writes: int
    lateness_ms: figures.Percentiles
    faults: Mapping[str, figures.FaultFigures]
    slow: tuple[str, ...]
    violations: tuple[Violation, ...]
    agent: Mapping[str, object] | None = None

    @property
    def held(self) -> bool:
        """True when no invariant was broken."""
        return not self.violations

    def as_json(self) -> dict[str, Any]:
        """The verdict as JSON-ready values; milliseconds and seconds as the names say."""
        return {
            "held": self.held,
            "seed": self.seed,
            "dues": {
                "expected": self.expected,
                "lost": self.lost,
                "doubled": self.doubled,
                "interrupted": self.interrupted,
                "beyond_window": self.beyond_window,
            },
            "max_holders": self.max_holders,
            "leaderless_seconds": round(self.leaderless_seconds, 3),
            "two_leader_seconds": round(self.two_leader_seconds, 3),
            "unfenced_writes": self.unfenced_writes,
            "lateness_ms": self.lateness_ms.as_json(),
            "faults": {
                name: {
                    "count": one.count,
                    "demotion_ms": one.demotion_ms.as_json(),
                    "promotion_ms": one.promotion_ms.as_json(),
                    "lateness_ms": one.lateness_ms.as_json(),
                }
                for name, one in self.faults.items()
            },
            "slow": list(self.slow),
            "violations": [violation.as_json() for violation in self.violations],
            **({"agent": self.agent} if self.agent is not None else {}),
        }


def iso(due_ms: int) -> str:
    """An instant in UTC with milliseconds."""
    return (
        datetime.fromtimestamp(due_ms / 1000.0, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
