"""One run from beginning to end: start workers, do the faults, wait for what is still due, judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from argus_sched.harness import arena, expected, faults, invariants, scenario
from argus_sched.harness.agent_verdict import AgentRules, AgentVerdict, judge_agent
from argus_sched.harness.expected import Plan
from argus_sched.harness.faults import Ground
from argus_sched.harness.history import Claimed
from argus_sched.harness.profiles import profile
from argus_sched.harness.report import Record
from argus_sched.harness.scenario import Step
from argus_sched.harness.settings import RunSettings, plans
from argus_sched.harness.verdict import Verdict
from argus_sched.postgres.witness import OPEN

Tell = Callable[[str], None]
START_WITHIN, STOP_WITHIN = 90.0, 30.0
# After the limit of a stopped job: the time for its message, and to see that there is no second one.
AGENT_PATIENCE = 15.0


def run(settings: RunSettings, folder: Path, tell: Tell) -> Record:
    """Carry out one run in `folder`; `tell` gets one line for each thing that happens.

    Raises SettingsError for what cannot be run here, SourceError when the cluster never came up.
    """
    promise, jobs = profile(settings.profile), plans(settings.jobs)
    steps = scenario.draw(settings.faults, settings.seed, settings.duration, promise)
    with arena.set_up(settings, folder) as ground:
        after = begin(ground, jobs, tell)
        _do(ground, steps, settings.duration, tell)
        _idle(ground, after + settings.duration)
        until = time.time()
        span = round(after * 1000), round(until * 1000)
        drain(ground, jobs, span, tell)
        if settings.agent:
            _forget_a_job(ground, jobs, tell)
        end = time.time()
        ground.cluster.stop(STOP_WITHIN)
        history = ground.cluster.history(claims(ground, jobs, span))
    verdict = invariants.judge(history, jobs, span, promise.rules(elects=settings.elects), settings.seed)
    if settings.agent:
        verdict = _with_agent(verdict, judge_agent(history, jobs, AgentRules(arena.APP, promise.grace), end))
    return Record(settings, jobs, span, history, verdict, _notes(verdict))


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


def _do(ground: Ground, steps: Sequence[Step], seconds: float, tell: Tell) -> None:
    """Do the steps, each with its pause before it; once every fault was done, none after `seconds`."""
    deadline, named = time.monotonic() + seconds, len({step.fault for step in steps})
    for number, (pause, step) in enumerate(zip(scenario.pauses(steps), steps, strict=True), 1):
        ground.cluster.rest(pause)
        if number > named and time.monotonic() > deadline:
            break
        ground.cluster.wait_until(ground.cluster.complete, START_WITHIN, "the cluster did not recover")
        tell(f"[{number}/{len(steps)}] {scenario.FAULTS[step.fault]} {step.text}".rstrip())
        faults.INJECT[step.fault](ground, step)
    if steps:
        ground.cluster.rest(ground.profile.takeover)


def _idle(ground: Ground, until: float) -> None:
    ground.cluster.rest(until - time.time())


def _forget_a_job(ground: Ground, jobs: Sequence[Plan], tell: Tell) -> None:
    """Deploy a version without one job, and give the agent the time to say so."""
    tell(f"a new version without {jobs[0].job} is deployed: the agent must notice")
    replace(ground.cluster.settings, plans=tuple(jobs[1:])).write(ground.cluster.folder)
    faults.deploy(ground)
    ground.cluster.rest(jobs[0].period_seconds + ground.profile.grace + AGENT_PATIENCE)


def _notes(verdict: Verdict) -> tuple[str, ...]:
    agent = verdict.agent
    if agent is None:
        return ()
    told = f"told {agent['told_after_seconds']} s after the job's limit"
    return (f"The agent made {agent['passes']} passes beside it; real stops: {agent['stops']}, {told}.",)


def _with_agent(verdict: Verdict, agent: AgentVerdict) -> Verdict:
    return replace(verdict, violations=verdict.violations + agent.violations, agent=agent.as_json())


def drain(ground: Ground, jobs: Sequence[Plan], span: tuple[int, int], tell: Tell) -> None:
    """Wait until every due time of the span ran or has its answer on record, within a bound."""
    missing = {(plan.job, at) for plan in jobs for at in expected.due_times(plan, *span)}
    tell(f"{len(missing)} due times, waiting for the last")
    missing -= ground.cluster.finished()
    patience = time.monotonic() + 6 * ground.profile.silence + ground.profile.probe + 10.0
    while missing and time.monotonic() < patience:
        ground.cluster.rest(0.2)
        missing -= ground.cluster.finished()
        missing -= _answered(ground, missing)


def _answered(ground: Ground, fires: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
    rows = ground.witness.ledger(ground.cluster.settings.namespace, fires)
    return {(row.job, row.due_ms) for row in rows if row.outcome not in OPEN}


def claims(ground: Ground, jobs: Sequence[Plan], span: tuple[int, int]) -> Iterable[Claimed]:
    """What the scheduler's ledger says of the fires that did not simply run, with our names of workers."""
    due = {(plan.job, at) for plan in jobs for at in expected.due_times(plan, *span)}
    names = {born.instance: born.worker for born in ground.cluster.births()}
    for row in ground.witness.ledger(ground.cluster.settings.namespace, due - ground.cluster.finished()):
        outcome = "" if row.outcome in OPEN else row.outcome
        worker = names.get(row.instance, row.instance)
        yield Claimed(row.claimed_at, worker, row.job, row.due_ms, outcome, row.attempt, row.ended_at)
