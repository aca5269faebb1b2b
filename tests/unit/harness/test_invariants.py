"""Hand-written histories and the verdict each must get."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from argus_sched.harness.expected import Plan
from argus_sched.harness.history import (
    Belief,
    Born,
    Claimed,
    Died,
    Event,
    Fault,
    Finished,
    Frozen,
    History,
    Holders,
    Service,
    Skewed,
    Started,
)
from argus_sched.harness.invariants import judge
from argus_sched.harness.profiles import profile
from argus_sched.harness.verdict import Rules, Verdict

T0 = 1_800_000_000  # a whole second
JOB = Plan("tick", "Tick", every_ms=1000)
MONEY = Plan("again", "Again", every_ms=1000, at_least_once=True)


def run(
    second: float,
    worker: str = "a",
    *,
    job: str = "tick",
    late: float = 0.001,
    took: float | None = 0.01,
    epoch: int = 1,
    attempt: int = 1,
) -> list[Event]:
    """The lines one body writes for the due time `second`; `took` None means it never came to its end."""
    at, due = T0 + second + late, round((T0 + second) * 1000)
    lines: list[Event] = [Started(at, worker, job, due, epoch, attempt)]
    return lines if took is None else [*lines, Finished(at + took, worker, job, due, attempt)]


def leads(worker: str, start: float, end: float | None = None, epoch: int = 1) -> list[Event]:
    lines: list[Event] = [Belief(T0 + start, worker, "leader", epoch)]
    return lines if end is None else [*lines, Belief(T0 + end, worker, "standby", epoch)]


def verdict(
    *groups: list[Event], plans: tuple[Plan, ...] = (JOB,), seconds: int = 4, rules: Rules | None = None
) -> Verdict:
    events = [event for group in groups for event in group]
    span = (T0 * 1000, (T0 + seconds) * 1000)
    return judge(History.of(events), plans, span, rules or Rules(), seed=7)


def all_four(worker: str = "a") -> list[Event]:
    return [line for second in (1, 2, 3, 4) for line in run(second, worker)]


def broken(found: Verdict) -> list[str]:
    return [violation.rule for violation in found.violations]


def test_a_quiet_history_holds() -> None:
    found = verdict(leads("a", -1), all_four())
    assert (found.held, found.expected, found.lost, found.doubled, found.interrupted) == (True, 4, 0, 0, 0)
    assert found.leaderless_seconds == 0.0


def test_a_fire_run_twice_is_doubled_and_told_with_job_due_and_events() -> None:
    found = verdict(leads("a", -1), all_four(), run(2, "b", late=0.3))
    assert (found.held, found.doubled) == (False, 1)
    violation = found.violations[0]
    assert (violation.rule, violation.job, violation.due_ms) == ("doubled", "tick", (T0 + 2) * 1000)
    assert "by a and by b" in violation.message
    assert any('"worker":"b"' in line for line in violation.around)


def test_three_runs_of_one_fire_are_two_doubles() -> None:
    assert verdict(leads("a", -1), all_four(), run(2, "b"), run(2, "c")).doubled == 2


def test_a_fire_run_twice_by_one_worker_is_doubled_and_nothing_else() -> None:
    assert broken(verdict(leads("a", -1), all_four(), run(2, late=0.4))) == ["doubled"]


def test_a_due_time_without_a_run_is_lost() -> None:
    found = verdict(leads("a", -1), run(1), run(2), run(4))
    assert (found.lost, broken(found)) == (1, ["lost"])
    assert "never claimed" in found.violations[0].message


def test_a_due_time_outside_the_span_is_not_judged() -> None:
    assert verdict(leads("a", -1), all_four(), run(9)).held


def test_a_loss_within_the_window_is_lost_even_while_nobody_led() -> None:
    found = verdict(leads("a", -1, 1.5), run(1), leads("b", 3.5, epoch=2), run(4, "b", epoch=2))
    assert found.lost == 2


def test_nobody_leading_for_longer_than_the_window_is_counted_apart() -> None:
    rules = Rules(catch_up_window=1.0)
    found = verdict(
        leads("a", -1, 1.5),
        run(1),
        leads("b", 3.2, epoch=2),
        run(3, "b", late=0.3),
        run(4, "b", epoch=2),
        rules=rules,
    )
    assert (found.held, found.lost, found.beyond_window) == (True, 0, 1)


@pytest.mark.parametrize(
    ("late", "ahead", "rule"), [(-0.5, 0.0, ["early"]), (-0.5, 0.6, []), (-0.01, 0.0, [])]
)
def test_early_is_judged_by_the_workers_own_clock(late: float, ahead: float, rule: list[str]) -> None:
    skew: list[Event] = [Skewed(T0, "a", ahead)] if ahead else []
    assert broken(verdict(leads("a", -1), run(1, late=late), run(2), run(3), run(4), skew)) == rule


def test_a_clock_that_was_right_again_a_moment_before_the_run_counts() -> None:
    skews: list[Event] = [Skewed(T0 - 2, "a", 0.6), Skewed(T0 + 0.499, "a", 0.0)]
    assert broken(verdict(leads("a", -1), run(1, late=-0.5), run(2), run(3), run(4), skews)) == []
    long_ago: list[Event] = [Skewed(T0 - 9, "a", 0.6), Skewed(T0 - 3, "a", 0.0)]
    assert broken(verdict(leads("a", -1), run(1, late=-0.5), run(2), run(3), run(4), long_ago)) == ["early"]


def test_a_run_at_no_due_time_is_told() -> None:
    assert broken(verdict(leads("a", -1), all_four(), run(2.5))) == ["not_due"]


def test_a_jittered_run_before_its_jittered_instant_is_early() -> None:
    plan = Plan("tick", "Tick", every_ms=1000, jitter_ms=900)
    found = verdict(leads("a", -1), all_four(), plans=(plan,))
    assert "early" in broken(found)


@pytest.mark.parametrize(("late", "slow"), [(0.2, 0), (1.4, 1)])
def test_a_jitter_that_was_not_computed_is_told_as_slow(late: float, slow: int) -> None:
    plan = Plan("tick", "Tick", every_ms=4000, jitter_ms=100)
    found = verdict(leads("a", -1), run(4, late=late), plans=(plan,))
    assert (found.held, len(found.slow)) == (True, slow)


def test_two_runs_of_one_job_at_once_overlap() -> None:
    found = verdict(leads("a", -1), run(1, took=1.5), run(2, "b"), run(3), run(4))
    assert broken(found) == ["overlap"]


def test_an_overlap_up_to_max_instances_is_right() -> None:
    plan = Plan("tick", "Tick", every_ms=1000, max_instances=2)
    assert verdict(leads("a", -1), run(1, took=1.5), run(2, "b"), run(3), run(4), plans=(plan,)).held


def test_a_frozen_run_no_longer_counts_as_running() -> None:
    frozen: list[Event] = [Frozen(T0 + 1.005, T0 + 2.4, "a")]
    assert verdict(leads("a", -1), frozen, run(1, took=1.5), run(2, "b"), run(3), run(4)).held


def killed(worker: str, at: float) -> list[Event]:
    return [Died(T0 + at, worker, "kill")]


def claim(
    second: int, outcome: str, worker: str = "a", at: float = 0.0005, ended: float | None = None
) -> list[Event]:
    """The ledger's row of the due time `second`, claimed `at` after it and closed at second `ended`."""
    closed = None if ended is None else T0 + ended
    return [Claimed(T0 + second + at, worker, "tick", (T0 + second) * 1000, outcome, ended=closed)]


OTHERS = [*run(1), *run(3, "b"), *run(4, "b")]


@pytest.mark.parametrize(
    ("events", "rules", "interrupted"),
    [
        pytest.param([*run(2, took=None), *killed("a", 2.005)], [], 1, id="killed in its body"),
        pytest.param(
            [*run(2, took=None), *killed("a", 2.005), *claim(2, "interrupted")], [], 1, id="and recorded"
        ),
        pytest.param(
            [*claim(2, "interrupted"), *killed("a", 2.0006)], [], 1, id="killed between claim and body"
        ),
        pytest.param(
            [*run(2, took=None), *killed("a", 2.005), *claim(2, "")], ["interrupted"], 0, id="not recorded"
        ),
        pytest.param([*run(2, took=None)], ["interrupted"], 0, id="nobody killed it"),
        pytest.param([*run(2, took=None), *killed("a", 1.9)], ["interrupted"], 0, id="killed before"),
        pytest.param([*claim(2, "interrupted")], ["interrupted"], 0, id="recorded, nobody killed it"),
        pytest.param(
            [*claim(2, "interrupted", at=0.1), *killed("a", 2.0)],
            [],
            1,
            id="killed with the claim on its way",
        ),
        pytest.param(
            [*claim(2, "interrupted"), *killed("a", 1.001)], [], 1, id="killed with a claim long on its way"
        ),
        pytest.param(
            [*claim(2, "interrupted"), *killed("a", 0.9)],
            ["interrupted"],
            0,
            id="killed before, longer than a claim may be on its way",
        ),
        pytest.param(
            [*claim(2, "interrupted", ended=2.9), *killed("a", 2.5)], [], 1, id="killed, then recorded"
        ),
        pytest.param(
            [*claim(2, "interrupted", ended=2.4), *killed("a", 2.5)],
            ["interrupted"],
            0,
            id="recorded, then killed for another reason",
        ),
        pytest.param(
            [*claim(2, "interrupted"), Frozen(T0 + 2.0006, T0 + 3.9, "a")],
            ["interrupted"],
            0,
            id="recorded, only frozen",
        ),
        pytest.param(
            [*claim(2, "interrupted"), Fault(T0 + 1.9, T0 + 3.9, "partition", "a", True, T0 + 1.9)],
            ["interrupted"],
            0,
            id="recorded, only cut off",
        ),
        pytest.param(
            [*claim(2, ""), *killed("a", 2.0006)], ["lost"], 0, id="claimed, killed, never recorded"
        ),
        pytest.param([*claim(2, "succeeded")], ["lost"], 0, id="a success that no body wrote"),
        pytest.param([*killed("a", 2.0006)], ["lost"], 0, id="killed without a claim"),
        pytest.param(
            [*run(2, took=None), Died(T0 + 2.005, "a", "stop")], ["interrupted"], 0, id="asked to stop"
        ),
    ],
)
def test_interrupted_is_accepted_only_where_a_kill_explains_it(
    events: list[Event], rules: list[str], interrupted: int
) -> None:
    found = verdict(leads("a", -1, 2.1), leads("b", 2.1, epoch=2), OTHERS, events)
    assert (broken(found), found.interrupted) == (rules, interrupted)


def again(second: float, worker: str, **more: object) -> list[Event]:
    return run(second, worker, job="again", **more)  # type: ignore[arg-type]  # keyword arguments of `run`


@pytest.mark.parametrize(
    ("name", "elects", "seconds"),
    [("default", True, 3.0), ("fast", True, 1.0), ("recipe", True, 5.0), ("fast", False, 5.0)],
)
def test_a_claim_is_on_its_way_for_a_lease_or_as_long_as_the_database_lets_it(
    name: str, elects: bool, seconds: float
) -> None:
    assert profile(name).rules(elects=elects).in_flight == seconds


REST = [*again(1, "a"), *again(3, "b"), *again(4, "b")]


def cut(fault: str, at: float, worker: str) -> Event:
    """A fault of one second that keeps workers from the database."""
    return Fault(T0 + at, T0 + at + 1, fault, worker, True, T0 + at)


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        pytest.param(
            [*again(2, "a", took=None), *killed("a", 2.005), *again(2, "b", late=0.5, attempt=2)],
            [],
            id="killed",
        ),
        pytest.param(
            [
                *again(2, "a", took=1.9),
                Frozen(T0 + 2.002, T0 + 3.9, "a"),
                *again(2, "b", late=0.6, attempt=2),
            ],
            [],
            id="frozen",
        ),
        pytest.param(
            [*again(2, "a"), Frozen(T0 + 2.012, T0 + 3.9, "a"), *again(2, "b", late=0.6, attempt=2)],
            [],
            id="frozen before it could tell of its end",
        ),
        pytest.param(
            [*again(2, "a"), Frozen(T0 + 3.5, T0 + 3.9, "a"), *again(2, "b", late=1.7, attempt=2)],
            ["doubled"],
            id="frozen long after its end",
        ),
        pytest.param(
            [*again(2, "a"), cut("standby", 2.1, "a"), *again(2, "b", late=1.7, attempt=2)],
            [],
            id="cut off before it could tell of its end",
        ),
        pytest.param(
            [*again(2, "a"), cut("pooler", 2.1, "b"), *again(2, "b", late=1.7, attempt=2)],
            [],
            id="with all others cut off",
        ),
        pytest.param(
            [*again(2, "a"), cut("standby", 2.1, "c"), *again(2, "b", late=1.7, attempt=2)],
            ["doubled"],
            id="another cut off",
        ),
        pytest.param([*again(2, "a"), *again(2, "b", late=0.5, attempt=2)], ["doubled"], id="for no reason"),
        pytest.param(
            [*again(2, "a", took=None), *killed("a", 2.005), *again(2, "b", late=0.5)],
            ["doubled"],
            id="the same attempt",
        ),
        pytest.param([*again(2, "a", took=None), *killed("a", 2.005)], ["interrupted"], id="not run again"),
    ],
)
def test_at_least_once_runs_again_after_a_death_and_only_then(events: list[Event], rules: list[str]) -> None:
    assert broken(verdict(leads("a", -1), REST, events, plans=(MONEY,))) == rules


def test_two_holders_at_once_break_the_lock() -> None:
    samples: list[Event] = [Holders(T0 + 1, (11,)), Holders(T0 + 2, (11, 12)), Holders(T0 + 3, None)]
    found = verdict(leads("a", -1), all_four(), samples)
    assert (found.max_holders, broken(found)) == (2, ["holders"])


@pytest.mark.parametrize(("overlap", "rules"), [(0.02, []), (1.5, ["two_leaders"])])
def test_two_leaders_are_normal_for_milliseconds_only(overlap: float, rules: list[str]) -> None:
    found = verdict(leads("a", -1, 2 + overlap), leads("b", 2, epoch=2), all_four())
    assert broken(found) == rules
    assert found.two_leader_seconds == pytest.approx(overlap)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param([Died(T0 + 2, "a", "kill")], id="dead"),
        pytest.param([Frozen(T0 + 2, T0 + 99, "a")], id="frozen"),
        pytest.param([Belief(T0 + 1.2, "a", "leader", 1, T0 + 2)], id="trust ran out"),
    ],
)
def test_a_leader_that_cannot_act_is_none(end: list[Event]) -> None:
    found = verdict(leads("a", -1), end, leads("b", 2.5, epoch=2), all_four())
    assert found.two_leader_seconds == 0.0
    assert found.leaderless_seconds == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("gap", "away", "rules"),
    [
        (0.5, [], []),
        (2.5, [], ["leaderless"]),
        (2.5, [Holders(T0 + 1.1, None), Holders(T0 + 3.4, (7,))], []),
        (9.0, [Holders(T0 + 1.1, None)], []),
        (2.5, [Holders(T0 + 1.1, None), Holders(T0 + 1.2, ())], ["leaderless"]),
    ],
    ids=["short", "long", "while the database was away", "which did not come back", "or did at once"],
)
def test_nobody_leads_for_long_only_while_the_database_is_away(
    gap: float, away: list[Event], rules: list[str]
) -> None:
    events = [*leads("a", -1, 1.0), *leads("b", 1.0 + gap, epoch=2), *all_four()]
    assert broken(verdict(events, away, rules=Rules(leaderless=2.0))) == rules


@pytest.mark.parametrize(("overlap", "rules"), [(0.05, []), (0.4, ["two_services"])])
def test_the_leader_only_service_runs_once(overlap: float, rules: list[str]) -> None:
    services: list[Event] = [
        Service(T0, "a", True),
        Service(T0 + 1, "b", True),
        Service(T0 + 1 + overlap, "a", False),
    ]
    assert broken(verdict(leads("a", -1), all_four(), services)) == rules


@pytest.mark.parametrize(
    ("stops", "rules", "slow"), [(0.05, [], 0), (0.6, [], 1), (1.2, ["two_services"], 1)]
)
def test_a_thawed_worker_may_be_slow_to_stop_its_service(stops: float, rules: list[str], slow: int) -> None:
    events: list[Event] = [
        Service(T0, "a", True),
        Frozen(T0 + 0.5, T0 + 2.0, "a"),
        Service(T0 + 1, "b", True),
        Service(T0 + 2.0 + stops, "a", False),
    ]
    found = verdict(leads("a", -1), all_four(), events)
    assert (broken(found), len(found.slow)) == (rules, slow)


@pytest.mark.parametrize(("thaw", "rules"), [(0.05, []), (0.5, ["overlap", "unfenced"])])
def test_a_freeze_may_fall_between_a_bodys_last_look_and_its_first_line(
    thaw: float, rules: list[str]
) -> None:
    frozen: list[Event] = [Frozen(T0 + 1.5, T0 + 2.95 - thaw, "a")]
    late = run(1, "a", late=1.95, took=0.2)  # while the next leader runs its own
    others = [line for second in (2, 3, 4) for line in run(second, "b", epoch=2)]
    found = verdict(leads("a", -1), frozen, late, others, rules=Rules(two_leaders=0.5))
    assert broken(found) == rules


@pytest.mark.parametrize(("late", "rules"), [(0.05, []), (1.5, ["unfenced"])])
def test_a_run_of_an_older_term_long_after_a_newer_one_is_unfenced(late: float, rules: list[str]) -> None:
    found = verdict(
        leads("a", -1), run(1), run(2, "b", epoch=2), run(3, "b", epoch=2), run(4, "a", late=late - 1.9)
    )
    assert found.unfenced_writes == 1
    assert [rule for rule in broken(found) if rule != "early"] == rules


def test_a_worker_that_ends_by_itself_is_told() -> None:
    events: list[Event] = [Born(T0, "b", "w2", 5), Died(T0 + 1, "b", "itself")]
    assert broken(verdict(leads("a", -1), all_four(), events)) == ["worker_died"]


@pytest.mark.parametrize("field", ["held", "seed", "dues", "max_holders", "faults", "slow", "violations"])
def test_the_json_has_the_promised_fields(field: str) -> None:
    found = verdict(leads("a", -1), run(1)).as_json()
    assert field in found
    assert found["dues"] == {"expected": 4, "lost": 3, "doubled": 0, "interrupted": 0, "beyond_window": 0}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda events: [*events, *run(3, "b", late=0.2)], "doubled"),
        (lambda events: [e for e in events if getattr(e, "due_ms", 0) != (T0 + 3) * 1000], "lost"),
        (lambda events: [*events, Holders(T0 + 1, (1, 2))], "holders"),
    ],
)
def test_one_planted_fault_turns_a_quiet_history_red(
    change: Callable[[list[Event]], list[Event]], rule: str
) -> None:
    quiet = [*leads("a", -1), *all_four()]
    assert verdict(quiet).held
    assert broken(verdict(change(quiet))) == [rule]
