"""Notices and what was learnt of the chats they are owed to, as rows; tables by incident_rows.MIGRATIONS."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from argus_sched.agent.status import Status
from argus_sched.agent.store.incident_rows import incident_from_json, incident_to_json
from argus_sched.agent.store.row_values import instant, optional_instant, optional_stamp, stamp, storable
from argus_sched.agent.telling.incidents import Incident
from argus_sched.agent.telling.notices import Change, Notice


@dataclass(frozen=True)
class Chat:
    """What sending taught about one chat of one channel.

    `moved_to` is its new id after a migration; `refused_at` since when it takes nothing until a person acts;
    `not_before` the earliest next attempt; `failures` attempts in a row that failed; `problem` the last one.
    """

    channel: str
    chat: str
    moved_to: str | None = None
    topic_gone: bool = False
    refused_at: datetime | None = None
    refused_why: str | None = None
    not_before: datetime | None = None
    failures: int = 0
    problem: str = ""
    accepted_at: datetime | None = None


@dataclass(frozen=True)
class Backlog:
    """How many notices wait, and since when the oldest does: for the metrics of the agent itself."""

    waiting: int
    oldest: datetime | None


def add_notice(connection: sqlite3.Connection, notice: Notice) -> None:
    """Owe `notice` to its channel."""
    connection.execute(
        """INSERT INTO notices (channel, incident_id, change, status, changes, at, incident)
        VALUES (?, ?, ?, ?, ?, ?, ?)""",
        (
            notice.channel,
            notice.incident.id,
            notice.change,
            notice.status,
            notice.changes,
            stamp(notice.at),
            incident_to_json(notice.incident),
        ),
    )


def unsent_notices(connection: sqlite3.Connection, channel: str) -> tuple[Notice, ...]:
    """What is owed to `channel`, oldest first."""
    rows = connection.execute(
        """SELECT number, change, status, changes, at, incident FROM notices
        WHERE channel = ? AND sent_at IS NULL ORDER BY number""",
        (channel,),
    )
    return tuple(
        Notice(
            channel,
            Change(change),
            Status(status),
            incident_from_json(incident),
            instant(at),
            number,
            changes,
        )
        for number, change, status, changes, at, incident in rows
    )


def mark_sent(
    connection: sqlite3.Connection, numbers: Iterable[int], at: datetime, message_id: str | None
) -> None:
    """The channel accepted these."""
    connection.executemany(
        "UPDATE notices SET sent_at = ?, message_id = ? WHERE number = ?",
        [(stamp(at), message_id, number) for number in numbers],
    )


def alert_message(connection: sqlite3.Connection, channel: str, incident: Incident) -> str | None:
    """The message that first told of `incident` in `channel`; None when none was accepted."""
    row = connection.execute(
        """SELECT message_id FROM notices WHERE incident_id = ? AND channel = ? AND message_id IS NOT NULL
        ORDER BY number LIMIT 1""",
        (incident.id, channel),
    ).fetchone()
    return None if row is None else str(row[0])


def backlog(connection: sqlite3.Connection, channels: Collection[str]) -> Backlog:
    """What waits for these channels; what is owed to one that the settings name no more waits for nobody."""
    rows = connection.execute(
        "SELECT channel, count(*), min(at) FROM notices WHERE sent_at IS NULL GROUP BY channel"
    )
    waiting = [(count, oldest) for channel, count, oldest in rows if channel in channels]
    oldest = min((oldest for _, oldest in waiting), default=None)
    return Backlog(sum(count for count, _ in waiting), optional_instant(oldest))


def load_chat(connection: sqlite3.Connection, channel: str, chat: str) -> Chat:
    """What is known of `chat`; a blank for one that was never used."""
    row = connection.execute(
        """SELECT moved_to, topic_gone, refused_at, refused_why, not_before, failures, problem, accepted_at
        FROM chats WHERE channel = ? AND chat = ?""",
        (channel, chat),
    ).fetchone()
    if row is None:
        return Chat(channel, chat)
    moved, topic_gone, refused, why, not_before, failures, problem, accepted = row
    return Chat(
        channel,
        chat,
        moved,
        bool(topic_gone),
        optional_instant(refused),
        why,
        optional_instant(not_before),
        failures,
        problem,
        optional_instant(accepted),
    )


def save_chat(connection: sqlite3.Connection, chat: Chat) -> None:
    """Keep what is known of `chat`."""
    connection.execute(
        "INSERT OR REPLACE INTO chats VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            chat.channel,
            chat.chat,
            chat.moved_to,
            chat.topic_gone,
            optional_stamp(chat.refused_at),
            chat.refused_why and storable(chat.refused_why),
            optional_stamp(chat.not_before),
            chat.failures,
            storable(chat.problem),
            optional_stamp(chat.accepted_at),
        ),
    )


def tally(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many notices there are, and how many of them their channel accepted."""
    made, accepted = connection.execute("SELECT count(*), count(sent_at) FROM notices").fetchone()
    return made, accepted
