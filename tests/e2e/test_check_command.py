"""`argus-sched check` and `explain` as an operator runs them: a log, a real database, a state file, a process."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest

from argus_sched.agent.instants import rfc3339
from argus_sched.agent.reading.stamps import format_stamp, nanoseconds
from argus_sched.agent.store.sqlite import Store
from argus_sched.postgres.embedded import free_port
from tests.fakes.bot_api import TOKEN, BotApi

KEY = 911_000_001
MINUTE = timedelta(minutes=1)
PACK = """\
app: labs
logs:
  file: {path: web.log, format: docker}
database: {dsn_env: LABS_DATABASE_URL}
checks:
  - kind: scheduler_lock
    key: 911000001
    takeover: 75s
  - kind: scheduler_jobs
    jobs:
      - {id: booking_reminders, name: "Send booking reminder SMS", every: 15m}
      - {id: desk_email_intake, name: "Service Desk inbound email intake (IMAP → tickets)", every: 5m}
      - {id: nightly, name: "Nightly report", every: 1d, enabled: false}
"""


class Site:
    """One watched application in a folder, and the command that watches it."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder = folder
        self.log = folder / "web.log"
        self.state = folder / "state" / "state.db"
        self.config = folder / "argus.yaml"
        self.pack = folder / "labs.yaml"
        self.pack.write_text(PACK)
        self.configure()
        self.environ = {**os.environ, "LABS_DATABASE_URL": dsn, "XDG_STATE_HOME": str(folder / "xdg")}
        self.say("Send booking reminder SMS", datetime.now(UTC) - MINUTE)
        self.say("Service Desk inbound email intake (IMAP → tickets)", datetime.now(UTC) - MINUTE)

    def configure(self, more: str = "") -> None:
        self.config.write_text(f"state: {self.state}\npacks: [labs.yaml]\n{more}")

    def say(self, name: str, at: datetime) -> None:
        """One run line in the log."""
        fire = f"{at:%Y-%m-%d %H:%M:%S}"
        line = (
            f'{format_stamp(nanoseconds(at))} INFO:apscheduler.executors.default:Running job "{name} (trigger: '
            f'interval[0:05:00], next run at: {fire} UTC)" (scheduled at {fire}+00:00)\n'
        )
        with self.log.open("a", encoding="utf-8") as file:
            file.write(line)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "argus_sched", *arguments]
        return subprocess.Popen(
            command,
            text=True,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """(exit code, stdout, stderr)."""
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=120)
            return process.returncode, out, err

    def check(self, *arguments: str) -> tuple[int, str, str]:
        return self.run("check", "--config", str(self.config), *arguments)

    def results(self, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
        """(exit code, result by target)."""
        code, out, _ = self.check("--output", "json", *arguments)
        return code, {result["target"]: result for result in json.loads(out)["results"]}


@pytest.fixture
def holder(database: str) -> Iterator[psycopg.Connection]:
    """A session that holds the lock and sits idle."""
    with psycopg.connect(database, autocommit=True, application_name="labs-worker") as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [KEY])
        yield connection


@pytest.fixture
def site(tmp_path: Path, database: str, holder: psycopg.Connection) -> Site:
    """An application in good health."""
    return Site(tmp_path, database)


def later(**length: float) -> str:
    return rfc3339(datetime.now(UTC) + timedelta(**length))


def test_good_health_is_exit_code_0_and_a_table_of_every_target(site: Site) -> None:
    code, out, err = site.check()
    assert (code, err) == (0, "")
    assert [line.split()[-1] for line in out.splitlines()[1:5]] == [
        "labs/booking_reminders",
        "labs/desk_email_intake",
        "labs/nightly",
        "labs/scheduler_lock",
    ]
    assert "OK: 4 OK;" in out
    assert max(map(len, out.splitlines())) <= 80


def test_json_says_what_is_known_of_jobs_and_lock(site: Site, holder: psycopg.Connection) -> None:
    code, results = site.results()
    assert code == 0
    lock = results["labs/scheduler_lock"]
    assert (lock["status"], lock["holders"], lock["holder_pid"]) == ("OK", 1, holder.info.backend_pid)
    assert (lock["holder_state"], lock["holder_application"], lock["waiters"]) == ("idle", "labs-worker", 0)
    job = results["labs/booking_reminders"]
    assert (job["app"], job["check"], job["status"], job["phase"]) == (
        "labs",
        "scheduler_jobs",
        "OK",
        "fresh",
    )
    assert 59 <= job["age_seconds"] < 120
    assert job["limit_seconds"] == 1800
    assert results["labs/nightly"]["phase"] == "disabled"


def test_now_past_a_limit_is_2_names_the_job_and_leaves_no_trace(site: Site) -> None:
    code, out, _ = site.check("--now", later(minutes=20))
    assert code == 2
    assert re.search(r"CRIT +stale +2[01]m\d*s? +15m +labs/desk_email_intake", out)
    assert re.search(r"OK +late .* labs/booking_reminders", out)
    assert not site.state.exists()


def test_a_lock_that_nobody_holds_is_2(site: Site, holder: psycopg.Connection) -> None:
    holder.execute("SELECT pg_advisory_unlock(%s)", [KEY])
    code, results = site.results()
    assert code == 2
    assert (results["labs/scheduler_lock"]["phase"], results["labs/scheduler_lock"]["holders"]) == (
        "unheld",
        0,
    )
    assert results["labs/booking_reminders"]["status"] == "OK"


def test_a_database_that_is_away_is_3_and_the_jobs_are_judged(site: Site) -> None:
    site.environ["LABS_DATABASE_URL"] = f"postgresql://postgres:hunter2@127.0.0.1:{free_port()}/labs"
    code, out, err = site.check()
    assert code == 3
    assert re.search(r"UNKNOWN +blind +- +- +database:labs", out)
    assert "labs/scheduler_lock" not in out
    assert "hunter2" not in out + err
    _, results = site.results()
    assert results["labs/scheduler_lock"]["blind_by"] == "database:labs"
    assert results["labs/booking_reminders"]["status"] == "OK"


def test_a_log_that_is_gone_is_3_one_line_and_every_target_in_the_json(site: Site) -> None:
    site.log.unlink()
    code, out, _ = site.check()
    assert code == 3
    assert len(re.findall("UNKNOWN +blind", out)) == 1
    assert "hides 2 checks" in " ".join(out.split())
    _, results = site.results()
    node = f"file:{site.log}"
    for target in ("labs/booking_reminders", "labs/desk_email_intake"):
        assert (results[target]["status"], results[target]["blind_by"]) == ("UNKNOWN", node)
    assert results["labs/scheduler_lock"]["status"] == "OK"


def test_an_unset_variable_makes_the_lock_unknown_and_names_the_variable(site: Site) -> None:
    del site.environ["LABS_DATABASE_URL"]
    code, results = site.results()
    assert code == 3
    assert "LABS_DATABASE_URL" in results["labs/scheduler_lock"]["reason"]


def test_the_evidence_outlives_the_log(site: Site) -> None:
    assert site.check()[0] == 0
    site.log.write_text("")
    site.say("a stranger", datetime.now(UTC))
    code, results = site.results()
    assert (code, results["labs/booking_reminders"]["phase"]) == (0, "fresh")


def test_a_selection_is_shown_and_counted_alone(site: Site, holder: psycopg.Connection) -> None:
    holder.execute("SELECT pg_advisory_unlock(%s)", [KEY])
    code, out, _ = site.check("--only", "*booking*")
    assert code == 0
    assert "scheduler_lock" not in out
    assert site.check("--only", "*lock")[0] == 2
    code, _, err = site.check("--only", "nobody")
    assert (code, "no target matches" in err) == (3, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense"],
        ["--output", "xml"],
        ["--now", "yesterday"],
        ["--now", "2026-03-14T10:00:00"],
        ["--now", "0001-01-01T00:00:00+14:00"],
        ["--now", "1969-12-31T23:59:59Z"],
        ["--timeout", "soon"],
        ["--pack", "/nowhere/labs.yaml"],
        ["--config", "/nowhere/argus.yaml"],
    ],
)
def test_wrong_usage_is_3_in_one_breath_and_never_a_traceback(site: Site, arguments: list[str]) -> None:
    code, out, err = site.check(*arguments)
    assert (code, out) == (3, "")
    assert "argus-sched" in err
    assert "Traceback" not in err


def test_one_wrong_pack_is_a_message_and_an_unknown_while_the_others_are_watched(
    site: Site, holder: psycopg.Connection
) -> None:
    other = site.folder / "shop.yaml"
    other.write_text("app: shop\nlgos: {}\n")
    with BotApi() as bot:
        site.environ["BOT_TOKEN"] = TOKEN
        site.configure(f"telegram: {{token_env: BOT_TOKEN, chat_id: -100777, api_url: {bot.url}}}\n")
        site.config.write_text(site.config.read_text().replace("[labs.yaml]", "[labs.yaml, shop.yaml]"))
        code, out, err = site.check()
        assert (code, err) == (3, "")
        assert "OK       fresh" in out
        assert f"pack:{other}" in bot.delivered[-1].text
        assert "did you mean 'logs'?" in bot.delivered[-1].text
        code, _, err = site.check("--pack", str(other))
        assert (code, "did you mean 'logs'?" in err) == (3, True)


def test_help_is_0(site: Site) -> None:
    code, out, _ = site.run("check", "--help")
    assert code == 0
    assert "--textfile" in out


def test_the_textfile_holds_every_target_whatever_is_shown(site: Site) -> None:
    prom = site.folder / "argus.prom"
    assert site.check("--textfile", str(prom), "--only", "*lock")[0] == 0
    text = prom.read_text()
    assert 'argus_check_status{app="labs",check="scheduler_jobs",target="labs/booking_reminders"} 0.0' in text
    assert 'argus_scheduler_lock_holders{app="labs"} 1.0' in text
    assert prom.stat().st_mode & 0o777 == 0o644


def test_a_textfile_that_cannot_be_written_is_3(site: Site) -> None:
    code, out, err = site.check("--textfile", "/nowhere/argus.prom")
    assert code == 3
    assert "OK: 4 OK" in out
    assert "/nowhere" in err


def test_a_crit_stays_2_when_the_textfile_cannot_be_written(site: Site) -> None:
    assert site.check("--textfile", "/nowhere/argus.prom", "--now", later(hours=2))[0] == 2


def test_a_reader_of_the_table_that_goes_away_costs_no_metrics(site: Site) -> None:
    prom = site.folder / "argus.prom"
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        command = [sys.executable, "-m", "argus_sched", "check", "--config", str(site.config)]
        done = subprocess.run(
            [*command, "--textfile", str(prom)],
            env=site.environ,
            stdout=pipe,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (3, b"")
    assert "argus_last_pass_timestamp_seconds" in prom.read_text()


def test_the_plugin_line(site: Site) -> None:
    code, out, _ = site.check("--output", "nagios")
    assert code == 0
    assert out.startswith("ARGUS OK - OK: 4 OK;")
    assert out.count("\n") == 1
    assert "'labs/booking_reminders'=" in out


@pytest.mark.parametrize("damage", ["text", "newer"])
def test_a_state_file_that_cannot_be_used_is_one_message_and_3(site: Site, damage: str) -> None:
    assert site.check()[0] == 0
    if damage == "text":
        site.state.with_name("state.db-wal").unlink(missing_ok=True)
        site.state.write_text("no database " * 500)
    else:
        connection = sqlite3.connect(site.state)
        with connection:
            connection.execute("UPDATE schema_steps SET steps = 999")
        connection.close()
    code, out, err = site.check("--no-notify")
    assert code == 3
    assert str(site.state) in err
    assert ("newer" if damage == "newer" else "damaged") in err
    assert "state not saved" in out
    assert "OK" in out
    assert "Traceback" not in err


def test_a_state_folder_that_cannot_be_made_is_judged_and_marked(site: Site) -> None:
    (site.folder / "state").write_text("a file where a folder should be")
    code, out, err = site.check("--no-notify")
    assert code == 3
    assert "labs/booking_reminders" in out
    assert "state not saved" in out
    assert str(site.folder / "state") in err


def test_a_second_run_waits_and_says_who_holds_the_state(site: Site) -> None:
    script = (
        "import sys, pathlib; from argus_sched.agent.store.run_lock import run_lock; "
        "from argus_sched.clock import SystemClock\n"
        "with run_lock(pathlib.Path(sys.argv[1]), 1, SystemClock()): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(site.state)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        code, out, err = site.check()
        assert (code, out) == (3, "")
        assert f"pid {first.pid}" in err
        first.kill()


def test_two_runs_at_once_both_come_to_a_verdict(site: Site) -> None:
    arguments = ["check", "--config", str(site.config)]
    processes = [site.start(*arguments) for _ in range(2)]
    for process in processes:
        with process:
            process.communicate(timeout=120)
            assert process.returncode == 0


def test_a_run_killed_at_any_moment_leaves_a_state_the_next_one_can_use(site: Site) -> None:
    for delay in (0.1, 0.2, 0.3, 0.45):
        with site.start("check", "--config", str(site.config)) as process:
            try:
                process.wait(timeout=delay)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
    code, out, err = site.check()
    assert (code, err) == (0, "")
    assert "state not saved" not in out


def test_a_database_that_never_answers_ends_with_the_deadline_and_3(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        site.environ["LABS_DATABASE_URL"] = f"postgresql://postgres@127.0.0.1:{port}/labs"
        code, out, _ = site.check("--timeout", "2s")
    assert code == 3
    assert "database:labs" in out
    assert "labs/booking_reminders" in out


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """A server that notes every GET: (its URL, the paths)."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/ping", paths
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("arguments", "beats"),
    [((), 1), (("--no-notify",), 0), (("--now", "2026-03-14T10:00:00Z"), 0)],
)
def test_the_heartbeat_follows_a_complete_pass_that_may_tell(
    site: Site, listener: tuple[str, list[str]], arguments: Sequence[str], beats: int
) -> None:
    url, paths = listener
    site.configure(f"heartbeat_url: {url}\n")
    site.check(*arguments)
    assert paths == ["/ping"] * beats


def test_a_heartbeat_that_fails_is_a_warning_and_no_verdict(site: Site) -> None:
    site.configure(f"heartbeat_url: http://127.0.0.1:{free_port()}/ping\n")
    code, _, err = site.check()
    assert code == 0
    assert "heartbeat" in err


INTAKE = "Service Desk inbound email intake (IMAP → tickets)"


@pytest.fixture
def chat(site: Site) -> Iterator[BotApi]:
    """A Bot API that the site tells; one job of the site has been silent for too long."""
    site.environ["BOT_TOKEN"] = TOKEN
    site.log.unlink()
    for name, minutes in (("a stranger", 40), (INTAKE, 20), ("Send booking reminder SMS", 10)):
        site.say(name, datetime.now(UTC) - minutes * MINUTE)
    with BotApi() as api:
        site.configure(f"telegram: {{token_env: BOT_TOKEN, chat_id: -100777, api_url: {api.url}}}\n")
        yield api


def test_a_dead_job_is_told_once_and_its_recovery_once(site: Site, chat: BotApi) -> None:
    assert site.check("--no-notify")[0] == 2
    assert site.check("--now", later(minutes=1))[0] == 2
    assert chat.delivered == []
    for expected in (1, 1):
        assert site.check()[0] == 2
        assert len(chat.delivered) == expected
    assert INTAKE in chat.delivered[0].text
    site.say(INTAKE, datetime.now(UTC))
    for expected in (2, 2):
        code, out, err = site.check()
        assert (code, err) == (0, ""), out
        assert len(chat.delivered) == expected


def test_a_state_that_cannot_be_written_is_told_and_still_only_once(site: Site, chat: BotApi) -> None:
    (site.folder / "state").write_text("a file where a folder should be")
    site.environ["XDG_RUNTIME_DIR"] = str(site.folder)
    for _ in range(2):
        code, out, _ = site.check()
        assert (code, "state not saved" in out) == (2, True)
    assert len(chat.delivered) == 1
    assert INTAKE in chat.delivered[0].text


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("labs/booking_reminders", ["fresh", "read from", "deadline", "running, due", "limit     30m"]),
        ("Send booking reminder SMS", ["labs/booking_reminders: OK"]),
        ("scheduler_lock", ["held by pid", "database:labs: up", "holder_state: idle"]),
    ],
)
def test_explain_shows_what_a_verdict_rests_on(site: Site, target: str, says: list[str]) -> None:
    code, out, err = site.run("explain", target, "--config", str(site.config))
    assert (code, err) == (0, "")
    for words in says:
        assert words in out
    assert not site.state.exists()


def test_explain_names_the_only_log_once_and_stays_within_a_terminal(site: Site) -> None:
    _, out, _ = site.run("explain", "labs/booking_reminders", "--config", str(site.config))
    _, _, lines = out.partition("newest first")
    assert str(site.log) not in lines
    assert [line for line in out.splitlines() if len(line) > 80 and str(site.log) not in line] == []


def test_explain_suggests_a_target_for_a_misspelt_one(site: Site) -> None:
    code, _, err = site.run("explain", "labs/bocking_reminder", "--config", str(site.config))
    assert code == 3
    assert "did you mean labs/booking_reminders" in err


def test_explain_of_a_source_says_how_it_is_and_what_is_behind_it(site: Site) -> None:
    code, _, err = site.run("explain", "labs/database:labs", "--config", str(site.config))
    assert code == 3
    assert err == (
        "argus-sched: labs/database:labs is a source, no target, and can be read: "
        "explain a target behind it, such as labs/booking_reminders\n"
    )


def test_nothing_of_a_message_is_lost_when_the_reader_goes_away(site: Site) -> None:
    with site.start("check", "--config", str(site.config)) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(120) == 3
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_a_pass_keeps_the_verdict_on_every_target(site: Site) -> None:
    assert site.check("--only", "*lock")[0] == 0
    assert set(Store(site.state).recall().statuses) == {
        "labs/booking_reminders",
        "labs/desk_email_intake",
        "labs/nightly",
        "labs/scheduler_lock",
    }
