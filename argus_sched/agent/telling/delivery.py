"""Sending what is owed: at least once, in one attempt for each pass, and never in the way of a pass.

A notice is a row before it is sent and is marked after the channel accepted it. A crash in between sends it
twice, with the same tag, and loses nothing. Whatever waits together, after a 429, an outage or a time-out, is
told together: the current state in one digest, not the old messages one by one.

    refusal              what follows
    RefusedError         the chat rests, its notices stay owed, the agent raises an alarm of its own;
                         one attempt an hour finds out when somebody repaired it
    ThrottledError       nothing for as long as the server says, at most an hour
    UnreachableError     a later pass tries again, ever more rarely down to every five minutes
    MovedError           the new chat is remembered, and the message goes there at once
    TopicGoneError       remembered; the message goes to the chat itself at once
    ContentRefusedError  the plain short text goes out at once
"""

from __future__ import annotations

import logging
import sqlite3
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from argus_sched.agent.store.incident_rows import open_incidents
from argus_sched.agent.store.notice_rows import (
    Chat,
    alert_message,
    load_chat,
    mark_sent,
    save_chat,
    unsent_notices,
)
from argus_sched.agent.telling.incidents import Incident
from argus_sched.agent.telling.messages import Digest, Message, compose
from argus_sched.agent.telling.notices import Change, Notice, collapse, sample_line
from argus_sched.agent.telling.notify_ports import (
    Accepted,
    ContentRefusedError,
    MovedError,
    Notifier,
    RefusedError,
    Route,
    ThrottledError,
    TopicGoneError,
    Transactions,
)
from argus_sched.errors import DeliveryError, StoreError

LONGEST_PAUSE = timedelta(hours=1)
REFUSED_PAUSE = timedelta(hours=1)
FIRST_BACKOFF = timedelta(seconds=15)
LONGEST_BACKOFF = timedelta(minutes=5)
# MovedError, without its topic, in plain text: each at most once for one message.
MOST_DETOURS = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Owed:
    """What one channel is owed at the beginning of its delivery."""

    chat: Chat
    notices: tuple[Notice, ...]
    open: tuple[Incident, ...]

    @property
    def is_nothing(self) -> bool:
        """Whether there is no reason to call the channel."""
        return not self.notices and not self.open


class Delivery:
    """Hands what is owed to one channel, and keeps what that teaches about its chat."""

    def __init__(self, store: Transactions, notifier: Notifier, *, state_saved: bool = True) -> None:
        self._store = store
        self._notifier = notifier
        self._state_saved = state_saved

    @property
    def channel(self) -> str:
        """The channel's word."""
        return self._notifier.name

    def deliver(self, now: datetime) -> str | None:
        """Send what the channel is owed at `now`; returns what went wrong, in a sentence."""
        try:
            return self._deliver(now)
        except (StoreError, sqlite3.Error) as error:
            return f"{self._notifier.name}: the store cannot be written, so nothing more is sent: {error}"

    def send_sample(self, now: datetime) -> str | None:
        """Send one message that shows what an alert looks like, even to a chat that rests; returns what went
        wrong. A success lets the chat take messages again."""
        with self._store.transaction() as connection:
            chat = load_chat(connection, self._notifier.name, self._notifier.chat)
        (message,) = compose(Digest(now, (sample_line(now),)), self._notifier.limit)
        return self._tell(message, chat, now)

    def _deliver(self, now: datetime) -> str | None:
        owed = self._look()
        if owed.is_nothing:
            return None
        if is_resting(owed.chat, now):
            return _waiting(self._notifier.name, len(owed.notices), owed.chat.problem)
        digest = Digest(now, collapse(owed.notices), owed.open, self._state_saved)
        for message in compose(digest, self._notifier.limit):
            problem = self._tell(message, owed.chat, now)
            if problem:
                return problem
        return None

    def _look(self) -> Owed:
        name = self._notifier.name
        with self._store.transaction() as connection:
            chat = load_chat(connection, name, self._notifier.chat)
            repeated = open_incidents(connection) if self._notifier.repeats else ()
            owed = Owed(chat, unsent_notices(connection, name), repeated)
            if owed.notices:
                # A store that takes no row now could not note the delivery either, and would tell again
                # at each pass.
                save_chat(connection, chat)
        return owed

    def _tell(self, message: Message, chat: Chat, now: datetime) -> str | None:
        """Send one message and settle it; the next message finds what this one taught in the store."""
        with self._store.transaction() as connection:
            chat = load_chat(connection, chat.channel, chat.chat)
            reply_to = _reply_target(connection, message, chat.channel)
        try:
            accepted = self._send(message, chat, reply_to)
        except DeliveryError as error:
            return self._learn(after_failure(self._chat(), error, now))
        with self._store.transaction() as connection:
            mark_sent(connection, message.covers, now, accepted.message_id)
            save_chat(connection, after_success(load_chat(connection, chat.channel, chat.chat), now))
        log.info("%s took a message of %d lines", chat.channel, len(message.lines))
        return None

    def _send(self, message: Message, chat: Chat, reply_to: str | None) -> Accepted:
        """One message, with the detours that need no waiting."""
        route = Route(chat.moved_to, not chat.topic_gone, reply_to)
        for _ in range(MOST_DETOURS):
            try:
                return self._notifier.send(message, route)
            except (MovedError, TopicGoneError, ContentRefusedError) as error:
                detour = around(route, error)
                if detour == route:
                    raise
                log.warning("%s", self._learn(learnt(self._chat(), error)))
                route = detour
        return self._notifier.send(message, route)

    def _chat(self) -> Chat:
        with self._store.transaction() as connection:
            return load_chat(connection, self._notifier.name, self._notifier.chat)

    def _learn(self, chat: Chat) -> str:
        with self._store.transaction() as connection:
            save_chat(connection, chat)
        return chat.problem


def _waiting(channel: str, number: int, problem: str) -> str:
    """That the chat is left alone meanwhile; `problem` names its channel already."""
    wait = "1 notice waits" if number == 1 else f"{number} notices wait"
    return f"{channel}: {wait}: {problem.removeprefix(f'{channel}: ')}"


def _reply_target(connection: sqlite3.Connection, message: Message, channel: str) -> str | None:
    """The alert that most of what is told again belongs to; a message can be a reply to one only."""
    known = [line.notice.incident for line in message.lines if line.shown is not Change.FIRED]
    alerts = Counter(found for one in known if (found := alert_message(connection, channel, one)))
    return max(alerts, key=alerts.__getitem__, default=None)


def around(route: Route, error: DeliveryError) -> Route:
    """The way past a refusal that names one; the same route when it was tried already."""
    if isinstance(error, MovedError):
        return replace(route, moved_to=error.chat, reply_to=None)
    if isinstance(error, TopicGoneError):
        return replace(route, in_topic=False)
    return replace(route, plain=True, reply_to=None)


def learnt(chat: Chat, error: DeliveryError) -> Chat:
    """What a detour teaches for all later messages."""
    problem = f"{chat.channel}: {error}"
    if isinstance(error, MovedError):
        return replace(chat, moved_to=error.chat, problem=problem)
    if isinstance(error, TopicGoneError):
        return replace(chat, topic_gone=True, problem=problem)
    return replace(chat, problem=problem)


def after_failure(chat: Chat, error: DeliveryError, now: datetime) -> Chat:
    """The chat after a message was not accepted: when to try again, and whether a person must act."""
    failures = chat.failures + 1
    failed = replace(chat, failures=failures, problem=f"{chat.channel}: {error}")
    if isinstance(error, RefusedError):
        return replace(
            failed,
            refused_at=chat.refused_at or now,
            refused_why=str(error),
            not_before=now + REFUSED_PAUSE,
        )
    return replace(failed, not_before=now + pause(error, failures))


def after_success(chat: Chat, now: datetime) -> Chat:
    """The chat after a message was accepted: whatever was wrong is over; where it moved to stays."""
    return replace(
        chat, refused_at=None, refused_why=None, not_before=None, failures=0, problem="", accepted_at=now
    )


def pause(error: DeliveryError, failures: int) -> timedelta:
    """How long to leave a channel alone: what the server says, else twice as long after each failure.

    The server's word has a ceiling, so that a broken proxy cannot silence us for a year.
    """
    if isinstance(error, ThrottledError):
        return timedelta(seconds=min(max(error.seconds, 1), LONGEST_PAUSE.total_seconds()))
    return min(FIRST_BACKOFF * (1 << min(failures - 1, 10)), LONGEST_BACKOFF)


def is_resting(chat: Chat, now: datetime) -> bool:
    """Whether `chat` must be left alone at `now`. An end further off than any pause was written by a clock
    that has been set back since."""
    return chat.not_before is not None and now < chat.not_before <= now + max(LONGEST_PAUSE, REFUSED_PAUSE)
