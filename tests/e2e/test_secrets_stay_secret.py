"""The bot's token, a password in a DSN and secret addresses: in nothing that the agent prints, logs or keeps."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fakes.bot_api import TOKEN, Answer, BotApi, Drop, refusal
from tests.unit.agent.test_runner import run_line

PASSWORD = "pa55-of-the-database"
HOOK = "hook-5ecret-path"
SECRETS = (TOKEN, TOKEN.partition(":")[2], PASSWORD, HOOK)
PACK = """\
app: labs
logs:
  file: {path: web.log, format: docker}
database: {dsn_env: LABS_DATABASE_URL}
checks:
  - {kind: scheduler_lock, key: 911000001}
  - kind: scheduler_jobs
    jobs:
      - {id: sync, name: sync orders, every: 15m}
"""
# Every logger at its loudest, and a traceback with local variables for whatever escapes.
LOUD = """
import logging, sys, traceback
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
from argus_sched.agent.telling.delivery import Delivery
from argus_sched.agent.config.settings import load_settings
from argus_sched.cli import main
if "--broken" in sys.argv:
    sys.argv.remove("--broken")
    Delivery._learn = lambda self, chat: 1 / 0
def shown(kind, error, frames):
    sys.stderr.write("".join(traceback.TracebackException(kind, error, frames, capture_locals=True).format()))
class Loud(logging.Formatter):
    def formatException(self, info):
        return "".join(traceback.TracebackException(*info, capture_locals=True).format())
for handler in logging.getLogger().handlers:
    handler.setFormatter(Loud())
import os
if "--config" in sys.argv:
    print(repr(load_settings(sys.argv[sys.argv.index("--config") + 1], os.environ)), file=sys.stderr)
try:
    sys.exit(main(sys.argv[1:]))
except BaseException:
    shown(*sys.exc_info())
    raise
"""
ANSWERS = {
    "unauthorized": refusal(401, "Unauthorized"),
    "echo of the address": refusal(404, f"Not Found: /bot{TOKEN}/sendMessage"),
    "page with the token": Answer(502, f"<html>{TOKEN}</html>".encode()),
    "no answer": Drop(),
}
COMMANDS = {
    # First, while the chat is still asked: a bug in the middle of a delivery, with all its local variables.
    "broken": ["--broken", "check"],
    "check": ["check", "--textfile", "metrics.prom"],
    "json": ["check", "--output", "json"],
    "nagios": ["check", "--output", "nagios"],
    "explain": ["explain", "labs/scheduler_lock"],
    "notify-test": ["notify-test"],
    "history": ["history"],
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An agent with a dead job, a database that refuses, and channels whose addresses are secrets."""
    (tmp_path / "web.log").write_text(run_line(datetime.now(UTC) - timedelta(hours=3)))
    (tmp_path / "labs.yaml").write_text(PACK)
    return tmp_path


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_no_secret_is_printed_logged_or_kept(site: Path, answer: Answer | Drop) -> None:
    with BotApi() as bot:
        (site / "argus.yaml").write_text(
            "state: state/state.db\npacks: [labs.yaml]\n"
            f"telegram: {{chat_id: -1, token_env: BOT_TOKEN, api_url: '{bot.url}'}}\n"
            f"webhook: {{url: 'http://127.0.0.1:9/{HOOK}'}}\n"
            "heartbeat_url: ${HEARTBEAT_URL}\n"
        )
        environ = {
            **os.environ,
            "BOT_TOKEN": TOKEN,
            "HEARTBEAT_URL": f"http://ops:{HOOK}@127.0.0.1:9/{HOOK}",
            "LABS_DATABASE_URL": f"postgresql://argus:{PASSWORD}@127.0.0.1:9/labs?connect_timeout=2",
            "XDG_RUNTIME_DIR": str(site),
        }
        bot.answer(*[answer] * 40)
        said = ""
        for name, command in COMMANDS.items():
            done = subprocess.run(
                [sys.executable, "-c", LOUD, *command, "--config", "argus.yaml"],
                cwd=site,
                env={**environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            said += f"\n== {name}, exit {done.returncode}\n{done.stdout}{done.stderr}"
        assert bot.requests, said
    assert "ZeroDivisionError" in said
    kept = [path for path in site.rglob("*") if path.is_file() and path.name != "argus.yaml"]
    assert {"metrics.prom", "state.db"} <= {path.name for path in kept}
    leaks = [
        (secret, "output", said[max(at - 200, 0) : at + 20])
        for secret in SECRETS
        if (at := said.find(secret)) >= 0
    ]
    leaks += [
        (secret, path.name, "") for secret in SECRETS for path in kept if secret.encode() in path.read_bytes()
    ]
    assert leaks == []
