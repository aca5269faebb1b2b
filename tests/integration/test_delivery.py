"""Delivery through the real store and a Bot API on a socket: nothing lost, whatever the server or the disk does."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from argus_sched.agent.check import Node, PassReport, Result
from argus_sched.agent.config.channels import TelegramSettings
from argus_sched.agent.config.notify_policy import NotifySettings
from argus_sched.agent.notifiers.telegram import TelegramNotifier, Timeouts
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.store.incident_rows import (
    acknowledge,
    open_incidents,
    recent_incidents,
    recent_transitions,
)
from argus_sched.agent.store.notice_rows import backlog, load_chat
from argus_sched.agent.store.silence_rows import active_silences, add_silence, end_silences
from argus_sched.agent.store.sqlite import Store
from argus_sched.agent.store.stand_in import stand_in_path
from argus_sched.agent.telling.delivery import LONGEST_BACKOFF, LONGEST_PAUSE
from argus_sched.agent.telling.messages import NO_LIMIT, Message
from argus_sched.agent.telling.notify_ports import Accepted, Notifier, Route, ThrottledError
from argus_sched.agent.telling.silences import new_silence
from argus_sched.agent.telling.teller import IncidentTeller
from tests.fakes.bot_api import TOKEN, Answer, BotApi, Drop, Hang, error, refusal

START = datetime(2026, 3, 14, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WORKER = Path(__file__).parents[1] / "workers" / "telling_worker.py"
STATUSES = {
    "o": (Status.OK, Phase.FRESH),
    "w": (Status.WARN, Phase.FAILING),
    "c": (Status.CRIT, Phase.STALE),
    "u": (Status.UNKNOWN, Phase.BLIND),
}


class Collector:
    """A second channel that takes everything."""

    name = "webhook"
    chat = "collector"
    limit = NO_LIMIT
    repeats = False
    trouble = ""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def send(self, message: Message, route: Route) -> Accepted:
        """Take it."""
        self.texts.append(message.text)
        return Accepted()

    def close(self) -> None:
        """Nothing to close."""


class Agent:
    """A teller with a store, whose passes are a minute apart."""

    def __init__(self, folder: Path, api: BotApi, **options: Any) -> None:
        self.store = Store(folder / "state.db")
        self.other = Collector()
        settings = TelegramSettings(
            "-100777", token_env="T", api_url=api.url, thread_id=options.pop("topic", None)
        )
        self.telegram = TelegramNotifier(settings, {"T": TOKEN}, Timeouts(2.0, 0.3, 2.0))
        notifiers: list[Notifier] = (
            [self.telegram, self.other] if options.pop("two", False) else [self.telegram]
        )
        self.teller = IncidentTeller(
            self.store, notifiers, NotifySettings(), MINUTE, stand_in=options.pop("stand_in", None)
        )
        self.at = START

    def run(self, *targets: str, after: timedelta = MINUTE, nodes: Sequence[Node] = ()) -> Sequence[str]:
        """One pass; `labs/job c` is a target and its status. Returns the problems."""
        report = make_report(self.at, *targets, nodes=nodes)
        with self.store.transaction() as connection:
            self.teller.decide(connection, report, self.at)
        problems = self.teller.deliver(self.at)
        self.at += after
        return problems

    @contextmanager
    def rows(self) -> Iterator[Any]:
        """A connection."""
        with self.store.transaction() as connection:
            yield connection

    def close(self) -> None:
        """Close store and channel."""
        self.store.close()
        self.telegram.close()


def make_report(at: datetime, *targets: str, nodes: Sequence[Node] = ()) -> PassReport:
    """A pass that found these."""
    results = []
    for text in targets:
        target, letter = text.rsplit(" ", 1)
        hidden = "docker:web" if letter == "b" else None
        status, phase = STATUSES["u" if hidden else letter]
        results.append(
            Result("labs", "scheduler_jobs", target, status, phase, f"it is {status.name}", blind_by=hidden)
        )
    return PassReport(at, tuple(results), tuple(nodes), complete=True, seconds=0.1)


@pytest.fixture
def api() -> Iterator[BotApi]:
    """A server that behaves until it is told otherwise."""
    with BotApi() as server:
        yield server


@pytest.fixture
def start(tmp_path: Path, api: BotApi) -> Iterator[Callable[..., Agent]]:
    """Starts agents on one state file, and closes them."""
    started = []

    def make(**options: Any) -> Agent:
        started.append(Agent(tmp_path, api, **options))
        return started[-1]

    yield make
    for agent in started:
        agent.close()


def test_an_incident_is_one_message_and_one_recovery_that_replies_to_it(
    api: BotApi, start: Callable[..., Agent]
) -> None:
    agent = start()
    for letter in "occccoo":
        assert agent.run(f"labs/job {letter}") == ()
    alert, recovery = api.delivered
    assert alert.text.startswith("1 CRIT\n\nCRIT labs/job\n")
    assert "recovered after 4m" in recovery.text
    assert recovery.reply_to == alert.number
    assert alert.reply_to is None
    assert _tags(alert.text) == _tags(recovery.text)


def test_a_failed_daemon_with_forty_checks_is_one_message_and_one_recovery(
    api: BotApi, start: Callable[..., Agent]
) -> None:
    agent = start()
    jobs = [f"labs/job_{number}" for number in range(40)]
    down = Node("labs", "docker:web", None, up=False, problem="the daemon does not answer")
    up = Node("labs", "docker:web", None, up=True)
    agent.run(*(f"{job} o" for job in jobs), nodes=[up])
    for _ in range(5):
        agent.run(*(f"{job} b" for job in jobs), nodes=[down])
    agent.run(*(f"{job} o" for job in jobs), nodes=[up])
    assert len(api.texts) == 2
    assert "UNKNOWN labs/docker:web\nthe daemon does not answer; hides 40 checks" in api.texts[0]
    assert "recovered after 5m" in api.texts[1]


def test_five_hundred_failures_are_two_messages(api: BotApi, start: Callable[..., Agent]) -> None:
    agent = start()
    agent.run(*(f"labs/job_{number:03} c" for number in range(500)))
    agent.run(*(f"labs/job_{number:03} c" for number in range(500)))
    assert len(api.texts) == 2
    with agent.rows() as connection:
        assert backlog(connection, ["telegram"]).waiting == 0


def test_a_second_process_goes_on_where_the_first_one_stopped(
    api: BotApi, start: Callable[..., Agent]
) -> None:
    start().run("labs/job c")
    second = start()
    second.at += MINUTE
    second.run("labs/job c")
    second.run("labs/job o")
    assert len(api.texts) == 2


def test_a_flood_answer_is_obeyed_and_what_waited_is_told_as_it_is_now(
    api: BotApi, start: Callable[..., Agent], field_cases: Callable[[str], Any]
) -> None:
    """B65: no send before the 34 seconds are over, no old text replayed, the pass is never held up."""
    agent = start()
    case = next(case for case in field_cases("telegram")["cases"] if case["id"] == "flood")
    api.answer(error(case["answer"]))
    assert "told to wait 34 s" in agent.run("labs/a c", after=timedelta(seconds=20))[0]
    waiting = agent.run("labs/a c", "labs/b w", after=timedelta(seconds=20))[0]
    assert waiting.startswith("telegram: 2 notices wait: ")
    assert waiting.count("telegram: ") == 1
    assert len(api.requests) == 1
    assert agent.run("labs/a o", "labs/b c") == ()
    assert len(api.texts) == 1
    assert "CRIT labs/b" in api.texts[0]
    assert "OK labs/a" in api.texts[0]
    assert "its alert could not be sent before" in api.texts[0]


def test_a_wait_of_years_has_a_ceiling_and_a_clock_set_back_does_not_prolong_it(
    api: BotApi, start: Callable[..., Agent]
) -> None:
    agent = start()
    api.answer(refusal(429, "Too Many Requests: retry after 99999999", retry_after=99999999))
    agent.run("labs/job c", after=LONGEST_PAUSE)
    agent.run("labs/job c")
    assert len(api.texts) == 1
    api.answer(refusal(429, "Too Many Requests: retry after 600", retry_after=600))
    agent.run("labs/job o", after=-timedelta(hours=5))
    agent.run("labs/job o")
    assert len(api.texts) == 2


@pytest.mark.parametrize("fault", [ThrottledError("wait", 1e40), ZeroDivisionError("a bug")])
def test_whatever_happens_in_one_channel_the_next_one_is_served(
    start: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    agent = start(two=True)
    monkeypatch.setattr(agent.telegram, "send", Mock(side_effect=fault))
    (problem,) = agent.run("labs/job c")
    assert problem.startswith("telegram: ")
    assert len(agent.other.texts) == 1


def test_what_is_owed_to_a_channel_that_is_set_no_more_waits_for_nobody(
    api: BotApi, start: Callable[..., Agent]
) -> None:
    agent = start()
    api.answer(Drop())
    agent.run("labs/job c")
    assert agent.teller.own_state().unsent == 1
    without = IncidentTeller(agent.store, [agent.other], NotifySettings(), MINUTE)
    assert without.own_state().unsent == 0
    assert without.own_state().oldest_unsent is None


def test_a_network_that_is_down_for_hours_costs_one_digest(api: BotApi, start: Callable[..., Agent]) -> None:
    agent = start()
    api.answer(*[Drop()] * 1000)
    for minute in range(180):
        agent.run(f"labs/a {'c' if minute < 60 else 'o'}", "labs/b c")
    tried = len(api.requests)
    assert tried <= 180 * MINUTE / LONGEST_BACKOFF + 6
    api.script.clear()
    agent.run("labs/a o", "labs/b c", after=LONGEST_BACKOFF)
    agent.run("labs/a o", "labs/b c")
    assert len(api.texts) == 1
    assert Counter(_tags(api.texts[0])) == Counter(set(_tags(api.texts[0])))
    assert "CRIT labs/b" in api.texts[0]
    assert "OK labs/a" in api.texts[0]


def test_a_chat_that_moved_is_followed_at_once_and_remembered(
    api: BotApi, start: Callable[..., Agent], field_cases: Callable[[str], Any]
) -> None:
    agent = start()
    case = next(case for case in field_cases("telegram")["cases"] if case["id"] == "migrated")
    api.answer(error(case["answer"]))
    agent.run("labs/job c")
    again = start()
    again.at += MINUTE
    again.run("labs/job o")
    assert [message.chat for message in api.delivered] == ["-1001234567890"] * 2
    assert [body["chat_id"] for body in api.requests] == ["-100777", "-1001234567890", "-1001234567890"]
    with agent.rows() as connection:
        assert load_chat(connection, "telegram", "-100777").moved_to == "-1001234567890"


def test_a_topic_that_is_gone_is_left_out_from_then_on(api: BotApi, start: Callable[..., Agent]) -> None:
    agent = start(topic=7)
    api.answer(refusal(400, "Bad Request: message thread not found"))
    agent.run("labs/job c")
    agent.run("labs/job o")
    assert [message.thread for message in api.delivered] == [None, None]
    assert len(api.requests) == 3


@pytest.mark.parametrize(
    "description", ["message is too long", "can't parse entities: unsupported", "something new"]
)
def test_a_text_the_server_refuses_goes_out_short_and_plain_once(
    api: BotApi, start: Callable[..., Agent], description: str
) -> None:
    agent = start()
    api.answer(refusal(400, f"Bad Request: {description}"))
    assert agent.run("labs/job c") == ()
    (message,) = api.delivered
    assert (message.text.splitlines()[0], message.entities) == ("1 CRIT", ())
    assert "labs/job #" in message.text


def test_a_text_refused_even_in_plain_stays_owed(api: BotApi, start: Callable[..., Agent]) -> None:
    agent = start()
    api.answer(*[refusal(400, "Bad Request: something new")] * 2)
    assert "did not take the message" in agent.run("labs/job c")[0]
    assert len(api.requests) == 2
    agent.run("labs/job c")
    assert len(api.texts) == 1


# Answers after which a person must act.
PERMANENT = {
    "kicked": refusal(403, "Forbidden: bot was kicked from the supergroup chat"),
    "deleted": refusal(403, "Forbidden: the group chat was deleted"),
    "chat not found": refusal(400, "Bad Request: chat not found"),
    "unauthorized": refusal(401, "Unauthorized"),
}


@pytest.mark.parametrize("fault", PERMANENT)
def test_a_chat_that_refuses_for_good_rests_and_the_other_channel_says_so(
    api: BotApi, start: Callable[..., Agent], fault: str
) -> None:
    """B64: the alert stays owed, no storm of attempts, and somebody learns that the chat is dead."""
    agent = start(two=True)
    api.answer(*[PERMANENT[fault]] * 100)
    problems = [agent.run("labs/job c") for _ in range(30)]
    assert len(api.requests) == 1
    assert all(len(found) == 1 and found[0].startswith("telegram:") for found in problems)
    assert len(agent.other.texts) == 2
    assert "CRIT labs/job" in agent.other.texts[0]
    assert (
        "CRIT argus/telegram the agent's own channel telegram\nno alert gets through:" in agent.other.texts[1]
    )
    api.script.clear()
    agent.at += timedelta(hours=1)
    agent.run("labs/job c")  # a quiet pass after the gap; what was owed goes out all the same
    agent.run("labs/job c")
    assert "CRIT labs/job" in api.texts[0]
    assert "OK argus/telegram" in agent.other.texts[-1]


def test_what_timed_out_and_was_delivered_comes_again_with_the_same_tag(
    api: BotApi, start: Callable[..., Agent]
) -> None:
    agent = start()
    api.answer(Hang(delivered=True))
    assert "may have been delivered" in agent.run("labs/job c")[0]
    agent.run("labs/job c")
    agent.run("labs/job c")
    assert len(api.texts) == 2
    assert _tags(api.texts[0]) == _tags(api.texts[1])


def test_a_bad_gateway_is_tried_again(api: BotApi, start: Callable[..., Agent]) -> None:
    agent = start()
    api.answer(Answer(502, b"<html><body><h1>502 Bad Gateway</h1></body></html>"))
    assert len(agent.run("labs/job c")) == 1
    assert agent.run("labs/job c") == ()
    assert len(api.texts) == 1


def test_six_hours_asleep_are_followed_by_one_pass_that_only_looks(
    api: BotApi, start: Callable[..., Agent]
) -> None:
    agent = start()
    agent.run("labs/a o", "labs/b o", after=timedelta(hours=6))
    agent.run("labs/a c", "labs/b c")
    assert api.texts == []
    agent.run("labs/a o", "labs/b c")
    assert len(api.texts) == 1
    assert "labs/a" not in api.texts[0]


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_that_steps_neither_loses_nor_repeats(
    api: BotApi, start: Callable[..., Agent], step: timedelta
) -> None:
    agent = start()
    agent.run("labs/job c", after=step)
    for _ in range(3):
        agent.run("labs/job c")
    assert len(api.delivered) - sum("still CRIT" in text for text in api.texts) == 1
    for _ in range(3):
        agent.run("labs/job o")
    assert sum("recovered" in text for text in api.texts) == 1


def test_a_silence_hides_and_records_and_its_end_tells(api: BotApi, start: Callable[..., Agent]) -> None:
    agent = start()
    with agent.rows() as connection:
        number = add_silence(connection, new_silence("labs/*", timedelta(hours=2), "deploy", START), START)
    agent.run("labs/job c", "shop/job c")
    assert len(api.texts) == 1
    assert "labs/job" not in api.texts[0]
    with agent.rows() as connection:
        (incident,) = recent_incidents(connection, "labs/*", 10)
        (step,) = recent_transitions(connection, "labs/*", 10)
        assert step.muted == f"silence {number}: deploy"
        assert incident.closed_at is None
        assert [found.number for found in end_silences(connection, str(number), agent.at)] == [number]
        assert active_silences(connection, agent.at) == ()
    agent.run("labs/job c", "shop/job c")
    assert "CRIT labs/job" in api.texts[1]


def test_an_ack_by_its_tag_stops_reminders(api: BotApi, start: Callable[..., Agent]) -> None:
    agent = start()
    agent.run("labs/job c")
    (tag,) = _tags(api.texts[0])
    with agent.rows() as connection:
        assert [incident.subject for incident in acknowledge(connection, tag)] == ["labs/job"]
    for _ in range(10):
        agent.run("labs/job c", after=timedelta(hours=1))
    assert len(api.texts) == 1
    agent.run("labs/job o")
    agent.run("labs/job o")
    assert len(api.texts) == 2


def test_what_is_open_is_listed_until_it_ends(start: Callable[..., Agent]) -> None:
    agent = start()
    agent.run("labs/a c", "labs/b w")
    with agent.rows() as connection:
        assert [incident.subject for incident in open_incidents(connection)] == ["labs/a", "labs/b"]
    agent.run("labs/a o", "labs/b o")
    with agent.rows() as connection:
        assert open_incidents(connection) == ()
        assert all(incident.closed_at for incident in recent_incidents(connection, "*", 10))


def test_names_no_file_can_hold_are_kept_and_told(api: BotApi, start: Callable[..., Agent]) -> None:
    agent = start()
    agent.run("labs/\ud83e\x00\n🧹 c")
    agent.run("labs/\ud83e\x00\n🧹 c")
    agent.run("labs/\ud83e\x00\n🧹 o")
    assert "CRIT labs/\\ud83e\\x00\\n🧹" in api.texts[0]
    assert len(api.texts) == 2


def test_an_unwritable_store_is_told_by_its_stand_in_and_only_once(
    api: BotApi, start: Callable[..., Agent], tmp_path: Path
) -> None:
    agent = start(stand_in=Store(tmp_path / "elsewhere.db"))
    for minute in range(3):
        at = START + minute * MINUTE
        assert agent.teller.tell_unsaved(make_report(at, "labs/job c"), at) == ()
    assert len(api.texts) == 1
    assert "(state not saved: this may be told again)" in api.texts[0]


def test_a_stand_in_knows_nothing_of_an_earlier_trouble(
    api: BotApi, start: Callable[..., Agent], tmp_path: Path
) -> None:
    """Days later the same job is wrong again, and that is news."""
    agent = start(stand_in=Store(tmp_path / "elsewhere.db"))
    for at in (START, START + timedelta(days=3)):
        agent.teller.tell_unsaved(make_report(at, "labs/job c"), at)
    assert len(api.texts) == 2
    assert all(text.startswith("1 CRIT") for text in api.texts)


def test_a_stand_in_is_a_private_file_outside_the_state_folder(tmp_path: Path) -> None:
    path = stand_in_path(tmp_path / "state.db", {"XDG_RUNTIME_DIR": str(tmp_path / "run")})
    (tmp_path / "run").mkdir()
    again = stand_in_path(tmp_path / "state.db", {"XDG_RUNTIME_DIR": str(tmp_path / "run")})
    assert again.parent.parent == tmp_path / "run"
    assert again.parent.stat().st_mode & 0o777 == 0o700
    assert path.name == again.name
    stolen = tmp_path / "stolen"
    stolen.mkdir()
    (stolen / f"argus-sched-{os.getuid()}").symlink_to(tmp_path)
    assert stolen not in stand_in_path(tmp_path / "state.db", {"XDG_RUNTIME_DIR": str(stolen)}).parents


def test_a_full_disk_sends_nothing_twice_and_loses_nothing(api: BotApi, start: Callable[..., Agent]) -> None:
    """A limit on the size of files stands for the disk; a store that cannot note a delivery sends nothing."""
    agent = start()
    agent.run("labs/job o")
    api.answer(Drop())
    agent.run("labs/job c", after=timedelta(seconds=30))
    with _no_file_may_grow():
        for _ in range(5):
            agent.at += MINUTE
            assert "cannot be written" in agent.teller.deliver(agent.at)[0]
    assert api.texts == []
    agent.run("labs/job c")
    agent.run("labs/job c")
    assert len(api.texts) == 1


@contextmanager
def _no_file_may_grow() -> Iterator[None]:
    """Every write to a file fails with EFBIG, which SQLite reports as it reports a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


class Zygote:
    """The worker of crashing passes."""

    def __init__(self) -> None:
        environ = {**os.environ, "PYTHONPATH": str(WORKER.parents[2])}
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environ,
        )

    def run(self, **order: Any) -> dict[str, int]:
        """One pass in a child of its own."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, int] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End it."""
        self._process.communicate()


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    """One worker."""
    worker = Zygote()
    yield worker
    worker.close()


# Passes of one story: two alerts, one recovery, then the other one.
STORY = (
    {"labs/a": "CRIT", "labs/b": "CRIT"},
    {"labs/a": "OK", "labs/b": "CRIT"},
    {"labs/a": "OK", "labs/b": "OK"},
)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("crashing", range(len(STORY)))
def test_a_kill_at_any_write_or_send_loses_nothing_and_repeats_at_most_one(
    api: BotApi, zygote: Zygote, tmp_path: Path, crashing: int
) -> None:
    """Every boundary of one pass in turn; the pass then runs again a minute later, as cron would."""
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()

    def run_pass(folder: Path, number: int, statuses: dict[str, str], fatal: int = 0) -> int:
        at = (START + number * MINUTE).isoformat()
        order = {"state": str(folder / "state.db"), "api_url": api.url, "token": TOKEN, "at": at}
        return zygote.run(**order, statuses=statuses, fatal=fatal)["status"]

    for number, statuses in enumerate(STORY[:crashing]):
        assert run_pass(before, number, statuses) == 0
    told_before = len(api.delivered)
    for fatal in range(1, 1000):
        del api.delivered[told_before:]
        shutil.rmtree(after, ignore_errors=True)
        shutil.copytree(before, after)
        died = run_pass(after, crashing, STORY[crashing], fatal)
        for number, statuses in enumerate(STORY[crashing:], crashing + 1):
            assert run_pass(after, number, statuses) == 0
        _judge(api.texts, fatal)
        if died == 0:
            break
        assert died == signal.SIGKILL
    assert fatal > 10


def _judge(texts: list[str], fatal: int) -> None:
    """Both incidents told, both ends told, at most one message more than that takes."""
    told = Counter(
        (word, target)
        for text in texts
        for word, target in re.findall(r"^(CRIT|OK) (labs/\w)$", text, flags=re.MULTILINE)
    )
    expected = {("CRIT", "labs/a"), ("CRIT", "labs/b"), ("OK", "labs/a"), ("OK", "labs/b")}
    assert set(told) == expected, f"killed at {fatal}: {texts}"
    assert len(texts) <= 4, f"killed at {fatal}: {texts}"
    for target in ("labs/a", "labs/b"):
        tags = {tag for text in texts for tag in re.findall(rf"{target}\n.*\n.*#(\w+)", text)}
        assert len(tags) == 1, f"killed at {fatal}: {texts}"


def _tags(text: str) -> list[str]:
    return re.findall(r"#(i\w{7})", text)
