"""Incidents, standings and their history as rows of the agent's SQLite file.

The functions take a connection inside the store's transaction. MIGRATIONS makes the tables of everything
that is told: these, the notices and chats (notice_rows.py), the silences (silence_rows.py).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from argus_sched.agent.status import Phase, Status
from argus_sched.agent.store.row_values import instant, optional_instant, optional_stamp, stamp, storable
from argus_sched.agent.telling.incidents import Incident, Standing, Streak
from argus_sched.agent.telling.notices import Decision, LastPass
from argus_sched.agent.telling.silences import matches

KEEP = timedelta(days=90)

# One statement each; never edited once released, only added to.
MIGRATIONS: tuple[str, ...] = (
    """CREATE TABLE incidents (
        id TEXT PRIMARY KEY, subject TEXT NOT NULL, name TEXT NOT NULL, opened_at TEXT NOT NULL,
        closed_at TEXT, status INTEGER NOT NULL, phase TEXT NOT NULL, summary TEXT NOT NULL,
        reason TEXT NOT NULL, muted TEXT)""",
    "CREATE INDEX incidents_of_subject ON incidents (subject, opened_at)",
    "CREATE TABLE standings (subject TEXT PRIMARY KEY, state TEXT NOT NULL, body TEXT NOT NULL)",
    """CREATE TABLE transitions (
        number INTEGER PRIMARY KEY, at TEXT NOT NULL, subject TEXT NOT NULL, incident_id TEXT,
        from_state TEXT NOT NULL, to_state TEXT NOT NULL, from_status INTEGER NOT NULL,
        to_status INTEGER NOT NULL, cause TEXT NOT NULL, told TEXT, muted TEXT, summary TEXT NOT NULL)""",
    "CREATE INDEX transitions_of_subject ON transitions (subject, at)",
    """CREATE TABLE notices (
        number INTEGER PRIMARY KEY, channel TEXT NOT NULL, incident_id TEXT NOT NULL, change TEXT NOT NULL,
        status INTEGER NOT NULL, changes INTEGER NOT NULL, at TEXT NOT NULL, incident TEXT NOT NULL,
        sent_at TEXT, message_id TEXT)""",
    "CREATE INDEX notices_unsent ON notices (channel, number) WHERE sent_at IS NULL",
    "CREATE INDEX notices_of_incident ON notices (incident_id, channel, number)",
    """CREATE TABLE silences (
        number INTEGER PRIMARY KEY, match TEXT NOT NULL, until TEXT NOT NULL, reason TEXT NOT NULL,
        made_by TEXT NOT NULL, made_at TEXT NOT NULL, ended_at TEXT)""",
    """CREATE TABLE chats (
        channel TEXT NOT NULL, chat TEXT NOT NULL, moved_to TEXT, topic_gone INTEGER NOT NULL DEFAULT 0,
        refused_at TEXT, refused_why TEXT, not_before TEXT, failures INTEGER NOT NULL DEFAULT 0,
        problem TEXT NOT NULL DEFAULT '', accepted_at TEXT, PRIMARY KEY (channel, chat))""",
    """CREATE TABLE told_passes (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1), at TEXT NOT NULL, gap_seconds REAL)""",
    "CREATE TABLE own_counts (name TEXT PRIMARY KEY, count INTEGER NOT NULL)",
)


@dataclass(frozen=True)
class Transition:
    """One step of a subject's history."""

    at: datetime
    subject: str
    incident_id: str | None
    from_state: str
    to_state: str
    from_status: Status
    to_status: Status
    cause: str
    told: str | None
    muted: str | None
    summary: str


def load_standings(connection: sqlite3.Connection) -> dict[str, Standing]:
    """Every subject that has something to remember."""
    rows = connection.execute("SELECT subject, body FROM standings")
    return {subject: standing_from_json(body) for subject, body in rows}


def save_decision(connection: sqlite3.Connection, decision: Decision, at: datetime) -> None:
    """Record what a pass did to one subject: standing, incident, and the history where it moved."""
    save_standing(connection, decision.after)
    if decision.incident is not None:
        _save_incident(connection, decision.incident, decision.muted)
    if decision.is_transition or decision.change:
        _add_transition(connection, decision, at)


def save_standing(connection: sqlite3.Connection, standing: Standing) -> None:
    """Keep `standing`; a blank one leaves no row."""
    subject = storable(standing.subject)
    if standing.is_blank:
        connection.execute("DELETE FROM standings WHERE subject = ?", (subject,))
        return
    connection.execute(
        "INSERT OR REPLACE INTO standings (subject, state, body) VALUES (?, ?, ?)",
        (subject, standing.state, standing_to_json(standing)),
    )


def open_incidents(connection: sqlite3.Connection) -> tuple[Incident, ...]:
    """What is wrong and was told: the incidents people know of, worst first."""
    standings = load_standings(connection).values()
    found = [
        s.incident for s in standings if s.incident and not s.incident.closed_at and s.told is not Status.OK
    ]
    return tuple(sorted(found, key=lambda incident: (-incident.status.severity, incident.subject)))


def recent_incidents(connection: sqlite3.Connection, subject: str, limit: int) -> tuple[Incident, ...]:
    """The last incidents of the subjects that match `subject`, newest first."""
    rows = connection.execute(f"SELECT {_INCIDENT} FROM incidents ORDER BY opened_at DESC")  # noqa: S608 constant
    found = (_incident(row) for row in rows)
    return tuple(incident for incident in found if matches(subject, incident.subject))[:limit]


def recent_transitions(connection: sqlite3.Connection, subject: str, limit: int) -> tuple[Transition, ...]:
    """The last steps of the subjects that match `subject`, newest first."""
    rows = connection.execute(
        "SELECT at, subject, incident_id, from_state, to_state, from_status, to_status, cause, told, muted,"
        " summary FROM transitions ORDER BY number DESC"
    )
    found = (
        Transition(instant(at), name, incident, before, after, Status(old), Status(new), *rest)
        for at, name, incident, before, after, old, new, *rest in rows
    )
    return tuple(step for step in found if matches(subject, step.subject))[:limit]


def acknowledge(connection: sqlite3.Connection, match: str) -> tuple[Incident, ...]:
    """Stop the reminders of the open incidents that `match` means, by tag or by target; returns them."""
    acked = []
    for standing in load_standings(connection).values():
        incident = standing.incident
        if incident is None or incident.closed_at is not None:
            continue
        if match.lstrip("#") == incident.id or matches(match, standing.subject):
            save_standing(connection, replace(standing, acked=True))
            acked.append(incident)
    return tuple(acked)


def acknowledged(connection: sqlite3.Connection) -> frozenset[str]:
    """The tags of the open incidents whose reminders somebody stopped."""
    standings = load_standings(connection).values()
    return frozenset(one.incident.id for one in standings if one.acked and one.incident)


def load_last_pass(connection: sqlite3.Connection) -> LastPass | None:
    """The pass before this one; None on the first."""
    row = connection.execute("SELECT at, gap_seconds FROM told_passes").fetchone()
    if row is None:
        return None
    return LastPass(instant(row[0]), None if row[1] is None else timedelta(seconds=row[1]))


def save_last_pass(connection: sqlite3.Connection, at: datetime, gap: timedelta | None) -> None:
    """Remember that a pass decided at `at`."""
    seconds = None if gap is None else gap.total_seconds()
    connection.execute("INSERT OR REPLACE INTO told_passes VALUES (1, ?, ?)", (stamp(at), seconds))


def prune(connection: sqlite3.Connection, at: datetime) -> None:
    """Forget what is older than ninety days and over."""
    horizon = stamp(at - KEEP)
    connection.execute("DELETE FROM incidents WHERE closed_at < ?", (horizon,))
    connection.execute("DELETE FROM transitions WHERE at < ?", (horizon,))
    connection.execute("DELETE FROM notices WHERE sent_at < ?", (horizon,))
    connection.execute("DELETE FROM silences WHERE until < ?", (horizon,))


def forget_everything(connection: sqlite3.Connection) -> None:
    """Empty the tables of what is told."""
    for table in ("incidents", "standings", "transitions", "notices", "silences", "chats", "told_passes"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 names of our own


def incident_to_json(incident: Incident) -> str:
    """`incident` as a JSON object."""
    return json.dumps(_plain_incident(incident))


def incident_from_json(text: str) -> Incident:
    """The incident `incident_to_json` wrote."""
    return _rich_incident(json.loads(text))


def standing_to_json(standing: Standing) -> str:
    """`standing` as a JSON object."""
    body = {field.name: getattr(standing, field.name) for field in fields(standing)}
    for key in ("level_since", "told_at", "seen_at"):
        body[key] = optional_stamp(body[key])
    if standing.streak:
        body["streak"] = {**vars(standing.streak), "since": stamp(standing.streak.since)}
    if standing.incident:
        body["incident"] = _plain_incident(standing.incident)
    return json.dumps(body)


def standing_from_json(text: str) -> Standing:
    """The standing `standing_to_json` wrote."""
    body = json.loads(text)
    for key in ("level_since", "told_at", "seen_at"):
        body[key] = optional_instant(body[key])
    for key in ("level", "told"):
        body[key] = Status(body[key])
    if body["streak"]:
        streak = body["streak"]
        body["streak"] = Streak(
            streak["course"], streak["passes"], instant(streak["since"]), Status(streak["worst"])
        )
    if body["incident"]:
        body["incident"] = _rich_incident(body["incident"])
    return Standing(**body)


_INCIDENT = "id, subject, opened_at, status, phase, summary, reason, name, closed_at"


def _incident(row: Any) -> Incident:
    number, subject, opened, status, phase, summary, reason, name, closed = row
    return Incident(
        number,
        subject,
        instant(opened),
        Status(status),
        Phase(phase),
        summary,
        reason,
        name,
        optional_instant(closed),
    )


def _plain_incident(incident: Incident) -> dict[str, Any]:
    return {
        **vars(incident),
        "opened_at": stamp(incident.opened_at),
        "closed_at": optional_stamp(incident.closed_at),
    }


def _rich_incident(body: Mapping[str, Any]) -> Incident:
    known = {
        **body,
        "opened_at": instant(body["opened_at"]),
        "closed_at": optional_instant(body["closed_at"]),
        "status": Status(body["status"]),
        "phase": Phase(body["phase"]),
    }
    return Incident(**known)


def _save_incident(connection: sqlite3.Connection, incident: Incident, muted: str | None) -> None:
    plain = {
        key: storable(value) if isinstance(value, str) else value
        for key, value in _plain_incident(incident).items()
    }
    connection.execute(
        """INSERT INTO incidents
            (id, subject, name, opened_at, closed_at, status, phase, summary, reason, muted)
        VALUES (:id, :subject, :name, :opened_at, :closed_at, :status, :phase, :summary, :reason, :muted)
        ON CONFLICT (id) DO UPDATE SET closed_at = excluded.closed_at, status = excluded.status,
            phase = excluded.phase, summary = excluded.summary, reason = excluded.reason,
            muted = coalesce(excluded.muted, muted)""",
        {**plain, "muted": muted},
    )


def _add_transition(connection: sqlite3.Connection, decision: Decision, at: datetime) -> None:
    before, after, incident = decision.before, decision.after, decision.incident
    connection.execute(
        """INSERT INTO transitions (at, subject, incident_id, from_state, to_state, from_status, to_status,
            cause, told, muted, summary) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            stamp(at),
            storable(before.subject),
            incident and incident.id,
            before.state,
            after.state,
            before.level,
            after.level,
            decision.cause,
            decision.change,
            decision.muted,
            storable(incident.summary) if incident else "",
        ),
    )
