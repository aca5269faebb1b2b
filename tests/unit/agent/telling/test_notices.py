"""What is told over a row of passes: once, again, worse, at the end, and not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from argus_sched.agent.config.notify_policy import NotifySettings
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.telling.incidents import Cause, Standing, State
from argus_sched.agent.telling.notices import (
    FORGET_AFTER,
    Change,
    LastPass,
    Notice,
    collapse,
    decide,
    is_quiet,
)
from argus_sched.agent.telling.observations import Observation

START = datetime(2026, 3, 14, 10, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
ONCE = NotifySettings()
SEEN = {
    "o": (Status.OK, Phase.FRESH),
    "d": (Status.OK, Phase.DISABLED),
    "w": (Status.WARN, Phase.FAILING),
    "c": (Status.CRIT, Phase.STALE),
    "u": (Status.UNKNOWN, Phase.BLIND),
    "b": (Status.UNKNOWN, Phase.BLIND),
}


def observation(letter: str, subject: str = "labs/job") -> Observation:
    """What a letter stands for; b is blind behind a failed node."""
    status, phase = SEEN[letter]
    return Observation(subject, status, phase, "words", blind_by="labs/docker:web" if letter == "b" else None)


class Passes:
    """Passes over one subject, and what was told of it."""

    def __init__(self, policy: NotifySettings = ONCE, every: timedelta = MINUTE) -> None:
        self.standings: dict[str, Standing] = {}
        self.told: list[tuple[timedelta, Change]] = []
        self._policy, self._every, self._at = policy, every, START

    def run(self, letters: str, muted: Callable[[str], str | None] = lambda _: None) -> list[Change]:
        """One pass for each letter; returns what these told."""
        before = len(self.told)
        for letter in letters:
            for decision in decide(
                self.standings, [observation(letter)], self._at, self._policy, muted=muted
            ):
                self.standings[decision.after.subject] = decision.after
                if decision.change:
                    self.told.append((self._at - START, decision.change))
            self._at += self._every
        return [change for _, change in self.told[before:]]


# Passes -> everything that is told.
TOLD = {
    "oooo": [],
    "oc": [Change.FIRED],
    "occc": [Change.FIRED],
    "ocoo": [Change.FIRED, Change.RECOVERED],
    "ocd": [Change.FIRED, Change.DISABLED],
    "ow": [Change.FIRED],
    "owc": [Change.FIRED, Change.WORSE],
    "ocw": [Change.FIRED, Change.EASED],
    "ouc": [Change.FIRED, Change.WORSE],
    "ocu": [Change.FIRED],
    "ocuo": [Change.FIRED, Change.RECOVERED],
    "ob": [],
    "ocbbo": [Change.FIRED, Change.RECOVERED],
    "ocbbc": [Change.FIRED],
    "obbc": [Change.FIRED],
}


@pytest.mark.parametrize("letters", TOLD)
def test_each_change_is_told_once(letters: str) -> None:
    assert Passes().run(letters) == TOLD[letters]


def test_reminders_back_off_to_one_a_day() -> None:
    passes = Passes(every=HOUR)
    passes.run("c" * 80)
    hours = [at / HOUR for at, change in passes.told if change is Change.REMINDER]
    assert hours == [1, 5, 29, 53, 77]


def test_a_warning_is_told_once_and_never_again() -> None:
    assert Passes(every=HOUR).run("w" * 80) == [Change.FIRED]


def test_nobody_is_reminded_of_what_hides_behind_a_failed_node() -> None:
    assert Passes(every=HOUR).run("cbbbb") == [Change.FIRED]


def test_what_nobody_can_see_any_more_after_a_crit_is_still_reminded() -> None:
    assert Passes(every=HOUR).run("cu") == [Change.FIRED, Change.REMINDER]


def test_an_ack_stops_the_reminders_until_it_gets_worse() -> None:
    passes = Passes(every=HOUR)
    passes.run("u")
    passes.standings = {name: replace(found, acked=True) for name, found in passes.standings.items()}
    assert passes.run("uuu") == []
    assert passes.run("cc") == [Change.WORSE, Change.REMINDER]


def test_no_reminders_without_waits() -> None:
    assert Passes(NotifySettings(reminders=()), HOUR).run("ccc") == [Change.FIRED]


def test_flapping_is_told_as_flapping_and_its_end_as_an_end() -> None:
    told = Passes().run("co" * 10 + "o" * 20)
    assert told[:5] == [Change.FIRED, Change.RECOVERED] * 2 + [Change.FIRED]
    assert told[5:] == [Change.FLAPPING, Change.STEADY]


def test_a_silence_hides_messages_and_not_incidents() -> None:
    passes = Passes()
    assert passes.run("cc", muted=lambda _: "silence 1: deploy") == []
    assert passes.standings["labs/job"].state is State.FIRING
    assert passes.run("c") == [Change.FIRED]


def test_what_began_and_ended_in_a_silence_is_never_told() -> None:
    passes = Passes()
    passes.run("cco", muted=lambda _: "silence 1: deploy")
    assert passes.run("oo") == []


def test_what_was_told_before_a_silence_is_told_to_have_ended_after_it() -> None:
    passes = Passes()
    passes.run("c")
    opened = passes.standings["labs/job"].incident
    assert passes.run("cooco", muted=lambda _: "silence 1: deploy") == []
    assert passes.run("o") == [Change.RECOVERED]
    assert opened is not None


def test_a_subject_that_left_the_packs_is_told_to_be_gone_after_a_day() -> None:
    standing = Standing("labs/gone")
    (fired,) = decide({}, [observation("c", "labs/gone")], START, ONCE)
    standings = {"labs/gone": fired.after}
    assert decide(standings, [], START + FORGET_AFTER, ONCE) == ()
    (gone,) = decide(standings, [], START + FORGET_AFTER + MINUTE, ONCE)
    assert (gone.cause, gone.change, gone.after.is_blank) == (Cause.REMOVED, Change.REMOVED, True)
    assert standing.is_blank


def test_a_subject_seen_again_after_two_days_is_not_also_gone() -> None:
    (fired,) = decide({}, [observation("c")], START, ONCE)
    (again,) = decide({"labs/job": fired.after}, [observation("c")], START + 2 * FORGET_AFTER, ONCE)
    assert again.cause is Cause.STILL_WRONG


@pytest.mark.parametrize(
    ("last", "quiet"),
    [
        (None, False),
        (LastPass(START - 3 * MINUTE), False),
        (LastPass(START - 4 * MINUTE), True),
        (LastPass(START - timedelta(hours=6), MINUTE), True),
        (LastPass(START - 5 * MINUTE, 5 * MINUTE), False),  # a timer slower than the settings say
        (LastPass(START + HOUR), False),  # the clock was set back
    ],
)
def test_a_gap_of_the_agent_itself_costs_one_quiet_pass(last: LastPass | None, quiet: bool) -> None:
    assert is_quiet(last, START, MINUTE) is quiet


def _notice(number: int, change: Change, status: Status, at: int, subject: str = "labs/job") -> Notice:
    """Row `number`, owed in minute `at`."""
    decisions = decide({}, [observation("c", subject)], START + at * MINUTE, ONCE)
    incident = decisions[0].incident
    assert incident is not None
    return Notice("telegram", change, status, incident, START, number)


def test_what_waits_together_is_told_in_its_current_state() -> None:
    """An alert, its worsening and two reminders that no server took are one alert, with the latest words."""
    changes = [Change.FIRED, Change.WORSE, Change.REMINDER, Change.REMINDER]
    (line,) = collapse(_notice(n, change, Status.CRIT, 0) for n, change in enumerate(changes, 1))
    assert (line.shown, line.covers, line.was_told, line.spells) == (Change.FIRED, (1, 2, 3, 4), False, 1)


def test_an_incident_that_ended_before_its_alert_got_out_is_told_as_ended_and_late() -> None:
    (line,) = collapse([_notice(1, Change.FIRED, Status.CRIT, 0), _notice(2, Change.RECOVERED, Status.OK, 0)])
    assert (line.shown, line.was_told) == (Change.RECOVERED, False)


def test_several_spells_of_one_subject_are_one_line() -> None:
    (line,) = collapse(
        [
            _notice(1, Change.RECOVERED, Status.OK, 0),
            _notice(2, Change.FIRED, Status.CRIT, 5),
            _notice(3, Change.RECOVERED, Status.OK, 5),
            _notice(4, Change.FIRED, Status.CRIT, 9),
        ]
    )
    assert (line.shown, line.spells, line.covers) == (Change.FIRED, 3, (1, 2, 3, 4))


def test_the_worst_comes_first_and_ends_come_last() -> None:
    lines = collapse(
        [
            _notice(1, Change.RECOVERED, Status.OK, 0, "a"),
            _notice(2, Change.FIRED, Status.WARN, 0, "b"),
            _notice(3, Change.FIRED, Status.CRIT, 0, "d"),
            _notice(4, Change.FIRED, Status.UNKNOWN, 0, "c"),
        ]
    )
    assert [line.notice.incident.subject for line in lines] == ["d", "c", "b", "a"]


def test_a_clock_set_back_after_an_alert_puts_off_its_reminder_by_no_more_than_one_wait() -> None:
    passes = Passes()
    passes._at = START + timedelta(days=1500)
    assert passes.run("c") == [Change.FIRED]
    passes._at = START
    assert passes.run("c" * 61) == [Change.REMINDER]
