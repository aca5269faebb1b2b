"""`argus-sched discover`: a log goes in, a pack comes out that the agent reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from argus_sched import due_times
from argus_sched.agent.config.pack_files import load_pack
from argus_sched.agent.packs import JobsCheck, JobSpec, LogSpec
from argus_sched.cli import main

START = datetime(2026, 3, 13, 6, tzinfo=UTC)


def lines(name: str, trigger: str, *hours: float) -> list[str]:
    """What `docker logs -t` shows of a job that ran these hours after the start."""
    dues = [START + timedelta(hours=hour) for hour in hours]
    return [
        f"{due:%Y-%m-%dT%H:%M:%S}.{place:09d}Z INFO:apscheduler.executors.default:"
        f'Running job "{name} (trigger: {trigger}, next run at: {due + timedelta(hours=1):%Y-%m-%d %H:%M:%S} UTC)"'
        f" (scheduled at {due:%Y-%m-%d %H:%M:%S}+00:00)\n"
        for place, due in enumerate(dues)
    ]


LOG = [
    *lines("Send booking reminder SMS", "interval[0:15:00]", 0, 0.25, 0.5, 0.75),
    *lines("Daily maintenance jobs", "cron[hour='6', minute='0']", 0, 24),
    *lines("Service Desk inbound email intake (IMAP → tickets)", "interval[0:05:00]", 1, 2, 3),
    *lines("Weekly report", "interval[7 days, 0:00:00]", 5),
]


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "labs.log"
    path.write_text("".join(sorted(LOG)), encoding="utf-8")
    return str(path)


def discovered(text: str, folder: Path) -> tuple[JobSpec, ...]:
    """The jobs of the pack that was printed."""
    path = folder / "pack.yaml"
    path.write_text(text, encoding="utf-8")
    (check,) = load_pack(str(path), {}).checks
    assert isinstance(check, JobsCheck)
    return check.jobs


def test_a_log_becomes_a_pack_whose_guesses_are_marked(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["discover", "--file", log]) == 0
    text = capsys.readouterr().out
    jobs = discovered(text, tmp_path)
    assert [(job.name, job.trigger, job.inferred) for job in jobs] == [
        ("Daily maintenance jobs", due_times.cron("0 6 * * *"), True),
        ("Send booking reminder SMS", due_times.every(minutes=15), True),
        ("Service Desk inbound email intake (IMAP → tickets)", due_times.every(hours=1), True),
    ]
    assert "# its trigger says 5m, its runs are 1h apart" in text
    assert '# seen once; its trigger says "interval[7 days, 0:00:00]"' in text
    assert '#- {id: "weekly_report", name: "Weekly report", every: 7d}' in text


def test_the_pack_reads_the_log_it_came_from(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["discover", "--file", log, "--app", "my labs"]) == 0
    path = tmp_path / "elsewhere.yaml"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    pack = load_pack(str(path), {})
    assert (pack.app, pack.logs) == ("my-labs", LogSpec(path=log, window=timedelta(days=2)))


def test_a_log_without_enough_runs_is_said_to_be_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "short.log"
    path.write_text("".join(lines("Weekly report", "interval[7 days, 0:00:00]", 5)))
    assert main(["discover", "--file", str(path)]) == 3
    printed = capsys.readouterr()
    assert "#- {id:" in printed.out
    assert "no job ran often enough to tell its trigger: try again when each ran twice" in printed.err


def test_a_job_that_was_added_and_did_not_run_yet_is_named_to_be_completed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    added = 'INFO:apscheduler.scheduler:Added job "Yearly report" to job store "default"\n'
    path = tmp_path / "young.log"
    path.write_text(f"2026-03-13T05:00:00.000000001Z {added}" + "".join(LOG[:4]))
    assert main(["discover", "--file", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "# added, and not seen to run\n      #- {id: " in printed
    assert [job.name for job in discovered(printed, tmp_path)] == ["Send booking reminder SMS"]


def test_a_log_without_any_run_asks_for_the_right_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nginx.log"
    path.write_text("2026-03-14T06:00:00.000000001Z GET / 200\n")
    assert main(["discover", "--file", str(path)]) == 3
    assert "no run of a job was read: is the logger `apscheduler` at INFO" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--file", "LOG", "--timezone", "Mars"], "time zone 'Mars' is not known here"),
        (["--file", "LOG", "--window", "soon"], "--window: expected a duration"),
        (["--file", "/nowhere/x.log"], "/nowhere/x.log"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_3(
    log: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["discover", *(log if word == "LOG" else word for word in arguments)]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_one_log_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["discover"])
    assert caught.value.code == 3
