"""A real Docker daemon goes away and comes back between passes: one message, one recovery, whatever it hides."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.bot_api import TOKEN, BotApi
from tests.integration.docker_host import DockerHost

pytestmark = [pytest.mark.docker, pytest.mark.slow]

NAMES = [f"job {number}" for number in range(40)]
PROGRAM = f"""
import logging, threading
from apscheduler.schedulers.background import BackgroundScheduler
logging.basicConfig(level=logging.INFO)
scheduler = BackgroundScheduler(timezone="UTC")
for name in {NAMES!r}:
    scheduler.add_job(str, "interval", seconds=1, name=name)
scheduler.start()
threading.Event().wait()
"""
JOBS = "".join(f"      - {{id: job{number}, name: {name}, every: 5m}}\n" for number, name in enumerate(NAMES))
PACK = f"""\
app: labs
logs:
  docker: {{container: labs-backend}}
checks:
  - kind: scheduler_jobs
    jobs:
{JOBS}"""


@pytest.fixture
def own_docker() -> Iterator[DockerHost]:
    """A daemon that may be stopped, since no other test uses it."""
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("a Docker daemon needs root and dockerd")
    host = DockerHost(Path(tempfile.mkdtemp(prefix="argus-dockerd-")))
    try:
        host.start()
    except (RuntimeError, TimeoutError) as error:
        host.close()
        pytest.skip(f"dockerd does not start here: {error}")
    yield host
    host.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seen_as", ["host", "as_remote"], ids=["json-file", "daemon"])
def test_a_daemon_that_goes_away_and_comes_back_is_one_message_and_one_recovery(
    own_docker: DockerHost, tmp_path: Path, seen_as: str
) -> None:
    (tmp_path / "labs.yaml").write_text(PACK)
    config = tmp_path / "argus.yaml"
    own_docker.run_python("labs-backend", PROGRAM)
    own_docker.wait_for_log("labs-backend", b'Running job "job 39')
    with BotApi() as bot:
        telegram = f"telegram: {{chat_id: -1, token_env: BOT_TOKEN, api_url: '{bot.url}'}}"
        config.write_text(f"state: state.db\npacks: [labs.yaml]\n{telegram}\n")

        def check() -> int:
            command = [sys.executable, "-m", "argus_sched", "check", "--config", str(config)]
            environ = {**os.environ, "DOCKER_HOST": getattr(own_docker, seen_as), "BOT_TOKEN": TOKEN}
            return subprocess.run(
                command, env=environ, capture_output=True, timeout=120, check=False
            ).returncode

        assert (check(), bot.texts) == (0, [])
        own_docker.stop()
        assert [check(), check(), check()] == [3, 3, 3]
        (alert,) = bot.texts
        assert "1 UNKNOWN" in alert
        assert "hides 40 checks" in alert
        own_docker.start()
        own_docker.api.start("labs-backend")
        own_docker.wait_for_log("labs-backend", b"Scheduler started", times=2)
        assert [check(), check()] == [0, 0]
        _, recovery = bot.texts
        assert "1 recovered" in recovery
        assert bot.delivered[1].reply_to == bot.delivered[0].number
