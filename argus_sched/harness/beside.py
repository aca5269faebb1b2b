"""The monitoring agent beside a run: started again and again as cron would, its every word kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from argus_sched.harness import agent_files
from argus_sched.harness.agent_files import Chat, Watched
from argus_sched.harness.bot_api import BotApi
from argus_sched.harness.history import Event, Graded, Looked, Told

EVERY = 1.0
TOKEN_ENV, DSN_ENV = "HARNESS_BOT_TOKEN", "HARNESS_DATABASE_URL"
STAND_IN_TOKEN = "12345:stand-in"  # noqa: S105 - opens nothing: it is checked by our own stand-in


class AgentBeside:
    """Starts `argus-sched check` again and again; messages go to a stand-in. Use it as a context manager."""

    def __init__(self, folder: Path, watched: Watched, dsn: str, keep: Callable[[Event], None]) -> None:
        self._keep = keep
        self._api = BotApi(lambda text: keep(Told(time.time(), text)))
        self._config = agent_files.write(folder, watched, Chat(TOKEN_ENV, "1", self._api.url))
        self._environment = {**os.environ, DSN_ENV: dsn, TOKEN_ENV: STAND_IN_TOKEN}
        self._last: dict[str, str] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agent-beside", daemon=True)

    def look(self) -> None:
        """One pass of the agent; each status that changed is kept."""
        began = time.time()
        command = [
            sys.executable,
            "-m",
            "argus_sched",
            "check",
            "--config",
            str(self._config),
            "--output",
            "json",
        ]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        try:
            results = json.loads(done.stdout)["results"]
        except (ValueError, KeyError):
            self._keep(Looked(began, time.time(), done.stderr.strip() or f"exit code {done.returncode}"))
            return
        for result in results:
            self._note(result["target"], result["status"], result.get("age_seconds"))
        self._keep(Looked(began, time.time()))

    def __enter__(self) -> AgentBeside:
        self._api.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(60)
        self._api.__exit__()

    def _note(self, target: str, status: str, age: float | None) -> None:
        if self._last.get(target) != status:
            self._last[target] = status
            self._keep(Graded(time.time(), target, status, age))

    def _run(self) -> None:
        while not self._stopping.wait(EVERY):
            self.look()
