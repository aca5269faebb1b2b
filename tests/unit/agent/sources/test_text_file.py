"""The text of `docker logs -t` in a file."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from argus_sched.agent.logevents import Coverage, Cursor, EventKind, Record
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.ports import Reading
from argus_sched.agent.reading.loglines import parse
from argus_sched.agent.reading.stamps import nanoseconds
from argus_sched.agent.sources import open_source
from argus_sched.agent.sources.blocks import BLOCK
from argus_sched.clock import ManualClock
from argus_sched.errors import SourceError

T0 = datetime(2026, 3, 14, 8, tzinfo=UTC)
RUN = (
    'Running job "{} (trigger: interval[0:05:00], next run at: 2026-03-14 09:05:00 UTC)"'
    " (scheduled at 2026-03-14 09:00:00+00:00)"
)


def line(at: float, text: str) -> bytes:
    return (T0 + timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%f000Z ").encode() + text.encode() + b"\n"


def ns(at: float) -> int:
    return nanoseconds(T0 + timedelta(seconds=at))


def look(path: Path, now: float, cursor: Cursor | None = None) -> tuple[Reading, list[str | None]]:
    clock = ManualClock(T0 + timedelta(seconds=now))
    written = (T0 + timedelta(seconds=now - 1)).timestamp()
    os.utime(path, (written, written))
    source = open_source(LogSpec(path=str(path)), clock=clock, timeout=60.0)
    (container,) = source.containers()
    records: list[Record] = []
    reading = source.read(container, cursor, clock.now() - timedelta(hours=26), records.extend)
    return reading, [event.name for event in parse(records) if event.kind is EventKind.RUNNING]


def test_a_read_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_bytes(line(0, RUN.format("one")))
    first, runs = look(path, 10)
    assert runs == ["one"]
    assert first.coverage == Coverage(ns(0), ns(10), reached_end=True)
    with path.open("ab") as file:
        file.write(line(5, RUN.format("two")))
    second, runs = look(path, 20, first.cursor)
    assert runs == ["two"]
    assert second.coverage == Coverage(ns(0), ns(20), reached_end=True)
    assert second.records == 1


def test_a_line_far_ahead_makes_nothing_that_follows_pass_for_old(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_bytes(line(-900, RUN.format("one")) + line(400 * 86400, "hello") + line(5, "x"))
    first, _ = look(path, 10)
    with path.open("ab") as file:
        file.write(line(15, RUN.format("two")))
    second, runs = look(path, 20, first.cursor)
    assert "two" in runs
    assert second.coverage is not None
    assert not second.coverage.gap


def test_only_the_end_of_a_long_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_bytes(
        b"".join(line(second, f"filler {second}") for second in range(30_000)) + line(30_000, RUN.format("x"))
    )
    reading, runs = look(path, 30_001, Cursor(ns(29_990), 1))
    assert runs == ["x"]
    assert reading.records == 10
    assert reading.bytes <= BLOCK < path.stat().st_size


def test_a_last_line_without_end_counts_once_its_writer_is_still(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_bytes(line(0, "x") + line(5, RUN.format("x"))[:-1])
    reading, runs = look(path, 10)
    assert runs == []
    clock = ManualClock(T0 + timedelta(hours=1))
    source = open_source(LogSpec(path=str(path)), clock=clock, timeout=60.0)
    records: list[Record] = []
    source.read(source.containers()[0], reading.cursor, T0, records.extend)
    assert [event.name for event in parse(records)] == ["x"]


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    source = open_source(LogSpec(path=str(tmp_path / "gone.log")), clock=ManualClock(), timeout=1.0)
    with pytest.raises(SourceError, match=r"cannot read the log .*gone\.log: No such file"):
        source.containers()


def test_a_file_that_goes_between_listing_and_reading_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_bytes(line(0, "x"))
    source = open_source(LogSpec(path=str(path)), clock=ManualClock(), timeout=1.0)
    (container,) = source.containers()
    path.unlink()
    reading = source.read(container, None, T0, lambda records: None)
    assert reading.coverage is None
    assert "No such file" in reading.problem
