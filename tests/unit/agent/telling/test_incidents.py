"""The life of an incident, as tables of passes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argus_sched.agent.config.notify_policy import FlappingSettings, NotifySettings
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.telling import flapping
from argus_sched.agent.telling.incidents import Cause, Incident, Standing, State, incident_id, judge, remove
from argus_sched.agent.telling.observations import Observation

START = datetime(2026, 3, 14, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
OK, WARN, CRIT, UNKNOWN = Status.OK, Status.WARN, Status.CRIT, Status.UNKNOWN
PHASES = {OK: Phase.FRESH, WARN: Phase.FAILING, CRIT: Phase.STALE, UNKNOWN: Phase.BLIND}
LETTERS = {"o": OK, "w": WARN, "c": CRIT, "u": UNKNOWN}
ONCE = NotifySettings()
TWICE = NotifySettings(fire_after=2, resolve_after=2)


def seen(status: Status, **changes: Any) -> Observation:
    """An observation of one job."""
    return replace(Observation("labs/job", status, PHASES[status], f"it is {status.name}"), **changes)


def passes(letters: str, policy: NotifySettings = ONCE) -> list[tuple[Standing, Cause]]:
    """The standings after passes a minute apart; o w c u are what was seen, b is blind, q a quiet CRIT."""
    standing, found = Standing("labs/job"), []
    for number, letter in enumerate(letters):
        observation = seen(CRIT) if letter == "q" else seen(LETTERS.get(letter, UNKNOWN))
        if letter == "b":
            observation = replace(observation, blind_by="labs/docker:web")
        standing, cause = judge(standing, observation, START + number * MINUTE, policy, quiet=letter == "q")
        found.append((standing, cause))
    return found


def incident_of(standing: Standing) -> Incident:
    """The incident it has."""
    assert standing.incident is not None
    return standing.incident


# One standing in each state and level, reached by passes, under a policy of two passes each way.
REACHED = {
    "ok": "o",
    "pending": "c",
    "firing WARN": "ww",
    "firing UNKNOWN": "uu",
    "firing CRIT": "cc",
    "resolved": "ccoo",
}
# Standing and next observation -> cause, state and level after it.
TABLE = {
    ("ok", "o"): (Cause.STILL_OK, State.OK, OK),
    ("ok", "w"): (Cause.COUNTING, State.PENDING, OK),
    ("ok", "u"): (Cause.COUNTING, State.PENDING, OK),
    ("ok", "c"): (Cause.COUNTING, State.PENDING, OK),
    ("ok", "b"): (Cause.BLIND, State.OK, OK),
    ("ok", "q"): (Cause.QUIET, State.PENDING, OK),
    ("pending", "o"): (Cause.PASSED, State.OK, OK),
    ("pending", "w"): (Cause.FIRED, State.FIRING, WARN),
    ("pending", "u"): (Cause.FIRED, State.FIRING, UNKNOWN),
    ("pending", "c"): (Cause.FIRED, State.FIRING, CRIT),
    ("pending", "b"): (Cause.BLIND, State.PENDING, OK),
    ("pending", "q"): (Cause.QUIET, State.PENDING, OK),
    ("firing WARN", "o"): (Cause.COUNTING, State.FIRING, WARN),
    ("firing WARN", "w"): (Cause.STILL_WRONG, State.FIRING, WARN),
    ("firing WARN", "u"): (Cause.COUNTING, State.FIRING, WARN),
    ("firing WARN", "c"): (Cause.COUNTING, State.FIRING, WARN),
    ("firing WARN", "b"): (Cause.BLIND, State.FIRING, WARN),
    ("firing WARN", "q"): (Cause.QUIET, State.FIRING, WARN),
    ("firing UNKNOWN", "o"): (Cause.COUNTING, State.FIRING, UNKNOWN),
    ("firing UNKNOWN", "w"): (Cause.COUNTING, State.FIRING, UNKNOWN),
    ("firing UNKNOWN", "u"): (Cause.STILL_WRONG, State.FIRING, UNKNOWN),
    ("firing UNKNOWN", "c"): (Cause.COUNTING, State.FIRING, UNKNOWN),
    ("firing UNKNOWN", "b"): (Cause.BLIND, State.FIRING, UNKNOWN),
    ("firing UNKNOWN", "q"): (Cause.QUIET, State.FIRING, UNKNOWN),
    ("firing CRIT", "o"): (Cause.COUNTING, State.FIRING, CRIT),
    ("firing CRIT", "w"): (Cause.COUNTING, State.FIRING, CRIT),
    ("firing CRIT", "u"): (Cause.UNSEEN, State.FIRING, CRIT),
    ("firing CRIT", "c"): (Cause.STILL_WRONG, State.FIRING, CRIT),
    ("firing CRIT", "b"): (Cause.BLIND, State.FIRING, CRIT),
    ("firing CRIT", "q"): (Cause.QUIET, State.FIRING, CRIT),
    ("resolved", "o"): (Cause.STILL_OK, State.RESOLVED, OK),
    ("resolved", "w"): (Cause.COUNTING, State.PENDING, OK),
    ("resolved", "u"): (Cause.COUNTING, State.PENDING, OK),
    ("resolved", "c"): (Cause.COUNTING, State.PENDING, OK),
    ("resolved", "b"): (Cause.BLIND, State.RESOLVED, OK),
    ("resolved", "q"): (Cause.QUIET, State.PENDING, OK),
}


def test_the_table_has_every_pair_of_standing_and_observation() -> None:
    assert set(TABLE) == set(product(REACHED, "owucbq"))


@pytest.mark.parametrize(("standing", "letter"), TABLE)
def test_one_pass_moves_a_standing_as_the_table_says(standing: str, letter: str) -> None:
    after, cause = passes(REACHED[standing] + letter, TWICE)[-1]
    assert (cause, after.state, after.level) == TABLE[standing, letter]


# What one pass confirms at once: level before and seen -> cause and level after.
EDGES = {
    (before, after): (
        Cause.STILL_OK
        if before is after is OK
        else Cause.STILL_WRONG
        if before is after
        else Cause.FIRED
        if before is OK
        else Cause.UNSEEN
        if (before, after) == (CRIT, UNKNOWN)
        else Cause.RECOVERED
        if after is OK
        else Cause.WORSE
        if after.severity > before.severity
        else Cause.EASED
    )
    for before, after in product(Status, Status)
}


@pytest.mark.parametrize(("before", "after"), EDGES)
def test_one_pass_is_enough_when_the_policy_says_one(before: Status, after: Status) -> None:
    letters = {status: letter for letter, status in LETTERS.items()}
    standing, cause = passes(letters[before] + letters[after])[-1]
    assert cause is EDGES[before, after]
    assert standing.level is (before if cause is Cause.UNSEEN else after)


def test_an_incident_opens_once_and_ends_once_with_its_duration() -> None:
    before, *standings = (standing for standing, _ in passes("occcco"))
    found = [incident_of(standing) for standing in standings]
    assert before.incident is None
    assert {incident.id for incident in found} == {incident_id("labs/job", START + MINUTE)}
    assert found[0].opened_at == START + MINUTE
    assert [incident.closed_at for incident in found] == [None] * 4 + [START + 5 * MINUTE]
    assert found[-1].duration == 4 * MINUTE


def test_an_incident_opens_at_the_deadline_that_passed_and_ends_at_the_run_that_came() -> None:
    deadline, run = START - 7 * MINUTE, START + timedelta(seconds=20)
    standing, _ = judge(Standing("labs/job"), seen(CRIT, since=deadline), START, ONCE)
    assert incident_of(standing).opened_at == deadline
    standing, _ = judge(standing, seen(OK, since=run), START + MINUTE, ONCE)
    assert incident_of(standing).duration == run - deadline


def test_a_run_older_than_the_incident_does_not_end_it_before_it_began() -> None:
    """A limit raised in the pack: the job is well again without a run."""
    standing, _ = judge(Standing("labs/job"), seen(CRIT), START, ONCE)
    standing, _ = judge(standing, seen(OK, since=START - timedelta(hours=1)), START + MINUTE, ONCE)
    assert incident_of(standing).closed_at == START + MINUTE


def test_upward_the_level_is_what_is_seen_now_and_downward_the_worst_of_the_streak() -> None:
    assert [standing.level for standing, _ in passes("wc", TWICE)] == [OK, CRIT]
    assert [standing.level for standing, _ in passes("ccwo", TWICE)] == [OK, CRIT, CRIT, WARN]


def test_a_hold_keeps_the_message_back_until_the_target_was_wrong_for_that_long() -> None:
    """A lock that moves to the next leader is without a holder for a while, and nobody is paged for that."""
    standing, causes = Standing("labs/scheduler_lock"), []
    for second in (0, 30, 74, 75):
        observation = replace(seen(CRIT, hold=timedelta(seconds=75)), subject="labs/scheduler_lock")
        standing, cause = judge(standing, observation, START + timedelta(seconds=second), ONCE)
        causes.append(cause)
    assert causes == [Cause.HELD, Cause.HELD, Cause.HELD, Cause.FIRED]
    assert incident_of(standing).opened_at == START


def test_a_hold_starts_again_after_one_good_pass() -> None:
    standing = Standing("labs/scheduler_lock")
    for second, status in ((0, CRIT), (60, OK), (90, CRIT)):
        standing, cause = judge(
            standing, seen(status, hold=timedelta(seconds=75)), START + timedelta(seconds=second), ONCE
        )
    assert cause is Cause.HELD


def test_a_quiet_pass_confirms_nothing_and_the_next_one_does() -> None:
    assert [cause for _, cause in passes("oqc")] == [Cause.STILL_OK, Cause.QUIET, Cause.FIRED]


def test_blindness_freezes_a_child_in_whatever_state_it_is() -> None:
    before, _ = passes("ccoc", TWICE)[-1]
    after, cause = judge(before, seen(UNKNOWN, blind_by="labs/docker:web"), START + 9 * MINUTE, TWICE)
    assert cause is Cause.BLIND
    assert replace(after, seen_at=before.seen_at) == before


def test_switched_off_is_an_end_of_its_own() -> None:
    standing, _ = passes("c")[-1]
    after, cause = judge(standing, seen(OK, phase=Phase.DISABLED), START + MINUTE, ONCE)
    assert (cause, after.level) == (Cause.DISABLED, OK)


def test_a_removed_subject_ends_its_incident() -> None:
    standing, _ = passes("c")[-1]
    after, cause = remove(standing, START + MINUTE)
    assert (cause, after.state, incident_of(after).closed_at) == (Cause.REMOVED, State.OK, START + MINUTE)


def test_up_and_down_at_each_pass_flaps_from_the_sixth_change_until_it_is_steady() -> None:
    found = passes("co" * 4 + "o" * 20)
    causes = [cause for _, cause in found]
    assert causes[:5] == [Cause.FIRED, Cause.RECOVERED] * 2 + [Cause.FIRED]
    assert causes[5] is Cause.FLAPPING_BEGAN
    assert causes.count(Cause.FLAPPING_ENDED) == 1
    ended = causes.index(Cause.FLAPPING_ENDED)
    assert all(cause is Cause.FLAPPING for cause in causes[6:ended])
    assert len({incident_of(standing).id for standing, _ in found[5:ended]}) == 1
    assert incident_of(found[ended][0]).closed_at == START + 7 * MINUTE


def test_flapping_that_ends_wrong_leaves_the_incident_open() -> None:
    standing, cause = passes("oc" * 4 + "c" * 18)[-1]
    assert (cause, standing.state) == (Cause.STILL_WRONG, State.FIRING)
    assert incident_of(standing).closed_at is None


def test_a_subject_is_forgotten_twenty_passes_after_its_last_change() -> None:
    found = [standing.state for standing, _ in passes("co" + "o" * 20)]
    assert found[1:20] == [State.RESOLVED] * 19
    assert found[-1] is State.OK


@pytest.mark.parametrize(
    ("changes", "percent"),
    [(0, 0), (1, 5.9), (1 << 19, 4.0), ((1 << 20) - 1, 99.0), (0b11111, 28.5), (0b111111, 33.9)],
)
def test_newer_changes_weigh_more(changes: int, percent: float) -> None:
    assert flapping.share(changes) == pytest.approx(percent)


def test_between_the_limits_flapping_stays_what_it_was() -> None:
    limits, between = FlappingSettings(), 0b11111
    assert [flapping.is_flapping(between, was, limits) for was in (False, True)] == [False, True]


@settings(max_examples=300, deadline=None)
@given(st.text("owcubq", max_size=80), st.integers(1, 3), st.integers(1, 3))
def test_whatever_is_seen_the_states_follow_each_other(letters: str, fire: int, resolve: int) -> None:
    """An open incident when and only when something is wrong or flaps; one id from its beginning to its end."""
    found = [(Standing("labs/job"), Cause.STILL_OK), *passes(letters, NotifySettings(fire, resolve))]
    for (before, _), (after, cause) in pairwise(found):
        is_open = after.incident is not None and after.incident.closed_at is None
        assert is_open == (after.state in {State.FIRING, State.FLAPPING})
        assert after.changes < 1 << flapping.SLOTS
        if cause in {Cause.BLIND, Cause.UNSEEN, Cause.QUIET, Cause.COUNTING, Cause.HELD}:
            assert after.level is before.level
        if after.incident and after.incident.closed_at:
            assert after.incident.closed_at >= after.incident.opened_at


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=1500)])
def test_a_hold_that_began_by_a_clock_since_set_back_ends_as_long_after_as_any(ahead: timedelta) -> None:
    unheld = seen(CRIT, hold=timedelta(seconds=75))
    standing, _ = judge(Standing("labs/lock"), unheld, START + ahead, ONCE)
    causes = []
    for number in range(3):
        standing, cause = judge(standing, unheld, START + number * MINUTE, ONCE)
        causes.append(cause)
    assert causes == [Cause.HELD, Cause.HELD, Cause.FIRED]
    assert incident_of(standing).opened_at == START
