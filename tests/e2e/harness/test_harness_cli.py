"""`argus-sched harness` as a person runs it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PATIENCE = 240.0


def harness(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "argus_sched", "harness", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE, env={**os.environ, **more}
    )


def test_list_names_every_fault_profile_guard_and_kind_of_line() -> None:
    done = harness("list")
    assert done.returncode == 0
    for word in ("pg_terminate_backend", "recipe", "jitter-hash", "namespaces"):
        assert word in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "--faults", "meteor"), "there is no fault 'meteor': use any of kill, pair,"),
        (("run", "--without", "gravity", "--faults", "none"), "there is no guard 'gravity' to switch off"),
        (("run", "--dsn", "postgresql://127.0.0.1:1/x", "--faults", "crash"), "is not the harness's"),
        (("run", "--workers", "0", "--faults", "none"), "at least one worker"),
        (("run", "--duration", "soon", "--faults", "none"), "expected a duration such as"),
        (("run", "--dsn", "", "--faults", "none"), "--dsn is empty"),
        (("run", "--dsn", "postgresql://127.0.0.1:1/x", "--faults", "none"), "the database cannot be used: "),
        (("run", "--report", "/proc/nowhere", "--faults", "none"), "the report cannot be written"),
        (("replay", "/nowhere"), "is no report of a run"),
        (("failover", "--kill", "--dsn", "postgresql://127.0.0.1:1/x"), "the database does not answer"),
    ],
)
def test_what_cannot_be_run_is_one_sentence_and_exit_code_3(arguments: tuple[str, ...], says: str) -> None:
    done = harness(*arguments)
    assert done.returncode == 3
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_run_writes_json_report_and_history_and_can_be_replayed(tmp_path: Path) -> None:
    settings = ("--profile", "fast", "--jobs", "5", "--duration", "1s", "--faults", "kill", "--seed", "5")
    done = harness("run", *settings, "--output", "json", "--report", str(tmp_path / "first"))
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert (verdict["held"], verdict["seed"], verdict["max_holders"]) == (True, 5, 1)
    assert verdict["dues"]["lost"] == verdict["dues"]["doubled"] == 0
    assert verdict["faults"]["kill"]["promotion_ms"]["max"] > 0
    assert "kill -9 of the leader" in done.stderr
    again = harness("replay", str(tmp_path / "first"), "--report", str(tmp_path / "second"))
    assert again.returncode == 0, again.stdout + again.stderr
    runs = [json.loads((tmp_path / name / "report.json").read_text()) for name in ("first", "second")]
    assert runs[0]["run"] == runs[1]["run"]
    assert [list(run["faults"]) for run in runs] == [["kill"], ["kill"]]
    for name in ("report.html", "report.json", "history.jsonl", "logs"):
        assert (tmp_path / "second" / name).exists()


@pytest.mark.slow
def test_a_violated_run_exits_1_and_names_job_and_due_time() -> None:
    settings = ("--profile", "fast", "--jobs", "5", "--duration", "1s", "--faults", "freeze", "--seed", "1")
    done = harness("run", *settings, "--without", "catch-up")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "VIOLATED" in done.stdout
    assert "was lost: no body ran" in done.stdout


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path that Postgres's own user may enter."""
    path = Path("/tmp") / f"argus-h-{os.getpid()}-{time.monotonic_ns() % 10**9}"
    path.mkdir(mode=0o755)
    yield path
    shutil.rmtree(path)


@contextlib.contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A run whose every file lies in `folder`."""
    command = [sys.executable, "-m", "argus_sched", "harness", "run", *arguments]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        yield run


@pytest.mark.slow
@pytest.mark.parametrize("stopped_by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize(
    ("moment", "arguments"),
    [
        ("starting", ("--faults", "none")),
        ("starting", ("--faults", "none", "--uvicorn")),
        ("SIGSTOP", ("--faults", "freeze", "--profile", "fast")),
        ("forks a child", ("--faults", "fork")),
        ("every job has run", ("--faults", "none", "--coordination", "redis")),
        pytest.param("a pooler", ("--faults", "pooler"), marks=pytest.mark.pgbouncer),
    ],
)
def test_a_stopped_run_leaves_no_process_and_no_file(
    folder: Path, stopped_by: signal.Signals, moment: str, arguments: tuple[str, ...]
) -> None:
    with running(folder, "--jobs", "3", *arguments) as run:
        assert run.stdout is not None
        assert any(moment in line for line in run.stdout)
        time.sleep(0.5)  # into it, wherever that is
        run.send_signal(stopped_by)
    assert run.returncode == (-9 if stopped_by == signal.SIGKILL else 130)
    deadline = time.monotonic() + PATIENCE
    while (alive := processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive == []
    assert list(folder.iterdir()) == []


def processes_of(folder: Path) -> list[str]:
    """The processes that were started with this temporary folder, or work in it."""
    mark, found = f"TMPDIR={folder}".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            inherits = mark in (process / "environ").read_bytes().split(b"\0")
            if inherits or (process / "cwd").readlink().is_relative_to(folder):
                found.append(process.name)
    return found
