"""The judge of the agent: was every stop told, once and in time, and nothing else?

It knows from the side-effect log when each job last ran, and from the samples how many sessions held the
lock; the agent knows neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from argus_sched.harness.expected import Plan
from argus_sched.harness.history import Event, Graded, History, Holders, Looked, Started, Told, to_line
from argus_sched.harness.verdict import Violation

CRIT = "CRIT"
LOCK = "scheduler_lock"


@dataclass(frozen=True)
class AgentRules:
    """`grace` beyond a job's period; `slack` for a log line that is written before the body's own; seconds.

    `lock_before` is how long before a verdict on the lock its cause may lie: a pass looks several times.
    """

    app: str
    grace: float
    slack: float = 1.0
    lock_before: float = 15.0
    beyond: float = 5.0


@dataclass(frozen=True)
class AgentVerdict:
    """How the agent did: passes, real stops, how late each was told (seconds), and what was wrong."""

    passes: int
    stops: int
    told_after: tuple[float, ...]
    violations: tuple[Violation, ...]

    def as_json(self) -> dict[str, object]:
        """JSON-ready values."""
        told = [round(seconds, 3) for seconds in self.told_after]
        return {"passes": self.passes, "stops": self.stops, "told_after_seconds": told}


def judge_agent(history: History, plans: Sequence[Plan], rules: AgentRules, end: float) -> AgentVerdict:
    """The verdict on the agent's verdicts up to `end`, seconds since the epoch."""
    passes = history.of_kind(Looked)
    stops = list(_stops(history, plans, rules, end))
    longest = max((one.until - one.at for one in passes), default=0.0)
    found = [*_failed(passes), *_without_cause(history, plans, rules)]
    told: list[float] = []
    for plan, gone, back in stops:
        late, wrong = _telling(history, rules, plan, gone, back, rules.beyond + 2 * longest)
        told += [] if late is None else [late]
        found += wrong
    return AgentVerdict(len(passes), len(stops), tuple(told), tuple(found))


def _stops(
    history: History, plans: Sequence[Plan], rules: AgentRules, end: float
) -> Iterator[tuple[Plan, float, float]]:
    """Each spell in which a job was silent beyond its limit: from passing that to its next run, or `end`."""
    for plan in plans:
        runs = _runs(history).get(plan.job, [])
        for before, after in pairwise([*runs, end]):
            limit = plan.period_seconds + rules.grace
            # A silence that ends about when it becomes one may be told or not.
            if after - before > limit + rules.slack + rules.beyond:
                yield plan, before + limit, after


def _telling(
    history: History, rules: AgentRules, plan: Plan, gone: float, back: float, within: float
) -> tuple[float | None, list[Violation]]:
    """How long after `gone` a stop was told, and what was wrong about that."""
    word = f"{CRIT} {rules.app}/{plan.job}"
    texts = [
        told for told in history.of_kind(Told) if gone - rules.slack <= told.at <= back and word in told.text
    ]
    if not texts:
        message = f"{plan.job} was silent beyond its limit and nobody was told"
        return None, [_violation("agent_missed", message, gone, history)]
    late, wrong = texts[0].at - gone, []
    if late > within:
        wrong.append(
            _violation(
                "agent_late", f"{plan.job} was told {late:.1f} s after its limit", texts[0].at, history
            )
        )
    if len(texts) > 1:
        message = f"{plan.job} was told {len(texts)} times in one incident"
        wrong.append(_violation("agent_repeated", message, texts[1].at, history))
    return late, wrong


def _without_cause(history: History, plans: Sequence[Plan], rules: AgentRules) -> Iterator[Violation]:
    by_target = {f"{rules.app}/{plan.job}": plan for plan in plans}
    runs = _runs(history)
    for graded in history.of_kind(Graded):
        if graded.status != CRIT:
            continue
        plan = by_target.get(graded.target)
        if plan is not None and not _was_silent(runs.get(plan.job, []), graded.at, plan, rules):
            message = f"{graded.target} was called critical although it had run within its limit"
            yield _violation("agent_false", message, graded.at, history)
        if graded.target.endswith(LOCK) and not _lock_was_wrong(history, graded.at, rules.lock_before):
            message = "the lock was called critical while one session held it"
            yield _violation("agent_false", message, graded.at, history)


def _was_silent(runs: Sequence[float], at: float, plan: Plan, rules: AgentRules) -> bool:
    """Whether the job was silent beyond its limit at `at`, or until shortly before: the pass took a while."""
    limit = plan.period_seconds + rules.grace - rules.slack
    instants = [run for run in runs if run <= at] + [at]
    return any(later - run > limit and later > at - rules.beyond for run, later in pairwise(instants))


def _lock_was_wrong(history: History, at: float, before: float) -> bool:
    samples = [sample for sample in history.of_kind(Holders) if sample.at <= at]
    near = [sample for sample in samples if sample.at >= at - before] + samples[:-1][-1:]
    return any(sample.pids is None or len(sample.pids) != 1 for sample in near)


def _failed(passes: Sequence[Looked]) -> Iterator[Violation]:
    for one in passes:
        if one.problem:
            yield Violation("agent_failed", f"a pass of the agent failed: {one.problem}")


def _runs(history: History) -> Mapping[str, list[float]]:
    runs: dict[str, list[float]] = defaultdict(list)
    for start in history.of_kind(Started):
        runs[start.job].append(start.at)
    return runs


def _violation(rule: str, message: str, at: float, history: History) -> Violation:
    kinds = (Graded, Told, Looked)
    near: list[Event] = [
        event for event in history.events if isinstance(event, kinds) and abs(event.at - at) < 3
    ]
    return Violation(rule, message, around=tuple(to_line(event).rstrip() for event in near[:12]))
