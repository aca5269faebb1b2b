"""One history made ready for the judge: runs, claims, deaths and reigns by the keys the rules ask for."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from argus_sched.harness import expected, reigns
from argus_sched.harness.expected import Plan
from argus_sched.harness.history import Claimed, Died, Fault, Finished, Frozen, History, Started, to_line
from argus_sched.harness.verdict import Rules, Violation

Fire = tuple[str, int]
# Faults that keep one worker from the database, and those that keep every worker from it.
CUTS_ONE, CUTS_ALL = ("partition", "slow", "standby"), ("pooler", "restart", "crash")
# A freeze may fall between a body's last look at the trust and its first line.
LOOKED = 0.1
TOLD_IN_FULL = 50  # violations that carry the events around them; a broken run may have a hundred thousand


@dataclass(frozen=True)
class Run:
    """One execution of a body; `end` is None when it never came to its end."""

    start: Started
    end: float | None


class Case:
    """One history with its plans, indexed for the rules below; `span` is (after, until] in milliseconds."""

    def __init__(self, history: History, plans: Sequence[Plan], span: tuple[int, int], rules: Rules) -> None:
        self.history = history
        self.plans = {plan.job: plan for plan in plans}
        self.span = span
        self.rules = rules
        self._told = 0

    @cached_property
    def expected(self) -> dict[str, list[int]]:
        return {job: list(expected.due_times(plan, *self.span)) for job, plan in self.plans.items()}

    @cached_property
    def jittered(self) -> set[str]:
        """The jobs whose fires are late by rule."""
        return {job for job, plan in self.plans.items() if plan.jitter_ms}

    @cached_property
    def runs(self) -> dict[Fire, list[Run]]:
        ends: dict[tuple[str, str, int, int], deque[float]] = defaultdict(deque)
        for e in self.history.of_kind(Finished):
            ends[e.worker, e.job, e.due_ms, e.attempt].append(e.at)
        runs: dict[Fire, list[Run]] = defaultdict(list)
        for start in self.history.of_kind(Started):
            # Of two runs of one fire on one worker the first to begin is taken for the first to end.
            own = ends.get((start.worker, start.job, start.due_ms, start.attempt))
            runs[start.job, start.due_ms].append(Run(start, own.popleft() if own else None))
        return runs

    @cached_property
    def claims(self) -> dict[Fire, Claimed]:
        return {(claim.job, claim.due_ms): claim for claim in self.history.of_kind(Claimed)}

    @cached_property
    def kills(self) -> dict[str, float]:
        return {death.worker: death.at for death in self.history.of_kind(Died) if death.how == "kill"}

    @cached_property
    def deaths(self) -> dict[str, float]:
        return reigns.death_times(self.history)

    @cached_property
    def reigns(self) -> tuple[reigns.Spell, ...]:
        return reigns.reigns(self.history)

    @cached_property
    def frozen(self) -> dict[str, list[Frozen]]:
        by_worker: dict[str, list[Frozen]] = defaultdict(list)
        for freeze in self.history.of_kind(Frozen):
            by_worker[freeze.worker].append(freeze)
        return by_worker

    @cached_property
    def seconds(self) -> tuple[float, float]:
        """The judged span in seconds."""
        return self.span[0] / 1000.0, self.span[1] / 1000.0

    def killed_during(self, worker: str, since: float, until: float | None = None) -> bool:
        """Whether a fault killed `worker` at `since` or later, and not after `until`."""
        killed = self.kills.get(worker)
        return killed is not None and since <= killed and (until is None or killed <= until)

    def cut_off_during(self, worker: str, since: float, until: float) -> bool:
        """Whether a fault kept `worker` from the database at some time from `since` until `until`."""
        return any(
            fault.at <= until and since <= fault.until
            for fault in self.history.of_kind(Fault)
            if fault.name in CUTS_ALL or (fault.name in CUTS_ONE and fault.worker == worker)
        )

    def thawed(self, worker: str, at: float) -> bool:
        """Whether `worker` was frozen until a moment before `at`."""
        return any(0.0 <= at - freeze.until <= LOOKED for freeze in self.frozen[worker])

    def violation(self, rule: str, message: str, fire: Fire = ("", 0), at: float | None = None) -> Violation:
        self._told += 1
        near = (
            self.history.around(at if at is not None else fire[1] / 1000.0)
            if self._told <= TOLD_IN_FULL
            else ()
        )
        return Violation(rule, message, *fire, tuple(to_line(event).rstrip() for event in near))
