"""The commands that steer what is told: silence, silences, unsilence, ack, history, notify-test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from argus_sched.agent.check import PassReport, Result
from argus_sched.agent.config.notify_policy import NotifySettings
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.store.sqlite import Store, remember
from argus_sched.agent.telling.teller import IncidentTeller
from argus_sched.cli import main
from tests.fakes.bot_api import TOKEN, BotApi, refusal


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings with a state file of their own."""
    path = tmp_path / "argus.yaml"
    path.write_text("state: state.db\n")
    monkeypatch.setenv("ARGUS_CONFIG", str(path))
    return path


@pytest.fixture
def wrong(config: Path) -> Store:
    """A store after a pass that found one job wrong and one well."""
    store = Store(config.parent / "state.db")
    now = datetime.now(UTC)
    results = (
        Result("labs", "scheduler_jobs", "labs/nightly", Status.CRIT, Phase.STALE, "no run for 2h"),
        Result("shop", "scheduler_jobs", "shop/hourly", Status.OK, Phase.FRESH, "ran 2m ago"),
    )
    report = PassReport(now, results, (), complete=True, seconds=0.1)
    with store.transaction() as connection:
        remember(connection, {}, report)
        IncidentTeller(store, [], NotifySettings(), timedelta(minutes=1)).decide(connection, report, now)
    store.close()
    return store


def test_a_silence_is_made_listed_and_ended(wrong: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["silence", "labs/*", "--for", "2h", "--reason", "deploy"]) == 0
    made = capsys.readouterr().out
    assert re.match(r"silence 1: labs/\* until \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ\n", made)
    assert "covers 1 of the 2 targets of the last pass" in made
    assert main(["silences"]) == 0
    assert re.search(r"^1  until .*  labs/\*  deploy \(", capsys.readouterr().out)
    assert main(["unsilence", "1"]) == 0
    assert capsys.readouterr().out == "silence 1 of labs/* ended\n"
    assert main(["silences"]) == 0
    assert capsys.readouterr().out == "no silence holds\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["silence", "labs/*", "--for", "2h"], "--reason"),
        (["silence", "labs/*", "--reason", "deploy"], "--for"),
        (["silence", "labs/*", "--for", "soon", "--reason", "deploy"], "--for: expected a duration"),
        (["silence", "labs/*", "--for", "2h", "--reason", " "], "needs a reason"),
        (["silence", "labs/*", "--for", "367d", "--reason", "x"], "within 366 days, not after 367d"),
        (["history", "--limit", "-5"], "--limit: expected a whole number above zero, got '-5'"),
        (["history", "--limit", "0"], "--limit: expected a whole number above zero"),
        (["unsilence", "7"], "no silence '7' holds"),
        (["ack", "shop/*"], "no open incident matches 'shop/*'"),
        (["notify-test"], "no channel is set"),
    ],
)
def test_what_makes_no_sense_is_refused_with_exit_code_3(
    wrong: Store, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert _exit_code(arguments) == 3
    assert words in capsys.readouterr().err


def test_a_silence_of_a_hostile_pattern_steers_no_terminal(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern = "labs/\x1b[31m\u202e"
    assert main(["silence", pattern, "--for", "2h", "--reason", "\x1b]0;x\x07"]) == 0
    assert main(["silences"]) == main(["unsilence", pattern]) == 0
    said = capsys.readouterr().out
    assert said.count("labs/\\x1b[31m\\u202e") == 3
    assert said.replace("\n", "").isprintable()


def _exit_code(arguments: list[str]) -> object:
    """What the program would exit with; argparse exits by itself."""
    try:
        return main(arguments)
    except SystemExit as stopped:
        return stopped.code


def test_an_incident_is_listed_and_acknowledged_by_its_tag(
    wrong: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history"]) == 0
    listed = capsys.readouterr().out
    (tag,) = re.findall(r"#(i\w{7})", listed)
    assert re.search(rf"open  CRIT     labs/nightly  #{tag}\n +no run for 2h\n", listed)
    assert main(["ack", f"#{tag}"]) == 0
    assert capsys.readouterr().out == f"acknowledged #{tag}: CRIT labs/nightly\n"
    assert main(["history"]) == 0
    assert f"acked  CRIT     labs/nightly  #{tag}" in capsys.readouterr().out
    assert main(["history", "labs/*", "--steps"]) == 0
    assert "labs/nightly  ok → firing  CRIT  fired, told as fired" in capsys.readouterr().out
    assert main(["history", "shop/*"]) == 0
    assert capsys.readouterr().out == "no incident on record matches shop/*\n"


def test_what_only_shows_speaks_json_too(wrong: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--output", "json"]) == 0
    (incident,) = json.loads(capsys.readouterr().out)
    assert (incident["target"], incident["status"], incident["phase"]) == ("labs/nightly", "CRIT", "stale")
    assert incident["closed_at"] is incident["duration_seconds"] is None
    assert incident["acknowledged"] is False
    assert main(["history", "--steps", "--output", "json"]) == 0
    (step,) = json.loads(capsys.readouterr().out)
    assert (step["from_state"], step["to_state"], step["told"]) == ("ok", "firing", "fired")
    assert step["incident"] == incident["incident"]
    assert main(["silence", "labs/*", "--for", "2h", "--reason", "deploy"]) == 0
    capsys.readouterr()
    assert main(["silences", "--output", "json"]) == 0
    (silence,) = json.loads(capsys.readouterr().out)
    assert (silence["number"], silence["match"], silence["reason"]) == (1, "labs/*", "deploy")
    assert datetime.fromisoformat(silence["until"]) > datetime.now(UTC)


def test_history_stays_within_the_width_of_a_terminal(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC)
    long = Result("labs", "scheduler_jobs", "labs/" + "x" * 30, Status.CRIT, Phase.STALE, "no run seen " * 20)
    report = PassReport(now, (long,), (), complete=True, seconds=0.1)
    store = Store(config.parent / "state.db")
    with store.transaction() as connection:
        IncidentTeller(store, [], NotifySettings(), timedelta(minutes=1)).decide(connection, report, now)
    store.close()
    for arguments in (["history"], ["history", "--steps"]):
        assert main(arguments) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) > 1
        assert max(map(len, lines)) <= 80


AS_ANOTHER = """
import contextlib, io, os, sys
from argus_sched.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main(sys.argv[1:])  # loads what the other user may not be able to load
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("command", "words"), [("history", "labs/nightly"), ("silences", "deploy")])
def test_what_only_shows_needs_no_right_to_write(
    wrong: Store, config: Path, command: str, words: str
) -> None:
    assert main(["silence", "labs/*", "--for", "2h", "--reason", "deploy"]) == 0
    wrong.close()
    for folder in config.parents:
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(0o755)
    config.parent.chmod(0o555)
    try:
        shown = subprocess.run(
            [sys.executable, "-c", AS_ANOTHER, command, "--config", str(config)],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[3],
        )
        assert (shown.returncode, shown.stderr) == (0, "")
        assert words in shown.stdout
    finally:
        config.parent.chmod(0o755)


@pytest.mark.parametrize("command", ["history", "silences"])
def test_what_only_shows_makes_no_state(
    config: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert main([command]) == 0
    assert capsys.readouterr().out.startswith("no ")
    assert list(config.parent.glob("state*")) == []


@pytest.fixture
def api(config: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BotApi]:
    """A Bot API, and settings that name it."""
    with BotApi() as server:
        monkeypatch.setenv("BOT_TOKEN", TOKEN)
        config.write_text(
            f"state: state.db\ntelegram:\n  token_env: BOT_TOKEN\n  chat_id: -100777\n  api_url: {server.url}\n"
        )
        yield server


def test_notify_test_sends_a_message_that_looks_like_an_alert(
    api: BotApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["notify-test"]) == 0
    assert capsys.readouterr().out == "telegram: -100777 took the message\n"
    assert "WARN argus/notify-test\na message of argus-sched notify-test" in api.texts[0]


# What the server answers -> what is printed.
ANSWERS = {
    "kicked": (refusal(403, "Forbidden: bot was kicked from the group chat"), "bot was kicked"),
    "unauthorized": (refusal(401, "Unauthorized"), "check token and api_url"),
    "chat not found": (refusal(400, "Bad Request: chat not found"), "check chat_id"),
    "flood": (refusal(429, "Too Many Requests: retry after 34", retry_after=34), "told to wait 34 s"),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_notify_test_says_what_happened(api: BotApi, capsys: pytest.CaptureFixture[str], answer: str) -> None:
    scripted, words = ANSWERS[answer]
    api.answer(scripted)
    assert main(["notify-test"]) == 3
    shown = capsys.readouterr().out
    assert shown.startswith("telegram: ")
    assert words in shown
    assert main(["notify-test"]) == 0


def test_notify_test_sends_although_the_state_cannot_be_used(
    api: BotApi, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (config.parent / "state.db").write_text("this is no database, however long one looks at it")
    assert main(["notify-test"]) == 0
    assert "sending all the same" in capsys.readouterr().err
    assert len(api.texts) == 1
