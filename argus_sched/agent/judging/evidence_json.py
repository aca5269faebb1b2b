"""Evidence as the text that the store keeps."""

from __future__ import annotations

import json
from typing import Any

from argus_sched.agent.instants import parse_rfc3339, rfc3339
from argus_sched.agent.judging.coverage import Span
from argus_sched.agent.judging.evidence import Evidence, Facts, Mark, Marks, Track
from argus_sched.agent.logevents import Cursor, EventKind

FORMAT = 1


def to_json(evidence: Evidence) -> str:
    """The evidence as compact JSON that `from_json` reads back unchanged."""
    return json.dumps(
        {
            "format": FORMAT,
            "jobs": {key: _facts_out(facts) for key, facts in evidence.jobs.items()},
            "scheduler": _facts_out(evidence.scheduler),
            "containers": {key: _track_out(track) for key, track in evidence.containers.items()},
            "first_sight": {name: rfc3339(at) for name, at in evidence.first_sight.items()},
            "heard_ns": evidence.heard_ns,
            "ran_ns": evidence.ran_ns,
            "ended_ns": evidence.ended_ns,
        },
        separators=(",", ":"),
    )


def from_json(text: str) -> Evidence:
    """The evidence in `text`; raises ValueError when it is none that this version can read."""
    try:
        found = json.loads(text)
        if found["format"] != FORMAT:
            raise ValueError(f"evidence has format {found['format']!r}, this version reads {FORMAT}")
        return Evidence(
            jobs={key: _facts_in(value) for key, value in found["jobs"].items()},
            scheduler=_facts_in(found["scheduler"]),
            containers={key: _track_in(value) for key, value in found["containers"].items()},
            first_sight={name: parse_rfc3339(at) for name, at in found["first_sight"].items()},
            heard_ns=found["heard_ns"],
            ran_ns=found["ran_ns"],
            ended_ns=found["ended_ns"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"evidence is malformed: {error!r}") from error


def _facts_out(facts: Facts) -> list[Any]:
    marks = {kind.value: _columns(found) for kind, found in facts.marks.items()}
    doubles = {fire: _columns(found) for fire, found in facts.doubles.items()}
    return [facts.first_ns, list(facts.trigger), marks, doubles]


def _facts_in(value: list[Any]) -> Facts:
    first_ns, (stamp_ns, trigger), marks, doubles = value
    return Facts(
        marks={EventKind(kind): _marks(columns) for kind, columns in marks.items()},
        first_ns=first_ns,
        trigger=(stamp_ns, trigger),
        doubles={fire: _marks(columns) for fire, columns in doubles.items()},
    )


def _columns(marks: Marks) -> list[list[Any]]:
    # A list for each field reads back twice as fast as a list for each mark.
    return [list(column) for column in zip(*marks, strict=True)]


def _marks(columns: list[list[Any]]) -> Marks:
    return tuple(map(Mark._make, zip(*columns, strict=True)))


def _track_out(track: Track) -> list[Any]:
    cursor = [track.cursor.stamp_ns, track.cursor.seen_at_stamp] if track.cursor else None
    return [track.id, [list(span) for span in track.spans], cursor, list(track.births)]


def _track_in(value: list[Any]) -> Track:
    # A file of an earlier version has no births.
    container_id, spans, cursor, births = value if len(value) > 3 else [*value, []]
    where = Cursor(*cursor) if cursor else None
    return Track(container_id, tuple(Span(*span) for span in spans), where, tuple(births))
