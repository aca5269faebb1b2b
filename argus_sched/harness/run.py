"""One run from beginning to end: start workers, do the faults, wait for what is still due, judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from argus_sched.harness import arena, expected, faults, invariants, scenario
from argus_sched.harness.expected import Plan
from argus_sched.harness.faults import Ground
from argus_sched.harness.history import Claimed
from argus_sched.harness.profiles import profile
from argus_sched.harness.report import Record
from argus_sched.harness.scenario import Step
from argus_sched.harness.settings import RunSettings, plans
from argus_sched.postgres.witness import OPEN

Tell = Callable[[str], None]
START_WITHIN, STOP_WITHIN = 90.0, 30.0


def run(settings: RunSettings, folder: Path, tell: Tell) -> Record:
    """Carry out one run in `folder`; `tell` gets one line for each thing that happens.

    Raises SettingsError for what cannot be run here, SourceError when the cluster never came up.
    """
    promise, jobs = profile(settings.profile), plans(settings.jobs)
    steps = scenario.draw(settings.faults, settings.seed, settings.duration, promise)
    with arena.set_up(settings, folder) as ground:
        after = begin(ground, jobs, tell)
        _do(ground, steps, tell)
        _idle(ground, after + settings.duration)
        until = time.time()
        span = round(after * 1000), round(until * 1000)
        drain(ground, jobs, span, tell)
        ground.cluster.stop(STOP_WITHIN)
        history = ground.cluster.history(claims(ground))
    verdict = invariants.judge(history, jobs, span, promise.rules(elects=settings.elects), settings.seed)
    return Record(settings, jobs, span, history, verdict)


def begin(ground: Ground, jobs: Sequence[Plan], tell: Tell) -> float:
    """Start the workers; the instant from which on every due time counts: each job has run once."""
    cluster = ground.cluster
    tell(f"starting {sum(slot.size for slot in cluster.slots.values())} workers and {len(jobs)} jobs")
    cluster.start()
    cluster.wait_until(cluster.complete, START_WITHIN, "not every worker came up, or none leads")
    names = {plan.job for plan in jobs}
    cluster.wait_until(lambda: cluster.jobs_seen() >= names, START_WITHIN, "not every job ran once")
    leader = cluster.in_role("leader")
    tell(f"{leader.name if leader else 'nobody'} leads, every job has run")
    return time.time()


def _do(ground: Ground, steps: Sequence[Step], tell: Tell) -> None:
    began = time.monotonic()
    for number, step in enumerate(steps, 1):
        ground.cluster.rest(began + step.at - time.monotonic())
        ground.cluster.wait_until(ground.cluster.complete, START_WITHIN, "the cluster did not recover")
        tell(f"[{number}/{len(steps)}] {scenario.FAULTS[step.fault]} {step.text}".rstrip())
        faults.INJECT[step.fault](ground, step)
    if steps:
        ground.cluster.rest(ground.profile.takeover)


def _idle(ground: Ground, until: float) -> None:
    ground.cluster.rest(until - time.time())


def drain(ground: Ground, jobs: Sequence[Plan], span: tuple[int, int], tell: Tell) -> None:
    """Wait until every due time of the span ran or has its answer on record, within a bound."""
    due = {(plan.job, at) for plan in jobs for at in expected.due_times(plan, *span)}
    patience = time.monotonic() + 6 * ground.profile.silence + ground.profile.probe + 10.0
    tell(f"{len(due)} due times, waiting for the last")
    while time.monotonic() < patience:
        ground.cluster.rest(0.2)
        if not (due - ground.cluster.finished()) - _answered(ground):
            return


def _answered(ground: Ground) -> set[tuple[str, int]]:
    rows = ground.witness.ledger(ground.cluster.settings.namespace)
    return {(row.job, row.due_ms) for row in rows if row.outcome not in OPEN}


def claims(ground: Ground) -> Iterable[Claimed]:
    """The scheduler's ledger, with the harness's names of the workers."""
    names = {born.instance: born.worker for born in ground.cluster.births()}
    for row in ground.witness.ledger(ground.cluster.settings.namespace):
        outcome = "" if row.outcome in OPEN else row.outcome
        worker = names.get(row.instance, row.instance)
        yield Claimed(row.claimed_at, worker, row.job, row.due_ms, outcome, row.attempt)
