"""One job before the judge: what the pack promises, what the evidence holds, what this pass could see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from argus_sched.agent.check import Node
from argus_sched.agent.instants import parse_rfc3339
from argus_sched.agent.judging.evidence import Evidence, Facts
from argus_sched.agent.judging.lateness import Due, next_due
from argus_sched.agent.logevents import Container, EventKind
from argus_sched.agent.packs import JobSpec
from argus_sched.agent.reading.stamps import instant, nanoseconds

# How long before its due time a run may begin: clocks are set, and timers round.
EARLY = timedelta(seconds=5)


@dataclass(frozen=True)
class Sight:
    """What one pass could see of an application's log, beside the evidence.

    `watermark` is the instant up to which every container's log is known. `containers` are those that exist,
    `unread` is a node that could not be read to its end, and `blind` is True when none could be read at all.
    `future_ns` is the newest stamp later than the clock allows; such lines are set aside. `watched` holds all
    names and ids of the pack. All instants are in the time of the host that stamps the log, whose clock is
    `clock_ahead` of the agent's.
    """

    watermark: datetime
    containers: tuple[Container, ...] = ()
    unread: Node | None = None
    blind: bool = False
    future_ns: int | None = None
    watched: frozenset[str] = frozenset()
    clock_ahead: timedelta = timedelta(0)


@dataclass(frozen=True)
class JobCase:
    """One job with all that bears on it."""

    spec: JobSpec
    evidence: Evidence
    sight: Sight

    @cached_property
    def facts(self) -> Facts:
        """What lines under the job's name or its id say."""
        return self.evidence.facts(self.spec.name, self.spec.id)

    @property
    def now(self) -> datetime:
        """The instant at which the job is judged."""
        return self.sight.watermark

    @property
    def ran_ns(self) -> int:
        """The stamp of the last run; 0 when none is known."""
        run = self.facts.last_run
        return run.stamp_ns if run else 0

    @cached_property
    def last_run(self) -> datetime | None:
        """When the last known run began."""
        return instant(self.ran_ns) if self.ran_ns else None

    @cached_property
    def due(self) -> Due | None:
        """What must follow the last run; one that came a moment early ran for the due time it names."""
        run = self.facts.last_run
        if run is None:
            return None
        began = instant(run.stamp_ns)
        fire = parse_rfc3339(run.fire) if run.fire else began
        return next_due(self.spec, fire if began < fire <= began + EARLY else began)

    @property
    def age(self) -> timedelta | None:
        """How old the last run is; a line may be a moment younger than the watermark, which is no age."""
        return max(timedelta(0), self.now - self.last_run) if self.last_run else None

    @cached_property
    def starts(self) -> list[datetime]:
        """The known starts of the scheduler: a container's, or a line that says so."""
        starts = [container.started_at for container in self.sight.containers]
        starts += [instant(mark.stamp_ns) for mark in self.evidence.scheduler.of(EventKind.SCHEDULER_STARTED)]
        return [start for start in starts if start and start <= self.now]

    @property
    def start(self) -> datetime | None:
        """The newest of `starts`."""
        return max(self.starts, default=None)

    @property
    def first_sight(self) -> datetime:
        """When the job was first judged with a readable log; now, when this is the first time."""
        return self.evidence.first_sight.get(self.spec.name, self.now)

    @property
    def now_ns(self) -> int:
        """`now` in nanoseconds since the epoch."""
        return nanoseconds(self.now)
