"""`argus-sched simulate`: what would be graded when, from one read of a log, with nothing touched."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from argus_sched.agent.instants import rfc3339
from argus_sched.cli import main
from tests.unit.agent.test_runner import run_line

NOON = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
PACK = """\
app: labs
logs:
  file: {path: web.log, format: docker}
database: {dsn_env: NOWHERE}
checks:
  - {kind: scheduler_lock, key: 911000001}
  - kind: scheduler_jobs
    jobs:
      - {id: sync, name: sync orders, every: 15m, grace: 15m}
      - {id: nightly, name: nightly, every: 1d, enabled: false}
"""


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("ARGUS_CONFIG", raising=False)
    lines = [run_line(NOON - timedelta(minutes=minutes)) for minutes in range(180, -1, -15)]
    (tmp_path / "web.log").write_text("".join(lines))
    path = tmp_path / "labs.yaml"
    path.write_text(PACK)
    return path


def after(minutes: float) -> str:
    return rfc3339(NOON + timedelta(minutes=minutes))


def test_past_and_future_are_judged_from_one_read(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = [after(-7), after(0), after(15), after(30), after(30.1), after(60 * 24)]
    assert main(["simulate", str(pack), "--at", *times, "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [entry["at"] for entry in found] == times
    sync = [next(r for r in entry["results"] if r["target"] == "labs/sync") for entry in found]
    assert [result["phase"] for result in sync] == ["fresh", "fresh", "fresh", "late", "stale", "stale"]
    assert [result["age_seconds"] for result in sync[:4]] == [480, 0, 900, 1800]
    assert sync[0]["deadline"] == after(15)
    assert {r["phase"] for entry in found for r in entry["results"] if r["target"] == "labs/nightly"} == {
        "disabled"
    }


def test_the_table_has_a_column_for_each_time_and_says_when_it_turns_critical(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(pack), "--at", after(1), after(31)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[0] == "TARGET"
    assert lines[1].split() == [
        "labs/sync",
        "OK",
        "fresh",
        "CRIT",
        "stale",
        *f"{NOON + timedelta(minutes=30):%Y-%m-%d %H:%M:%SZ}".split(),
    ]
    assert lines[2].split() == ["labs/nightly", "OK", "disabled", "OK", "disabled", "-"]


def test_nothing_is_touched_and_no_lock_is_looked_at(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.name for path in pack.parent.iterdir())
    assert main(["simulate", str(pack), "--at", after(1)]) == 0
    assert sorted(path.name for path in pack.parent.iterdir()) == before
    assert "scheduler_lock" not in capsys.readouterr().out


def test_a_log_that_cannot_be_read_is_said_and_unknown(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pack.parent / "web.log").unlink()
    assert main(["simulate", str(pack), "--at", after(1)]) == 3
    printed = capsys.readouterr()
    assert "UNKNOWN blind" in printed.out
    assert "web.log" in printed.err


def test_the_usage_puts_the_pack_where_it_is_not_taken_for_a_time(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="3"):
        main(["simulate", "--at", after(1), str(pack)])
    told = capsys.readouterr().err
    assert "simulate PACK --at TIME [TIME ...]" in told
    assert f"'{pack}' is no instant with an offset: write for example 2026-03-14T10:00:00Z" in told


@pytest.mark.parametrize("arguments", [[], ["--at"], ["--at", "noon"], ["--at", "2026-03-14T12:00:00"]])
def test_without_an_instant_it_is_a_usage_error(pack: Path, arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="3"):
        main(["simulate", str(pack), *arguments])
