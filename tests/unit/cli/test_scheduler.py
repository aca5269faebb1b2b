"""The scheduler's commands that need no database, and the tables they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from argus_sched.cli import main, tables

ROOT = Path(__file__).parents[3]
MODULE = """
from datetime import UTC, datetime, timedelta
from argus_sched import Scheduler, cron, every, once

scheduler = Scheduler("postgresql://127.0.0.1:1/x", namespace="shop", key={key})

@scheduler.job(every(minutes=15), id="reminders", name="Send → reminders")
def reminders(fire): ...

@scheduler.job(cron("0 6 * * 1-5", "Europe/Stockholm"), id="daily", name={name!r})
async def daily(): ...

@scheduler.job(once(datetime(2030, 1, 1, tzinfo=UTC)), id="launch", name="Launch")
def launch(): ...

{more}
no_scheduler = 7
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    return tmp_path


def write(folder: Path, name: str = "Daily jobs", key: int = 911_000_001, more: str = "") -> None:
    (folder / "shop_jobs.py").write_text(MODULE.format(name=name, key=key, more=more))
    (folder / "explodes.py").write_text("raise ValueError('at import,\\nsecond line')\n")
    (folder / "leaves.py").write_text("raise SystemExit(0)\n")
    (folder / "unsafe.py").write_text(
        "from argus_sched import Scheduler, Timing\n"
        "scheduler = Scheduler('postgresql://x/x', namespace='shop', timing=Timing(lease=1.0))\n"
    )


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "argus_sched", "scheduler", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SHOP_DATABASE_URL": "postgresql://x"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_pack_is_written_from_the_jobs_and_fits_them(folder: Path) -> None:
    done = run(folder, "pack", "shop_jobs:scheduler", "--container", "shop-backend")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "# Written by `argus-sched scheduler pack` from the declared jobs; compare later with --check.\n"
        "app: shop\n"
        "logs:\n"
        '  docker: {container: "shop-backend"}\n'
        "  window: 6d\n"
        "database: {dsn_env: SHOP_DATABASE_URL}\n"
        "checks:\n"
        "  - kind: scheduler_lock\n"
        "    key: 911000001\n"
        "  - kind: scheduler_jobs\n"
        "    jobs:\n"
        '      - {id: "reminders", name: "Send → reminders", every: 15m}\n'
        '      - {id: "daily", name: "Daily jobs", cron: "0 6 * * 1-5", timezone: Europe/Stockholm}\n'
        "      # launch: the agent cannot age the trigger date[2030-01-01 00:00:00 UTC]\n"
    )
    (folder / "shop.yaml").write_text(done.stdout)
    assert run(folder, "pack", "shop_jobs:scheduler", "--check", "shop.yaml").returncode == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"name": "Nightly jobs"},
            "job 'daily' is named 'Nightly jobs' in the code, but 'Daily jobs' in the pack",
        ),
        (
            {"more": "scheduler.add_job(lambda: 0, every(hours=1), id='new')"},
            "job 'new' is declared, but not in",
        ),
        ({"more": "scheduler._registry._jobs.pop('daily')"}, "job 'daily' is in the pack, but not declared"),
        ({"key": 5}, "the pack does not watch the lock 5 of this scheduler"),
    ],
)
def test_a_change_without_the_pack_is_noticed(folder: Path, change: dict[str, str], said: str) -> None:
    (folder / "shop.yaml").write_text(run(folder, "pack", "shop_jobs:scheduler").stdout)
    write(folder, **change)  # type: ignore[arg-type]  # the keys are the parameters
    done = run(folder, "pack", "shop_jobs:scheduler", "--check", "shop.yaml")
    assert done.returncode == 2
    assert said in done.stdout
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["pack", "shop_jobs"], "'shop_jobs' names no scheduler: use MODULE:ATTR"),
        (["pack", "no_such_module:x"], "there is no no_such_module:x"),
        (["pack", "shop_jobs:missing"], "there is no shop_jobs:missing"),
        (["pack", "shop_jobs:no_scheduler"], "shop_jobs:no_scheduler is int, not a Scheduler"),
        (["jobs"], "no database: give --dsn, or set ARGUS_SCHEDULER_DSN"),
        (["jobs", "--dsn-env", "NO_SUCH"], "no database: give --dsn, or set NO_SUCH"),
        (["jobs", "--dsn", "postgresql://postgres@127.0.0.1:1/x"], "the database cannot be asked"),
        (["migrate", "--dsn", "postgresql://postgres@127.0.0.1:1/x"], "the database cannot be asked"),
        (["jobs", "--dsn", "not a dsn"], "the DSN of the database cannot be read"),
        (["resign", "--dsn", "x"], "the following arguments are required: --namespace"),
        (["resign", "--dsn", "x", "--namespace", "x", "--cooldown", "nan"], "nan is not from 0 to 86400 sec"),
        (["resign", "--dsn", "x", "--namespace", "x", "--cooldown=-1"], "-1 is not from 0 to 86400 seconds"),
        (["resign", "--dsn", "x", "--namespace", "x", "--cooldown", "1m"], "1m is not from 0 to 86400 sec"),
        (["runs", "--dsn", "x", "--limit", "0"], "0 is not a whole number from 1 to"),
        (["runs", "--dsn", "x", "--limit", "ten"], "ten is not a whole number from 1 to"),
        (["run", "explodes:x"], "explodes cannot be imported: ValueError: at import, second line"),
        (["pack", "leaves:x"], "leaves cannot be imported: SystemExit: 0"),
        (["run", "unsafe:scheduler"], "nothing can run: unsafe timing: tick + tick_timeout"),
    ],
)
def test_trouble_is_one_line_and_exit_code_3(
    folder: Path,
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ARGUS_SCHEDULER_DSN", raising=False)
    monkeypatch.syspath_prepend(folder)
    try:
        code: int | str | None = main(["scheduler", *arguments])
    except SystemExit as ended:
        code = ended.code
    errors = capsys.readouterr().err
    assert code == 3
    assert said in errors
    assert "Traceback" not in errors


def test_a_wrong_declaration_is_told_by_the_commands(folder: Path) -> None:
    write(folder, more="scheduler.job(every(minutes=1), id='daily')(lambda: 0)")
    done = run(folder, "pack", "shop_jobs:scheduler")
    assert done.returncode == 3
    assert "the job id 'daily' is used twice" in done.stderr


ROWS = [
    {"job_id": "a", "due": datetime(2026, 3, 14, 10, tzinfo=UTC), "on": True, "error": None, "missed": 0},
    {"job_id": "long", "due": None, "on": False, "error": None, "missed": 12},
]


def test_a_table_is_aligned_and_leaves_empty_columns_out() -> None:
    assert tables.as_table(ROWS, ("job_id", "due", "on", "error", "missed")) == (
        "job id  due                       on   missed\n"
        "a       2026-03-14T10:00:00.000Z  yes  0\n"
        "long    -                         no   12"
    )
    assert tables.as_table([], ("job_id",)) == "nothing on record"
    wide = tables.as_table([{"error": "x" * 90 + "\nsecond line"}], ("error",))
    assert wide.splitlines()[1] == "x" * 89 + "…"


def test_json_holds_every_field() -> None:
    assert json.loads(tables.as_json(ROWS))[0] == {
        "job_id": "a",
        "due": "2026-03-14T10:00:00.000Z",
        "on": True,
        "error": None,
        "missed": 0,
    }
