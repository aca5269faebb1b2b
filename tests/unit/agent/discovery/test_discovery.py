"""Packs written from a log: what is inferred, what is left out, and that the result can be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argus_sched import due_times
from argus_sched.agent.config.pack_files import load_pack
from argus_sched.agent.discovery.pack_text import app_from, job_ids, write_pack
from argus_sched.agent.discovery.sightings import Sighting, Sightings, guess, typical_gap
from argus_sched.agent.logevents import Event, EventKind
from argus_sched.agent.packs import DatabaseSpec, JobsCheck, LogSpec
from argus_sched.agent.reading.loglines import clean

START = datetime(2026, 3, 14, 10, tzinfo=UTC)
LOGS = LogSpec(container="labs-backend")


def run(name: str, at: datetime, trigger: str = "", kind: EventKind = EventKind.RUNNING) -> Event:
    stamp = int((at - due_times.EPOCH).total_seconds() * 10**9)
    return Event(kind, stamp, name=name, trigger=trigger or None, scheduled_at_utc=at)


def seen(*minutes: float, trigger: str = "", name: str = "A") -> Sighting:
    """A job that ran these minutes after the start."""
    sighting = Sighting(name)
    for minute in minutes:
        sighting.add(run(name, START + timedelta(minutes=minute), trigger))
    return sighting


@pytest.mark.parametrize(
    ("sighting", "written", "missing", "note"),
    [
        (seen(0), None, "seen once", ""),
        (seen(0, trigger="interval[0:15:00]"), "every: 15m", "seen once", ""),
        (seen(0, 0, 0), None, "seen once", ""),
        (seen(0, 15), "every: 15m", "seen twice", ""),
        (seen(0, 15, 30), "every: 15m", "", ""),
        (seen(0, 15, trigger="interval[0:15:00]"), "every: 15m", "", ""),
        (seen(0, 15.02, 29.99, 60, 75), "every: 15m", "", ""),
        (seen(0, 60, 120, trigger="date[2026-03-14 10:00:15 UTC]"), "every: 1h", "", ""),
        (seen(0, 1440, trigger="cron[hour='10', minute='0']"), 'cron: "0 10 * * *"', "", ""),
        (
            seen(0, 1440, trigger="cron[hour='11', minute='0']"),
            'cron: "0 11 * * *"',
            "its runs do not fit these times in UTC",
            "",
        ),
        (
            seen(0, 5, 10, 15, trigger="interval[0:01:00]"),
            "every: 5m",
            "",
            "its trigger says 1m, its runs are 5m apart",
        ),
        (
            seen(0, 40, 80, trigger="interval[1:00:00]"),
            "every: 1h",
            "",
            "its trigger says 1h, its runs are 40m apart",
        ),
    ],
)
def test_a_trigger_is_told_only_where_the_log_shows_it(
    sighting: Sighting, written: str | None, missing: str, note: str
) -> None:
    found = guess(sighting, "UTC")
    assert (found.trigger and found.trigger.written, found.missing, found.note) == (written, missing, note)


@pytest.mark.parametrize(
    ("seconds", "gap"),
    [
        ((0, 900.4, 1799.9), timedelta(minutes=15)),
        ((0, 86390, 172800), timedelta(days=1)),
        ((0, 5400, 10800), timedelta(minutes=90)),
        ((0, 45, 90), timedelta(seconds=45)),
        ((0, 0.05, 0.1), timedelta(seconds=1)),
        ((0, 60, 660, 720, 780), timedelta(minutes=1)),
    ],
)
def test_the_typical_gap_is_a_whole_number_of_a_unit(seconds: tuple[float, ...], gap: timedelta) -> None:
    assert typical_gap([START + timedelta(seconds=second) for second in seconds]) == gap


def test_only_runs_count_and_two_workers_are_one_job() -> None:
    sightings = Sightings()
    sightings.add([run("A", START), run("A", START), run("B", START), run("C", START, kind=EventKind.MISSED)])
    assert [(job.name, job.runs, len(job.dues)) for job in sightings.jobs()] == [("A", 2, 1), ("B", 1, 1)]


def test_the_pack_that_is_written_is_read_without_a_warning(tmp_path: Path) -> None:
    jobs = [
        seen(0, 15, 30, trigger="interval[0:15:00]", name="Send booking reminder SMS"),
        seen(0, 1440, trigger="cron[hour='10', minute='0']", name="Daily"),
        seen(0, trigger="interval[1 day, 0:00:00]", name="Nightly\nreport"),
    ]
    text, certain = write_pack("labs", LOGS, jobs, "UTC")
    path = tmp_path / "pack.yaml"
    path.write_text(text)
    pack = load_pack(str(path), {})
    (check,) = pack.checks
    assert isinstance(check, JobsCheck)
    assert certain == 2
    assert [(job.id, job.name, job.inferred) for job in check.jobs] == [
        ("send_booking_reminder_sms", "Send booking reminder SMS", True),
        ("daily", "Daily", True),
    ]
    assert pack.warnings == ()
    assert pack.logs == LogSpec(container="labs-backend", window=timedelta(days=2))
    assert '      # seen once; its trigger says "interval[1 day, 0:00:00]"\n' in text
    assert '      #- {id: "nightly_report", name: "Nightly\\nreport", every: 1d}\n' in text


def test_what_was_left_out_can_be_taken_in(tmp_path: Path) -> None:
    jobs = [seen(0, 15, 30), seen(0, trigger="interval[1 day, 0:00:00]", name="Nightly")]
    text, _ = write_pack("1st-labs", LOGS, jobs, "UTC")
    path = tmp_path / "pack.yaml"
    path.write_text(
        text.replace("#-", "-").replace("#  -", "  -").replace("#    key", "    key").replace("#data", "data")
    )
    pack = load_pack(str(path), {})
    assert len(pack.checks) == 2
    assert pack.databases == (DatabaseSpec("APP_1ST_LABS_DATABASE_URL"),)


@settings(max_examples=100, deadline=None)
@given(
    names=st.lists(st.text(min_size=1, max_size=30).filter(str.strip), min_size=1, max_size=5, unique=True)
)
def test_any_name_comes_back_to_the_letter(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    # A log's lines are read without terminal sequences, so no name that was seen holds one.
    names = [name for name in names if "\x1b" not in name or clean(name.encode(errors="replace")) == name]
    names = [name for name in names if name.encode(errors="replace").decode() == name]
    text, certain = write_pack("labs", LOGS, [seen(0, 15, 30, name=name) for name in [*names, "last"]], "UTC")
    path = tmp_path_factory.mktemp("packs") / "pack.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    (check,) = load_pack(str(path), {}).checks
    assert isinstance(check, JobsCheck)
    assert [job.name for job in check.jobs] == [*names, "last"]
    assert certain == len(check.jobs)


def test_ids_differ_whatever_the_names() -> None:
    assert job_ids(["A b", "a-B", "→", "job", "A b 2"]) == ["a_b", "a_b_2", "job", "job_2", "a_b_2_2"]


@pytest.mark.parametrize(
    ("text", "app"), [("labs-backend", "labs-backend"), ("my app!", "my-app"), ("→", "app"), ("_x", "x")]
)
def test_an_application_is_named_after_its_container(text: str, app: str) -> None:
    assert app_from(text) == app
