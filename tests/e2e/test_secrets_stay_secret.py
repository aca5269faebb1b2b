"""The bot's token, passwords and secret addresses: in nothing that the agent prints, logs, tells or keeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fakes.bot_api import TOKEN, Answer, BotApi, Drop, refusal
from tests.fakes.http_sink import EchoServer
from tests.unit.agent.test_runner import run_line

PROGRAM = Path(__file__).parents[1] / "workers" / "loud_commands.py"
PASSWORD, HOOK, KEY, BASIC = "pa55-of-the-database", "hook-5ecret-path", "que5ry-key", "ba5ic+word"
SECRETS = (
    TOKEN,
    TOKEN.partition(":")[2],
    PASSWORD,
    HOOK,
    KEY,
    BASIC,
    b64encode(f"ops:{BASIC}".encode()).decode(),
)
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
CONFIG = """\
state: state/state.db
packs: [labs.yaml]
telegram: {{chat_id: -1, token_env: BOT_TOKEN, api_url: '{bot}'}}
webhook: {{url: '${{SECRET_URL}}'}}
alertmanager: {{url: '${{SECRET_URL}}'}}
heartbeat_url: ${{SECRET_URL}}
"""
ANSWERS = {
    "unauthorized": refusal(401, "Unauthorized"),
    "echo of the address": refusal(404, f"Not Found: /bot{TOKEN}/sendMessage"),
    "echo of the key alone": refusal(400, f"Bad Request: {TOKEN.partition(':')[2]}"),
    "page with the token": Answer(502, f"<html>{TOKEN}</html>".encode()),
    "no answer": Drop(),
}
COMMANDS = (
    ["check", "--textfile", "metrics.prom"],
    ["check", "--output", "json"],
    ["check", "--output", "nagios"],
    ["explain", "labs/scheduler_lock"],
    ["explain", "labs/sync"],
    ["simulate", "labs.yaml", "--at", "2030-01-01T00:00:00Z"],
    ["validate", "--output", "json"],
    ["events", "--pack", "labs.yaml"],
    ["discover", "--file", "web.log"],
    ["notify-test"],
    ["silence", "labs/*", "--for", "1m", "--reason", "a try"],
    ["silences"],
    ["unsilence", "1"],
    ["ack", "labs/*"],
    ["history"],
    ["history", "--steps"],
)
# Each ends a delivery or a look in a traceback through the frames that hold what is secret.
BUGS = (
    "argus_sched.agent.telling.delivery.Delivery._learn",
    "argus_sched.agent.notifiers.telegram.meaning",
    "argus_sched.agent.notifiers.http_json.meaning",
    "telegram.Bot.send_message",
    "urllib.request.OpenerDirector.open",
    "psycopg.connect",
    "argus_sched.agent.store.sqlite.Store.transaction",
)


class Site:
    """An agent with a dead job, a database that refuses, and channels whose addresses are secrets."""

    def __init__(self, folder: Path, bot: BotApi, echo: str) -> None:
        self.folder = folder
        self.bot = bot
        self.said = ""
        (folder / "web.log").write_text(run_line(datetime.now(UTC) - timedelta(hours=3)))
        (folder / "labs.yaml").write_text(PACK)
        (folder / "argus.yaml").write_text(CONFIG.format(bot=bot.url))
        self._environ = {
            **os.environ,
            "BOT_TOKEN": TOKEN,
            "SECRET_URL": f"http://ops:{BASIC}@{echo}/{HOOK}?key={KEY}",
            "LABS_DATABASE_URL": f"postgresql://argus:{PASSWORD}@127.0.0.1:9/labs?connect_timeout=2",
            "XDG_RUNTIME_DIR": str(folder),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }

    def run(self, *commands: Sequence[str], broken: Sequence[str] = ()) -> str:
        """What these commands say, in one process."""
        done = subprocess.run(
            [sys.executable, str(PROGRAM), json.dumps({"commands": commands, "broken": broken})],
            cwd=self.folder,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        said = f"{done.stdout}\n{done.stderr}"
        assert done.returncode == 0, said
        self.said += said
        return said

    def leaks(self) -> list[tuple[str, str, str]]:
        """Each secret that can be read somewhere, and where."""
        told = [(request["text"].encode(), "the chat") for request in self.bot.requests]
        kept = [(path.read_bytes(), path.name) for path in self.folder.rglob("*") if path.is_file()]
        found = []
        for text, place in [(self.said.encode(), "output"), *told, *kept]:
            for secret in SECRETS:
                at = text.find(secret.encode())
                if at >= 0:
                    found.append((secret, place, text[max(at - 300, 0) : at + 30].decode(errors="replace")))
        return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site whose web servers answer everything with 404 and all that they were sent."""
    with BotApi() as bot, EchoServer() as echo:
        yield Site(tmp_path, bot, echo.host)


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_no_secret_is_printed_logged_told_or_kept(site: Site, answer: Answer | Drop) -> None:
    site.bot.answer(answer, *[replace(answer)] * 3)
    said = site.run(*COMMANDS)
    assert site.bot.requests, said
    assert "Cannot POST" in said, "the echo is not in the output, so its masking is not tried"
    kept = {path.name for path in site.folder.rglob("*") if path.is_file()}
    assert {"metrics.prom", "state.db"} <= kept
    assert site.leaks() == []


@pytest.mark.parametrize("bug", BUGS)
def test_no_secret_is_in_a_traceback_with_the_local_variables_of_its_frames(site: Site, bug: str) -> None:
    site.bot.answer(*[refusal(400, "Bad Request: chat not found")] * 40)
    said = site.run(["check"], ["notify-test"], broken=[bug])
    assert f"bug in {bug}" in said or "RuntimeError in" in said
    assert site.leaks() == []
