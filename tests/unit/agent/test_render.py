"""A pass as a table, as JSON and as a plugin's line."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_sched.agent.check import Node, PassReport, Result
from argus_sched.agent.render import NAGIOS_BYTES, as_json, nagios, table
from argus_sched.agent.status import Phase, Status

AT = datetime(2026, 3, 14, 10, tzinfo=UTC)


def job(number: int, status: Status = Status.OK, phase: Phase = Phase.FRESH, **more: object) -> Result:
    values = {
        "summary": "last run 47m ago, 17m over its limit",
        "name": f"Job number {number}",
        "last_run": AT - timedelta(minutes=47),
        "age_seconds": 2820.0,
        "limit_seconds": 1800.0,
        **more,
    }
    return Result("labs", "scheduler_jobs", f"labs/job_{number}", status, phase, **values)  # type: ignore[arg-type]  # a table of fields


LOCK = Result(
    "labs",
    "scheduler_lock",
    "labs/scheduler_lock",
    Status.OK,
    Phase.HELD,
    "held by pid 7, idle",
    details={"holders": 1, "holder_pid": 7, "holder_state": "idle", "holder_application": "w", "waiters": 0},
)
STALE = job(1, Status.CRIT, Phase.STALE, reason="a fire was skipped: 1 instance(s) still running " * 3)


def report(*results: Result, nodes: tuple[Node, ...] = (), complete: bool = True) -> PassReport:
    return PassReport(AT, results, nodes, complete, 0.25)


def test_the_table_is_worst_first_within_eighty_columns_and_says_why() -> None:
    lines = table(report(job(2), LOCK, STALE)).splitlines()
    assert lines[0].split() == ["STATUS", "PHASE", "AGE", "LIMIT", "TARGET"]
    assert lines[1].split() == ["CRIT", "stale", "47m", "30m", "labs/job_1"]
    assert lines[2].startswith("         last run 47m ago")
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "CRIT: 1 CRIT, 2 OK; 2026-03-14 10:00:00Z, 0.2 s"
    assert "\x1b" not in "".join(lines)


def test_colour_adds_escapes_and_nothing_else() -> None:
    coloured = table(report(job(2), STALE), colour=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == table(report(job(2), STALE))
    assert "\x1b" in coloured


def test_control_characters_of_foreign_texts_do_not_reach_the_terminal() -> None:
    text = table(report(job(1, Status.CRIT, Phase.STALE, reason="evil \x1b[2J name\nwith lines")))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text


def test_what_was_not_seen_or_not_kept_stands_in_the_last_line() -> None:
    node = Node("labs", "docker:web", None, False, "gone")
    blind = job(1, Status.UNKNOWN, Phase.BLIND, blind_by="docker:web")
    whole = PassReport(AT, (blind,), (node,), complete=False, seconds=45.0, state_saved=False)
    last = table(whole).splitlines()[-1]
    assert last.startswith("UNKNOWN: 1 UNKNOWN, 1 source unreadable, incomplete, state not saved;")


def test_json_has_every_target_with_what_its_kind_adds() -> None:
    node = Node("labs", "docker:web", None, False, "gone")
    blind = job(3, Status.UNKNOWN, Phase.BLIND, blind_by="docker:web", last_run=None, age_seconds=None)
    document = json.loads(as_json(report(STALE, LOCK, blind, nodes=(node,))))
    assert (document["status"], document["at"]) == ("CRIT", "2026-03-14T10:00:00Z")
    stale, lock, hidden = document["results"]
    assert {key: stale[key] for key in ("app", "check", "target", "status", "phase", "last_run")} == {
        "app": "labs",
        "check": "scheduler_jobs",
        "target": "labs/job_1",
        "status": "CRIT",
        "phase": "stale",
        "last_run": "2026-03-14T09:13:00Z",
    }
    assert (stale["age_seconds"], stale["limit_seconds"]) == (2820.0, 1800.0)
    assert (lock["holders"], lock["holder_pid"], lock["holder_state"], lock["waiters"]) == (1, 7, "idle", 0)
    assert (hidden["status"], hidden["blind_by"], hidden["last_run"]) == ("UNKNOWN", "docker:web", None)
    assert document["sources"] == [
        {"app": "labs", "source": "docker:web", "parent": None, "up": False, "problem": "gone"}
    ]


@pytest.mark.parametrize(
    ("status", "word"),
    [(Status.OK, "OK"), (Status.WARN, "WARNING"), (Status.CRIT, "CRITICAL"), (Status.UNKNOWN, "UNKNOWN")],
)
def test_the_plugin_line_begins_with_the_word_nagios_knows(status: Status, word: str) -> None:
    assert nagios(report(job(1, status))).startswith(f"ARGUS {word} - ")


def test_the_plugin_line_carries_ages_as_performance_data() -> None:
    line = nagios(report(STALE, LOCK))
    text, data = line.rstrip("\n").split(" | ")
    assert "labs/job_1: stale, last run 47m ago" in text
    assert data == "crit=1 unknown=0 warn=0 ok=1 'labs/job_1'=2820s;;1800;0"


@given(
    names=st.lists(st.text(max_size=80), max_size=300),
    status=st.sampled_from(Status),
)
def test_the_plugin_line_is_one_line_of_8_kib_with_one_bar_whatever_the_names(
    names: list[str], status: Status
) -> None:
    results = [
        Result(
            "labs",
            "scheduler_jobs",
            f"labs/{name}",
            status,
            Phase.STALE,
            name,
            age_seconds=1e9,
            limit_seconds=60.0,
        )
        for name in names
    ]
    line = nagios(report(*results))
    assert len(line.encode(errors="replace")) <= NAGIOS_BYTES
    assert line.count("\n") == 1
    assert line.count("|") == 1
