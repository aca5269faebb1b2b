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
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PATIENCE = 300.0


def environment(folder: Path) -> dict[str, str]:
    """This environment with a temporary folder of the test's own, and without a bot."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ARGUS_TELEGRAM")}
    return {**kept, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}


def start(folder: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "argus_sched", "demo", *arguments]
    return subprocess.Popen(
        command,
        env=environment(folder) | more,
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


def test_it_does_not_claim_that_a_chat_was_told_which_could_not_be_reached(folder: Path) -> None:
    bot = {"ARGUS_TELEGRAM_TOKEN": "123456:a-bot", "ARGUS_TELEGRAM_CHAT": "5"}
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"}
    demo = start(folder, **bot, **nowhere)
    text, _ = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 0, text
    story = " ".join(text.split())
    assert "which could not be reached" in story, text
    assert "to your chat." not in story, text


def leader_on(page: str) -> int | None:
    """The process number of the leader that the page shows; None while nobody leads."""
    found = re.search(r'id="leader">worker-\d \(process (\d+)\)', page)
    return int(found[1]) if found else None


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        body: str = answer.read().decode()
        return body


def wait_for_leader(url: str, wanted: Callable[[int], bool]) -> int:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        leader = leader_on(get(url))
        if leader is not None and wanted(leader):
            return leader
        time.sleep(0.1)
    raise AssertionError(f"no such leader on the page: {get(url)}")


@contextlib.contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A demo that is ended at the end, whatever the test found."""
    with start(folder, *arguments) as demo:
        try:
            yield demo
        finally:
            demo.terminate()
            demo.communicate(timeout=PATIENCE)


def test_it_can_be_kept_open_and_watched(folder: Path) -> None:
    with running(folder, "--serve") as demo:
        assert demo.stdout is not None
        lines = (re.search(r"http://127\.0\.0\.1:\d+/", line) for line in demo.stdout)
        url = next(found[0] for found in lines if found)
        first = wait_for_leader(url, lambda _: True)
        assert "labs/booking_reminders" in get(url)
        assert "argus_job_last_run_timestamp_seconds{" in get(f"{url}metrics")
        assert "<svg" in get(f"{url}report")
        os.kill(first, signal.SIGKILL)
        wait_for_leader(url, lambda leader: leader != first)
        demo.send_signal(signal.SIGINT)
        text = demo.stdout.read()
        demo.wait(PATIENCE)
    assert demo.returncode == 0, text
    assert [path.name.rpartition("-")[0] for path in folder.iterdir()] == ["argus-demo-report"]
    wait_for_none(folder)


@pytest.mark.parametrize("stopped_by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("moment", ["a Postgres of our own starts", "is killed"])
def test_it_leaves_nothing_when_it_is_stopped(folder: Path, stopped_by: signal.Signals, moment: str) -> None:
    demo = start(folder)
    assert demo.stdout is not None
    assert any(moment in line for line in demo.stdout)
    demo.send_signal(stopped_by)
    demo.communicate(timeout=PATIENCE)
    assert demo.returncode == (-9 if stopped_by == signal.SIGKILL else 130)
    wait_for_none(folder)
    assert list(folder.iterdir()) == []


def test_a_report_that_cannot_be_written_is_told_before_the_story(folder: Path) -> None:
    (folder / "file").touch()
    with running(folder, "--report", str(folder / "file")) as demo:
        assert demo.stdout is not None
        assert "the report cannot be written, name another folder" in demo.stdout.read()
    assert demo.returncode == 3
