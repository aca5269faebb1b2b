"""How fast logs are read, beside plain tools on the same bytes in the same run.

    python tests/bench/bench_reading.py [MEGABYTES]

Writes a log of one run line in two hundred (40 jobs, 53 lines a second) as text, as the daemon's json-file and
as the daemon's frames, and reads each. A ratio is speed: ours by the plain tool's, best of three.
"""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

from argus_sched.agent.logevents import Cursor, Record
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.reading.loglines import LineParser
from argus_sched.agent.reading.speech import places
from argus_sched.agent.reading.stamps import nanoseconds
from argus_sched.agent.sources import open_source
from argus_sched.agent.sources.answer import Answer, Deadline
from argus_sched.agent.sources.blocks import BLOCK, blocks
from argus_sched.agent.sources.facts import LogFacts
from argus_sched.agent.sources.intake import Intake
from argus_sched.agent.sources.tail import TailReading
from argus_sched.clock import ManualClock

NEEDLE = b"Running job "
START = datetime(2026, 3, 13, 8, tzinfo=UTC)
STEP = timedelta(seconds=1 / 53)
ORDINARY = (
    'INFO:     172.18.0.1:{0} - "GET /api/v1/orders/{0} HTTP/1.1" 200 OK',
    "INFO:app.tasks:refreshed {0} feeds in 0.4s",
    "DEBUG:sqlalchemy.engine.Engine:SELECT orders.id, orders.total FROM orders WHERE orders.id = {0}",
    'HTTP Request: GET http://indexer:8001/api/v1/health?probe={0} "HTTP/1.1 200 OK"',
)
RUN = (
    'INFO:apscheduler.executors.default:Running job "task_{0} (trigger: interval[0:05:00],'
    ' next run at: {1:%Y-%m-%d %H:%M:%S} UTC)" (scheduled at {1:%Y-%m-%d %H:%M:%S.%f}+00:00)'
)
# What the daemon itself manages, measured on dockerd 20.10: the ceiling of any reading through it.
DAEMON_RECORDS_PER_SECOND = 127_000


def main(megabytes: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="argus-bench-") as folder:
        text, json_file, frames = (Path(folder) / name for name in ("web.log", "web-json.log", "web.frames"))
        end = write_logs(megabytes * 1_000_000, text, json_file, frames)
        print(
            f"one log of {text.stat().st_size / 1e6:.0f} MB as text, {json_file.stat().st_size / 1e6:.0f} MB as json-file"
        )
        print_rates(text, json_file, end)
        print_steady(json_file, end)
        print_frames(frames)


def print_rates(text: Path, json_file: Path, end: datetime) -> None:
    """Whole files, beside grep on the same bytes."""
    grep = best(lambda: grep_lines(text))
    rows = [
        ("grep -cF", text, grep),
        (
            "find the run lines (one needle)",
            text,
            best(lambda: count(text, lambda block: block.count(NEEDLE))),
        ),
        ("find every event's place", text, best(lambda: count(text, lambda block: len(places(block))))),
        ("read text to events", text, best(lambda: read(LogSpec(path=str(text)), end, None))),
    ]
    grep_json = best(lambda: grep_lines(json_file))
    whole = LogSpec(path=str(json_file), format="json-file")
    rows_json = [
        ("grep -cF, json-file", json_file, grep_json),
        ("read json-file to events", json_file, best(lambda: read(whole, end, None))),
    ]
    print(f"{'':34}{'GB/s':>8}{'ratio':>8}")
    for group, base in ((rows, grep), (rows_json, grep_json)):
        for name, path, seconds in group:
            print(f"{name:34}{path.stat().st_size / seconds / 1e9:8.2f}{base / seconds:8.2f}")


def print_steady(json_file: Path, end: datetime) -> None:
    """The read that a check makes each minute."""
    cursor = Cursor(nanoseconds(end - timedelta(minutes=1)), 1)
    spec = LogSpec(path=str(json_file), format="json-file")
    print(f"json-file, a minute since the last read: {best(lambda: read(spec, end, cursor)) * 1000:.1f} ms")


def print_frames(path: Path) -> None:
    """Our own part of a full read through the daemon."""
    data = path.read_bytes()
    last = data[data.rfind(struct.pack(">B3x", 2)) :]
    records = 0

    def work() -> None:
        nonlocal records
        parser = LineParser()

        def take(batch: Iterable[Record]) -> None:
            feed(parser, batch)

        intake = Intake(None, 0, take)
        reading = TailReading(
            lambda tail: answer(last if tail == 1 else data),
            intake,
            None,
            0,
            facts=LogFacts(0, rotates=False, ended=False),
            seconds=600,
        )
        reading.run()
        records = intake.records

    seconds = best(work)
    share = records / DAEMON_RECORDS_PER_SECOND
    print(
        f"frames to events: {records / seconds:,.0f} records/s, {seconds / share:.0%} of the daemon's own time"
    )


def answer(data: bytes) -> Answer:
    """What the daemon would send, from memory."""

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(data), 1 << 16):
            yield data[at : at + (1 << 16)]

    body = SimpleNamespace(blocks=pieces, close=lambda: None, cut=lambda: None)
    return Answer(body, tty=False, deadline=Deadline(600))


def read(spec: LogSpec, now: datetime, cursor: Cursor | None) -> int:
    """One read of a file, parsed; returns the number of events."""
    source = open_source(spec, clock=ManualClock(now), timeout=600)
    parser, events = LineParser(), 0

    def take(records: Iterable[Record]) -> None:
        nonlocal events
        events += feed(parser, records)

    (container,) = source.containers()
    reading = source.read(container, cursor, START - timedelta(days=1), take)
    if reading.problem:
        raise RuntimeError(reading.problem)
    return events


def feed(parser: LineParser, records: Iterable[Record]) -> int:
    """The number of events in a batch."""
    return sum(len(parser.feed(record)) for record in records)


def count(path: Path, work: Callable[[bytes], int]) -> int:
    """The sum of `work` over a file's blocks."""
    with path.open("rb") as file:
        return sum(map(work, blocks(file, BLOCK)))


def grep_lines(path: Path) -> int:
    """The plain tool. Its output must go somewhere: for /dev/null it stops at the first match."""
    result = subprocess.run(["grep", "-cF", NEEDLE, path], check=True, stdout=subprocess.PIPE)
    return int(result.stdout)


def best(work: Callable[[], object]) -> float:
    """The shortest of three runs, in seconds."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def write_logs(size: int, *paths: Path) -> datetime:
    """The same lines in three forms; returns the instant of the last."""
    generator = random.Random(7)
    written, number, moment = 0, 0, START
    with paths[0].open("wb") as text, paths[1].open("wb") as json_file, paths[2].open("wb") as frames:
        while written < size:
            moment = START + number * STEP
            stamp = moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + f"{number % 1000:03}Z"
            written += write_line(stamp, line(number, moment, generator), text, json_file, frames)
            number += 1
    return moment


def line(number: int, moment: datetime, generator: random.Random) -> str:
    """One line of the log."""
    if number % 200:
        return generator.choice(ORDINARY).format(generator.randrange(65536))
    return RUN.format(number // 200 % 40, moment)


def write_line(stamp: str, said: str, text: BinaryIO, json_file: BinaryIO, frames: BinaryIO) -> int:
    """Write one record in each form; returns its length as text."""
    plain = f"{stamp} {said}\n".encode()
    text.write(plain)
    value = {"log": f"{said}\n", "stream": "stderr", "time": stamp}
    json_file.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
    frames.write(struct.pack(">B3xI", 2, len(plain)) + plain)
    return len(plain)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
