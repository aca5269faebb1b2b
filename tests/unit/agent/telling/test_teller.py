"""The teller over random lives: whatever is seen and whatever the channel does, told once and ended once."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from argus_sched.agent.check import PassReport, Result
from argus_sched.agent.config.notify_policy import NotifySettings
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.store.incident_rows import MIGRATIONS, open_incidents
from argus_sched.agent.store.notice_rows import backlog
from argus_sched.agent.telling.messages import NO_LIMIT, Message
from argus_sched.agent.telling.notify_ports import Accepted, Route, ThrottledError, UnreachableError
from argus_sched.agent.telling.teller import IncidentTeller

START = datetime(2026, 3, 14, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
CALM = 70
SEEN = {"o": (Status.OK, Phase.FRESH), "c": (Status.CRIT, Phase.STALE)}
# The channel takes it, fails, takes it and fails to say so, or wants to be left alone.
OUTCOMES = st.sampled_from("++++-?!")


class MemoryStore:
    """The tables, in memory."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        for statement in MIGRATIONS:
            self._connection.execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The one connection."""
        yield self._connection

    def close(self) -> None:
        """Close it."""
        self._connection.close()


class MoodyChannel:
    """Takes messages by a list of moods; after its end it takes all."""

    name = "telegram"
    chat = "-100"
    limit = NO_LIMIT
    repeats = False
    trouble = ""

    def __init__(self, moods: str) -> None:
        self._moods = list(moods)
        self.taken: list[str] = []

    def send(self, message: Message, route: Route) -> Accepted:
        """As the next mood says."""
        mood = self._moods.pop(0) if self._moods else "+"
        if mood in "+?":
            self.taken.append(message.text)
        if mood == "!":
            raise ThrottledError("leave me alone", 90)
        if mood in "-?":
            raise UnreachableError("no answer")
        return Accepted(str(len(self.taken)))

    def close(self) -> None:
        """Nothing to close."""


def report(at: datetime, letters: dict[str, str]) -> PassReport:
    """A pass."""
    results = [
        Result("labs", "scheduler_jobs", target, *SEEN[letter], f"it is {letter}")
        for target, letter in letters.items()
    ]
    return PassReport(at, tuple(results), (), complete=True, seconds=0.0)


def spells(letters: str) -> int:
    """How many times it went wrong, by eye."""
    return len(re.findall("c+", letters))


@settings(max_examples=200, deadline=None)
@given(st.text("oc", max_size=25), st.text("oc", max_size=25), st.text(OUTCOMES, max_size=8))
def test_every_spell_is_told_and_ended_and_repeated_only_where_the_channel_left_a_doubt(
    first: str, second: str, moods: str
) -> None:
    length = max(len(first), len(second))
    # A long quiet end, so that flapping and every pause are over.
    lives = {
        "labs/a": first.ljust(length, "o") + "o" * CALM,
        "labs/b": second.ljust(length, "o") + "o" * CALM,
    }
    store, channel = MemoryStore(), MoodyChannel(moods)
    teller = IncidentTeller(store, [channel], NotifySettings(), MINUTE)
    for number in range(length + CALM):
        at = START + number * MINUTE
        with store.transaction() as connection:
            teller.decide(connection, report(at, {name: life[number] for name, life in lives.items()}), at)
        teller.deliver(at)
    with store.transaction() as connection:
        assert backlog(connection, [channel.name]).waiting == 0
        states = connection.execute("SELECT count(*) FROM incidents WHERE closed_at IS NULL").fetchone()
    store.close()
    assert states == (0,)
    _judge(channel.taken, lives, doubts=moods.count("?"), failures=len(moods) - moods.count("+"))


def _judge(taken: list[str], lives: dict[str, str], doubts: int, failures: int) -> None:
    text = "\n".join(taken)
    lines = Counter(re.findall(r"^(?:CRIT|OK|flapping|steady) labs/\w$", text, flags=re.MULTILINE))
    for target, life in lives.items():
        if spells(life) == 0:
            assert target not in text
            continue
        told = sum(count for line, count in lines.items() if line.endswith(target))
        # Flapping begins with the sixth change at the earliest, and its end is one line more.
        assert told <= 2 * spells(life) + doubts + (spells(life) > 2)
        assert f"OK {target}" in text or f"steady {target}\nOK now" in text
        if spells(life) <= 2 and failures == 0:
            assert told == 2 * spells(life)


def test_a_channel_that_cannot_send_is_an_incident_of_the_agent_before_there_is_anything_to_send() -> None:
    store, channel = MemoryStore(), MoodyChannel("")
    channel.trouble = "the variable BOT_TOKEN is not set"
    teller = IncidentTeller(store, [channel], NotifySettings(), MINUTE)
    fine = Result("labs", "scheduler_jobs", "labs/a", Status.OK, Phase.FRESH, "ran")
    with store.transaction() as connection:
        teller.decide(connection, PassReport(START, (fine,), (), complete=True, seconds=0.0), START)
        (found,) = open_incidents(connection)
    assert (found.subject, found.status) == ("argus/telegram", Status.CRIT)
    assert teller.own_state().refused == ("telegram: the variable BOT_TOKEN is not set",)
    store.close()
