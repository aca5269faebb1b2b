"""The daemon's json-file: read from its end, through rotation, damage and pieces."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
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

# The daemon writes no blanks between keys.
SEPARATORS = (",", ":")
T0 = datetime(2026, 3, 14, 8, tzinfo=UTC)
RUN = (
    'INFO:apscheduler.executors.default:Running job "{} (trigger: interval[0:05:00],'
    ' next run at: 2026-03-14 09:05:00 UTC)" (scheduled at 2026-03-14 09:00:00+00:00)\n'
)


def row(at: float, text: str, stream: str = "stderr") -> bytes:
    # The daemon trims trailing zeros of the fraction.
    stamp = (T0 + timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"
    value = {"log": text, "stream": stream, "time": stamp}
    return json.dumps(value, ensure_ascii=False, separators=SEPARATORS).encode() + b"\n"


def ns(at: float) -> int:
    return nanoseconds(T0 + timedelta(seconds=at))


@dataclass
class Look:
    reading: Reading
    records: list[Record] = field(default_factory=list)

    @property
    def runs(self) -> list[str | None]:
        return [event.name for event in parse(self.records) if event.kind is EventKind.RUNNING]

    @property
    def coverage(self) -> Coverage:
        assert self.reading.coverage is not None
        return self.reading.coverage


def look(
    path: Path, now: float, cursor: Cursor | None = None, window: timedelta = timedelta(hours=26)
) -> Look:
    clock = ManualClock(T0 + timedelta(seconds=now))
    source = open_source(LogSpec(path=str(path), format="json-file"), clock=clock, timeout=60.0)
    (container,) = source.containers()
    records: list[Record] = []
    reading = source.read(container, cursor, clock.now() - window, records.extend)
    return Look(reading, records)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c-json.log"


def test_a_read_goes_on_where_the_last_one_stopped(path: Path) -> None:
    path.write_bytes(row(0, "Scheduler started\n") + row(1, RUN.format("one")))
    first = look(path, 10)
    assert first.runs == ["one"]
    assert (first.coverage.from_ns, first.coverage.to_ns) == (ns(0), ns(10))
    assert first.reading.cursor == Cursor(ns(1), 1)

    with path.open("ab") as file:
        file.write(row(1, RUN.format("same stamp")) + row(11, RUN.format("two")))
    second = look(path, 20, first.reading.cursor)
    assert second.runs == ["same stamp", "two"]
    assert second.coverage == Coverage(ns(1), ns(20), reached_end=True, gap=False)
    assert look(path, 30, second.reading.cursor).records == []


def test_only_the_end_of_a_long_log_is_read(path: Path) -> None:
    with path.open("wb") as file:
        for second in range(40_000):
            file.write(row(second, f"filler {second} of the log\n"))
        file.write(row(40_000, RUN.format("late")))
    seen = look(path, 40_010, Cursor(ns(39_990), 1))
    assert seen.runs == ["late"]
    assert seen.reading.records == 10
    assert seen.reading.bytes <= 2 * BLOCK < path.stat().st_size


def test_a_window_ends_where_its_records_do(path: Path) -> None:
    path.write_bytes(b"".join(row(hour * 3600, RUN.format(str(hour))) for hour in range(40)))
    seen = look(path, 39 * 3600, window=timedelta(hours=2))
    assert seen.runs == ["37", "38", "39"]
    assert seen.coverage.from_ns == ns(37 * 3600)


def test_rotated_siblings_belong_to_the_log(path: Path) -> None:
    path.with_name(f"{path.name}.2.gz").write_bytes(
        gzip.compress(row(0, "oldest\n") + row(10, RUN.format("zipped")) + row(11, "RUN".ljust(16384, "x")))
    )
    path.with_name(f"{path.name}.1").write_bytes(row(11, "rest\n") + row(20, RUN.format("rotated")))
    path.write_bytes(row(30, RUN.format("current")))
    seen = look(path, 40)
    assert seen.runs == ["zipped", "rotated", "current"]
    assert seen.coverage.from_ns == ns(0)
    later = look(path, 40, Cursor(ns(20), 1))
    assert later.runs == ["current"]
    assert later.coverage.from_ns == ns(20)
    assert not later.coverage.gap


def test_records_that_went_before_they_were_read_leave_a_gap(path: Path) -> None:
    path.write_bytes(row(100, "what is left\n") + row(110, RUN.format("left")))
    seen = look(path, 120, Cursor(ns(50), 1))
    assert seen.runs == ["left"]
    assert seen.coverage == Coverage(ns(100), ns(120), reached_end=True, gap=True)


@pytest.mark.parametrize(
    "damage",
    [
        b"\0" * 300 + b"\n",
        b"\0\0\0\n" * 3,
        b'{"log":"half a rec\n',
        b"not json\n",
        b'{"log":5,"stream":"stdout","time":"2026-03-14T08:00:02Z"}\n',
    ],
)
def test_what_is_covered_begins_anew_behind_a_damaged_stretch(path: Path, damage: bytes) -> None:
    path.write_bytes(
        row(0, "x\n") + row(1, RUN.format("one")) + damage + row(3, "y\n") + row(4, RUN.format("two"))
    )
    seen = look(path, 10)
    assert seen.runs == ["one", "two"]
    assert seen.coverage == Coverage(ns(3), ns(10), reached_end=True, gap=True)
    assert "damaged" in seen.reading.notes[0]
    assert seen.reading.problem == ""
    assert look(path, 20, seen.reading.cursor).reading.notes == ()


@pytest.mark.parametrize("half", [b"\0\0\0", b'{"log":"INFO: half'])
def test_a_record_behind_a_torn_one_on_its_line_is_saved(path: Path, half: bytes) -> None:
    path.write_bytes(row(0, "x\n") + half + row(4, RUN.format("saved")))
    seen = look(path, 10)
    assert seen.runs == ["saved"]
    assert seen.coverage.gap


def test_a_record_that_is_being_written_waits_for_the_next_read(path: Path) -> None:
    whole = row(5, RUN.format("soon"))
    path.write_bytes(row(0, "x\n") + whole[:60])
    first = look(path, 10)
    assert first.runs == []
    assert first.reading.notes == ()
    path.write_bytes(row(0, "x\n") + whole)
    assert look(path, 20, first.reading.cursor).runs == ["soon"]


def test_pieces_of_a_long_line_are_joined_and_forge_nothing(path: Path) -> None:
    ghost = RUN.format("ghost").removeprefix("INFO:apscheduler.executors.default:")
    rows = [row(0, "DEBUG:body=".ljust(16384, "A"), "stdout")]
    rows += [row(0.5 + number / 100, "INFO: other\n") for number in range(20)]
    rows += [row(0, ghost.rstrip("\n").ljust(16384, " "), "stdout"), row(0, "end\n", "stdout")]
    rows += [row(9, json.dumps({"message": RUN.format("big")[35:-1], "body": "x" * 20000})[:16384], "stdout")]
    rows += [
        row(
            9, json.dumps({"message": RUN.format("big")[35:-1], "body": "x" * 20000})[16384:] + "\n", "stdout"
        )
    ]
    path.write_bytes(b"".join(rows))
    assert look(path, 10).runs == ["big"]
    # Entered in the middle, behind the body's beginning, the rest is still a rest.
    path.write_bytes(b"".join(rows[1:]))
    path.with_name(f"{path.name}.1").write_bytes(b"")
    assert look(path, 10).runs == ["big"]


def test_a_text_that_ends_in_a_backslash_and_n_is_no_line_end(path: Path) -> None:
    path.write_bytes(row(0, "prompt\\n") + row(0, "> rest\n") + row(1, RUN.format("x")))
    assert look(path, 10).runs == ["x"]
    assert look(path, 10).reading.records == 2


def test_an_empty_log_is_read_to_its_end(path: Path) -> None:
    path.write_bytes(b"")
    assert look(path, 10).reading.coverage is None
    assert look(path, 10).reading.problem == ""


def test_a_log_that_another_program_wrote_with_blanks_is_read_alike(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "SEPARATORS", (", ", ": "))
    path.write_bytes(
        b"".join(row(second, RUN.format(second)) for second in range(5000))
        + b'{"log": "torn'
        + row(5001, "x\n")
    )
    seen = look(path, 5010, Cursor(ns(4990), 1))
    assert seen.runs == [str(second) for second in range(4991, 5000)]
    assert seen.coverage.gap
    assert seen.reading.bytes < path.stat().st_size
