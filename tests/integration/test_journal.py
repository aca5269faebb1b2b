"""A systemd unit's messages, through the real journalctl from real journal files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from argus_sched.agent.logevents import Container, Coverage, Cursor, EventKind, Record
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.ports import Reading
from argus_sched.agent.reading.loglines import parse
from argus_sched.agent.reading.stamps import nanoseconds
from argus_sched.agent.sources import open_source
from argus_sched.clock import ManualClock, SystemClock
from argus_sched.errors import SourceError
from tests.integration.docker_host import DockerHost
from tests.integration.journal_files import UNIT, JournalFile, require

T0 = datetime(2026, 3, 14, 8, tzinfo=UTC)
RUN = (
    'INFO:apscheduler.executors.default:Running job "{} (trigger: interval[0:05:00],'
    ' next run at: 2026-03-14 09:05:00 UTC)" (scheduled at 2026-03-14 09:00:00+00:00)'
)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def ns(seconds: float) -> int:
    return nanoseconds(at(seconds))


@dataclass
class Look:
    """One read and what it gave."""

    reading: Reading
    container: Container
    records: list[Record] = field(default_factory=list)

    @property
    def runs(self) -> list[str | None]:
        return [event.name for event in parse(self.records) if event.kind is EventKind.RUNNING]

    @property
    def coverage(self) -> Coverage:
        assert self.reading.coverage is not None
        return self.reading.coverage


def look(
    journal: JournalFile,
    now: float,
    cursor: Cursor | None = None,
    *,
    window: timedelta = timedelta(hours=26),
    timeout: float = 60.0,
    unit: str = UNIT,
) -> Look:
    clock = ManualClock(at(now))
    spec = LogSpec(unit=unit, directory=str(journal.folder))
    source = open_source(spec, clock=clock, timeout=timeout)
    (container,) = source.containers()
    records: list[Record] = []
    reading = source.read(container, cursor, clock.now() - window, records.extend)
    source.close()
    return Look(reading, container, records)


@pytest.fixture
def journal(tmp_path: Path) -> JournalFile:
    """A unit that said 1,000 lines, one a second; every hundredth is a run."""
    require()
    journal = JournalFile(tmp_path / "journal")
    journal.started(at(-1))
    for second in range(1000):
        journal.say(RUN.format(second) if second % 100 == 0 else f"line {second}", at(second))
    journal.write()
    return journal


def test_a_first_read_covers_all_there_is_and_knows_when_the_unit_started(journal: JournalFile) -> None:
    seen = look(journal, 1010)
    assert seen.runs == [str(second) for second in range(0, 1000, 100)]
    assert seen.coverage == Coverage(ns(-1), ns(1010), reached_end=True)
    assert (seen.reading.problem, seen.reading.notes, seen.reading.cursor) == ("", (), Cursor(ns(999), 1))
    assert (seen.container.key, seen.container.started_at) == (UNIT, at(-1))


def test_the_next_read_goes_on_where_the_last_one_stopped(journal: JournalFile) -> None:
    first = look(journal, 1010)
    journal.say(RUN.format("same"), at(999))
    journal.say(RUN.format("new"), at(1011))
    journal.write()
    second = look(journal, 1020, first.reading.cursor)
    assert second.runs == ["same", "new"]
    assert second.coverage == Coverage(ns(999), ns(1020), reached_end=True)
    assert second.reading.bytes < first.reading.bytes / 10


def test_a_window_is_covered_and_no_more(journal: JournalFile) -> None:
    seen = look(journal, 1000, window=timedelta(seconds=350))
    assert seen.runs == ["700", "800", "900"]
    assert seen.coverage.from_ns == ns(650)


def test_a_quiet_window_of_a_unit_that_spoke_before_is_covered(journal: JournalFile) -> None:
    seen = look(journal, 5000, window=timedelta(seconds=600))
    assert (seen.runs, seen.coverage) == ([], Coverage(ns(4400), ns(5000), reached_end=True))


def test_what_the_journal_has_lost_is_a_gap(journal: JournalFile) -> None:
    cursor = look(journal, 1010).reading.cursor
    for second in range(2000, 2010):
        journal.say(f"line {second}", at(second))
    journal.forget(1003)
    journal.write()
    seen = look(journal, 2020, cursor)
    assert seen.coverage == Coverage(ns(2002), ns(2020), reached_end=True, gap=True)


def test_messages_that_journald_dropped_are_a_gap_and_told(journal: JournalFile) -> None:
    cursor = look(journal, 1010).reading.cursor
    journal.dropped(4711, at(1020))
    journal.say(RUN.format("after"), at(1021))
    journal.write()
    seen = look(journal, 1030, cursor)
    assert (seen.runs, seen.coverage) == (["after"], Coverage(ns(1020), ns(1030), reached_end=True, gap=True))
    assert "dropped 4711 messages" in seen.reading.notes[0]
    assert look(journal, 1040, seen.reading.cursor).coverage.gap is False


def test_a_clock_that_was_set_back_is_told(journal: JournalFile) -> None:
    cursor = look(journal, 1010).reading.cursor
    journal.say(RUN.format("an hour ago"), at(500))
    journal.write()
    seen = look(journal, 1020, cursor)
    assert (seen.runs, seen.reading.coverage) == ([], None)
    assert "was the clock set back?" in seen.reading.problem


def test_bytes_that_are_no_text_and_long_lines_are_read_and_forge_nothing(journal: JournalFile) -> None:
    journal.say(b"\xff\xfe \x1b[31m " + RUN.format("after bytes").encode(), at(1001))
    journal.say("x" * 49152, at(1002), _LINE_BREAK="line-max")
    journal.say("between", at(1002.1), _STREAM_ID="6" * 32)
    journal.say(RUN.format("ghost"), at(1002.2))
    journal.say(RUN.format("real"), at(1003))
    journal.say("Traceback:\n  line\n" + RUN.format("in a message of several lines"), at(1004))
    journal.write()
    assert look(journal, 1010).runs[-3:] == ["after bytes", "real", "in a message of several lines"]
    # A read that goes on between the pieces knows that the first one was broken off.
    assert look(journal, 1010, Cursor(ns(1002.1), 1)).runs[0] == "real"


def test_a_unit_without_an_entry_is_a_wrong_name_and_not_a_dead_job(journal: JournalFile) -> None:
    with pytest.raises(SourceError, match=r"no entry of nosuch\.service"):
        look(journal, 1010, unit="nosuch.service")


def test_a_folder_that_is_missing_or_holds_damage_is_told(journal: JournalFile, tmp_path: Path) -> None:
    (journal.folder / "user-1000.journal").write_bytes(b"LPKSHHRH" + b"\xff" * 4096)
    with pytest.raises(SourceError, match="journalctl: "):
        look(journal, 1010)
    journal.folder = tmp_path / "nowhere"
    with pytest.raises(SourceError, match="No such file or directory"):
        look(journal, 1010)


def test_memory_does_not_grow_with_the_journal(journal: JournalFile) -> None:
    for second in range(2000, 3000):
        journal.say(f"{second}" + "x" * 20000, at(second))
    journal.write()
    clock = ManualClock(at(3010))
    source = open_source(LogSpec(unit=UNIT, directory=str(journal.folder)), clock=clock, timeout=60.0)
    (container,) = source.containers()
    tracemalloc.start()
    try:
        reading = source.read(container, None, T0, lambda records: None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert reading.bytes > 20_000_000
    assert peak < 4_000_000


# --- a journalctl that fails


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is run as journalctl."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    file = folder / "journalctl"
    file.touch(mode=0o755)
    return file


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'No journal files were opened due to insufficient permissions.' >&2; exit 1", "systemd-journal"),
        ("echo 'Hint: You are currently not seeing messages from other users.' >&2", "systemd-journal"),
        ("echo 'Journal file x is truncated, ignoring file.' >&2", "is truncated, ignoring file"),
        ("exit 4", "exit code 4"),
        ("exec sleep 600", "was not read within 2 s"),
        ("while :; do echo MESSAGE=x; echo; done", "was not read within 2 s"),
    ],
)  # fmt: skip
def test_a_journal_that_cannot_be_read_to_its_end_is_a_problem(
    program: Path, tmp_path: Path, script: str, told: str
) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(SourceError, match=told):
        look(JournalFile(tmp_path / "journal"), 0, timeout=2.0)


def test_a_machine_without_a_journal_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match="cannot start journalctl"):
        look(JournalFile(tmp_path / "journal"), 0)


def test_a_read_that_breaks_off_counts_for_what_it_gave(journal: JournalFile, program: Path) -> None:
    real = next(path for path in ("/usr/bin/journalctl", "/bin/journalctl") if Path(path).exists())
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *--since*) {real} "$@" | head -c 20000; exit 1;; esac\nexec {real} "$@"\n'
    )
    seen = look(journal, 1010)
    assert seen.runs[:1] == ["0"]
    assert not seen.coverage.reached_end
    assert "exit code 1" in seen.reading.problem


# --- the whole agent


def test_a_unit_is_watched_from_the_command_line(tmp_path: Path) -> None:
    require()
    now = datetime.now(UTC)
    journal = JournalFile(tmp_path / "journal")
    journal.started(now - timedelta(hours=3))
    journal.say("INFO:apscheduler.scheduler:Scheduler started", now - timedelta(hours=3))
    journal.say(RUN.format("late"), now - timedelta(hours=2))
    journal.say(RUN.format("sync"), now - timedelta(minutes=1))
    journal.write()
    (tmp_path / "labs.yaml").write_text(
        "app: labs\nlogs: {journal: {unit: labs, directory: journal}}\n"
        "checks:\n  - kind: scheduler_jobs\n    jobs:\n"
        "      - {id: sync, name: sync, every: 15m}\n      - {id: late, name: late, every: 15m}\n"
    )
    (tmp_path / "argus.yaml").write_text(f"state: {tmp_path}/state.db\npacks: [labs.yaml]\n")
    command = [sys.executable, "-m", "argus_sched", "check", "--config", str(tmp_path / "argus.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if "labs/" in line]
    assert [(words[0], words[1], words[-1]) for words in lines] == [
        ("CRIT", "stale", "labs/late"),
        ("OK", "fresh", "labs/sync"),
    ]


# --- containers whose driver is journald, through a real daemon beside a real journald

# In a mount namespace of their own, so that neither meets a journald of the machine.
_JOURNALD = """
for folder in /run/systemd /run/log /var/log/journal; do mkdir -p $folder; mount -t tmpfs tmpfs $folder; done
mount --bind "$1" /etc/machine-id
mkdir -p /run/systemd/journal /run/log/journal/$(cat "$1")
exec /lib/systemd/systemd-journald
"""


@pytest.fixture
def journald_host(tmp_path: Path) -> Iterator[DockerHost]:
    """A Docker daemon that can write to a journal."""
    require()
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("a Docker daemon needs root and dockerd (Debian package docker.io)")
    if not Path("/etc/machine-id").exists():
        pytest.skip("this machine has no /etc/machine-id")
    machine = tmp_path / "machine-id"
    machine.write_text("0123456789abcdef0123456789abcdef\n")
    namespace = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _JOURNALD, "sh", str(machine)]
    journald = subprocess.Popen(namespace, stderr=subprocess.DEVNULL)
    within = ["nsenter", "--mount", f"--target={journald.pid}"]
    host = DockerHost(Path(tempfile.mkdtemp(prefix="argus-journald-")), within)
    try:
        wait_for_socket(journald)
        host.start()
        yield host
    finally:
        host.close()
        journald.kill()
        journald.wait()


def wait_for_socket(journald: subprocess.Popen[bytes]) -> None:
    """Wait until the journal takes messages."""
    path = Path(f"/proc/{journald.pid}/root/run/systemd/journal/socket")
    ends = time.monotonic() + 60
    while not path.exists():
        if journald.poll() is not None or time.monotonic() > ends:
            pytest.fail("journald does not start in a namespace of its own")
        time.sleep(0.05)


@pytest.mark.docker
def test_a_container_with_the_journald_driver_is_read_through_its_daemon(journald_host: DockerHost) -> None:
    # The text stands exactly where the second stored piece begins; journald stamps each piece anew.
    body = "DEBUG:app.http:body=".ljust(16384, "A") + RUN.format("ghost")
    lines = [body, RUN.format("real"), *["filler"] * 300]
    code = "import sys\n" + "\n".join(f"print({line!r}, file=sys.stderr, flush=True)" for line in lines)
    journald_host.run_python("web", code, driver="journald")
    journald_host.wait_for_exit("web")
    clock = SystemClock()
    source = open_source(LogSpec(container="web"), clock=clock, timeout=60, docker_host=journald_host.host)
    try:
        (container,) = source.containers()
        first: list[Record] = []
        reading = source.read(container, None, clock.now() - timedelta(hours=1), first.extend)
        again: list[Record] = []
        second = source.read(container, reading.cursor, clock.now() - timedelta(hours=1), again.extend)
    finally:
        source.close()
    assert (container.driver, reading.problem, reading.notes) == ("journald", "", ())
    assert reading.coverage is not None
    assert reading.coverage.reached_end
    assert [event.name for event in parse(first) if event.kind is EventKind.RUNNING] == ["real"]
    assert (again, second.problem) == ([], "")
