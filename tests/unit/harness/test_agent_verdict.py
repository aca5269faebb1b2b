"""Hand-written histories of the agent, and what the judge must say of it."""

from __future__ import annotations

import pytest

from argus_sched.harness.agent_verdict import AgentRules, AgentVerdict, judge_agent
from argus_sched.harness.expected import Plan
from argus_sched.harness.history import Event, Graded, History, Holders, Looked, Started, Told

T0 = 1_800_000_000
JOB = Plan("tick", "Tick", every_ms=1000)
RULES = AgentRules("app", grace=5.0)  # limit 6 s
END = 60


def runs(*seconds: float) -> list[Event]:
    return [Started(T0 + second, "a", "tick", round((T0 + second) * 1000), 1) for second in seconds]


def steady(until: int = END) -> list[Event]:
    return runs(*range(until + 1))


def crit(at: float, target: str = "app/tick") -> list[Event]:
    return [Graded(T0 + at, target, "CRIT")]


def told(at: float, text: str = "1 CRIT\n\nCRIT app/tick Tick\nlast run 7s ago") -> list[Event]:
    return [Told(T0 + at, text)]


def verdict(*groups: list[Event]) -> AgentVerdict:
    passes: list[Event] = [Looked(T0 + second, T0 + second + 0.5) for second in range(END)]
    return judge_agent(History.of([e for group in (*groups, passes) for e in group]), [JOB], RULES, T0 + END)


def broken(found: AgentVerdict) -> list[str]:
    return [violation.rule for violation in found.violations]


def test_a_quiet_run_has_no_stop_and_nothing_told() -> None:
    found = verdict(steady())
    assert (broken(found), found.stops, found.passes) == ([], 0, END)


def test_a_stop_that_was_told_once_is_right_and_its_delay_is_measured() -> None:
    found = verdict(steady(20), crit(26.9), told(27.5))
    assert (broken(found), found.stops) == ([], 1)
    assert found.told_after == pytest.approx((1.5,))


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        pytest.param([], ["agent_missed"], id="not told"),
        pytest.param(told(27.5, "CRIT app/other"), ["agent_missed"], id="another job was told"),
        pytest.param([*crit(26.9), *told(40)], ["agent_late"], id="told too late"),
        pytest.param([*crit(26.9), *told(27), *told(30)], ["agent_repeated"], id="told twice"),
    ],
)
def test_a_stop_must_be_told_once_and_in_time(events: list[Event], rules: list[str]) -> None:
    assert broken(verdict(steady(20), events)) == rules


def test_a_silence_that_ends_about_when_it_becomes_one_may_be_told_or_not() -> None:
    gap = [*steady(20), *runs(28, *range(29, END + 1))]
    assert broken(verdict(gap)) == []
    assert broken(verdict(gap, crit(27), told(27))) == []


def test_a_job_called_critical_although_it_ran_is_a_false_alarm() -> None:
    found = verdict(steady(), crit(30))
    assert broken(found) == ["agent_false"]
    assert "app/tick was called critical" in found.violations[0].message


def test_a_verdict_that_comes_just_after_the_job_is_back_is_no_false_alarm() -> None:
    gap = [*steady(20), *runs(28, *range(29, END + 1))]
    assert broken(verdict(gap, crit(28.2))) == []


@pytest.mark.parametrize(
    ("samples", "rules"),
    [
        pytest.param([Holders(T0 + second, (7,)) for second in range(40)], ["agent_false"], id="one holder"),
        pytest.param([Holders(T0 + 25, (7,)), Holders(T0 + 28, ())], [], id="none"),
        pytest.param([Holders(T0 + 25, (7,)), Holders(T0 + 28, (7, 8))], [], id="two"),
        pytest.param([Holders(T0 + 25, (7,)), Holders(T0 + 28, None)], [], id="database away"),
    ],
)
def test_the_lock_is_critical_only_when_it_was_not_held_by_one(
    samples: list[Event], rules: list[str]
) -> None:
    assert broken(verdict(steady(), samples, crit(30, "app/scheduler_lock"))) == rules


def test_a_pass_without_a_verdict_is_told() -> None:
    assert broken(verdict(steady(), [Looked(T0 + 5, T0 + 6, "exit code 3")])) == ["agent_failed"]
