"""`argus-sched demo` as a newcomer runs it: the story comes out right, and nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PATIENCE = 300.0


def environment(folder: Path) -> dict[str, str]:
    """This environment with a temporary folder of the test's own, and without a bot."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ARGUS_TELEGRAM")}
    return {**kept, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "argus_sched", "demo"]
    return subprocess.Popen(
        command,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path that Postgres's own user may enter."""
    path = Path("/tmp") / f"argus-demo-test-{os.getpid()}-{time.monotonic_ns() % 10**9}"
    path.mkdir(mode=0o755)
    yield path
    shutil.rmtree(path)


def left_over(folder: Path) -> list[str]:
    """Processes that were started with this temporary folder and still live."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"TMPDIR={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(f"{process.name} {(process / 'cmdline').read_bytes()!r}")
    return found


def wait_for_none(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while left_over(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left_over(folder) == []


def test_it_tells_the_whole_story_and_leaves_only_its_report(folder: Path) -> None:
    demo = start(folder)
    text, _ = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 0, text
    story = " ".join(text.split())
    for sentence in (
        r"worker-\d \(process \d+\) leads\.",
        r'Running job "',
        r"OK held - - labs/scheduler_lock",
        r"leads [\d.]+ ms after the kill",
        r"stopped firing after [\d.]+ ms; worker-\d \(process \d+\) leads [\d.]+ ms after the cut",
        r'forgot one job: "Send booking reminder SMS"',
        r"what Telegram would show: 1 CRIT CRIT labs/booking_reminders Send booking reminder SMS",
        r"CRIT stale \d+s \d+s labs/booking_reminders",
        r"All is well, and the recovery was told too",
        r"\d+ runs were due: 0 were lost, 0 ran twice",
    ):
        assert re.search(sentence, story), f"{sentence!r} is missing in:\n{text}"
    assert [path.name.rpartition("-")[0] for path in folder.iterdir()] == ["argus-demo-report"]
    (report,) = folder.glob("*/report.html")
    assert str(report) in text
    wait_for_none(folder)


@pytest.mark.parametrize("stopped_by", [signal.SIGINT, signal.SIGTERM])
def test_it_leaves_nothing_when_it_is_stopped_in_the_middle(folder: Path, stopped_by: signal.Signals) -> None:
    demo = start(folder)
    assert demo.stdout is not None
    for line in demo.stdout:
        if "is killed" in line:
            break
    demo.send_signal(stopped_by)
    demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 130
    assert list(folder.iterdir()) == []
    wait_for_none(folder)
