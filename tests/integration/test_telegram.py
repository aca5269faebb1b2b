"""The Telegram channel against a Bot API on a socket: every handed answer, and the token nowhere."""

from __future__ import annotations

import io
import json
import logging
import pickle
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from argus_sched.agent.config.channels import TelegramSettings
from argus_sched.agent.notifiers.telegram import TelegramNotifier, Timeouts
from argus_sched.agent.telling.messages import Entity, Message, Style
from argus_sched.agent.telling.notify_ports import (
    ContentRefusedError,
    MovedError,
    RefusedError,
    Route,
    ThrottledError,
    TopicGoneError,
    UnreachableError,
)
from argus_sched.agent.telling.secret import MASK, Secret
from argus_sched.errors import DeliveryError
from tests.fakes.bot_api import TOKEN, Answer, BotApi, Drop, Hang, error, refusal
from tests.fakes.http_sink import DrippingServer

AT = datetime(2026, 3, 14, 10, tzinfo=UTC)
HELLO = Message(
    "CRIT labs/job 🧹", (Entity(Style.BOLD, 0, 4), Entity(Style.CODE, 5, 11)), "short", True, AT, ()
)
SHORT_TIMEOUTS = Timeouts(connect=2.0, read=0.3, whole=2.0)
ENVIRON = {"BOT_TOKEN": TOKEN}


@pytest.fixture
def api() -> Iterator[BotApi]:
    """A server that behaves until it is told otherwise."""
    with BotApi() as server:
        yield server


@pytest.fixture
def connect() -> Iterator[Callable[..., TelegramNotifier]]:
    """Makes notifiers for a server, and closes them."""
    opened = []

    def make(url: str, timeouts: Timeouts | None = None, **changes: Any) -> TelegramNotifier:
        settings = TelegramSettings("-100777", token_env="BOT_TOKEN", api_url=url, **changes)
        opened.append(TelegramNotifier(settings, ENVIRON, timeouts))
        return opened[-1]

    yield make
    for notifier in opened:
        notifier.close()


def refused(notifier: TelegramNotifier, route: Route | None = None) -> DeliveryError:
    """The error a message meets."""
    with pytest.raises(DeliveryError) as caught:
        notifier.send(HELLO, route or Route())
    return caught.value


def test_a_message_arrives_with_its_entities_topic_and_reply(
    api: BotApi, connect: Callable[..., TelegramNotifier]
) -> None:
    accepted = connect(api.url, thread_id=7).send(HELLO, Route(reply_to="42"))
    (found,) = api.delivered
    assert accepted.message_id == str(found.number)
    assert (found.chat, found.text, found.silent, found.thread, found.reply_to) == (
        "-100777",
        HELLO.text,
        True,
        "7",
        42,
    )
    assert [(one["type"], one["offset"], one["length"]) for one in found.entities] == [
        ("bold", 0, 4),
        ("code", 5, 11),
    ]
    request = api.requests[0]
    assert "parse_mode" not in request
    assert json.loads(request["reply_parameters"])["allow_sending_without_reply"] is True
    assert json.loads(request["link_preview_options"])["is_disabled"] is True


def test_a_route_leads_elsewhere_without_topic_and_in_plain_text(
    api: BotApi, connect: Callable[..., TelegramNotifier]
) -> None:
    connect(api.url, thread_id=7).send(HELLO, Route(moved_to="-1009", in_topic=False, plain=True))
    (found,) = api.delivered
    assert (found.chat, found.text, found.entities, found.thread) == ("-1009", "short", (), None)


# The handed answers -> what they mean for a notice.
MEANINGS = {
    "too-long": ContentRefusedError,
    "cut-entity": ContentRefusedError,
    "migrated": MovedError,
    "kicked": RefusedError,
    "deleted": RefusedError,
    "chat-not-found": RefusedError,
    "unauthorized": RefusedError,
    "flood": ThrottledError,
    "bad-gateway": UnreachableError,
}


def test_every_handed_answer_has_its_meaning(
    api: BotApi, connect: Callable[..., TelegramNotifier], field_cases: Callable[[str], Any]
) -> None:
    notifier = connect(api.url)
    found = {}
    for case in field_cases("telegram")["cases"]:
        if "answer" in case:
            api.answer(error(case["answer"]))
        elif "status" in case:
            api.answer(Answer(case["status"], case["body"].encode()))
        else:
            continue
        found[case["id"]] = refused(notifier)
    assert {case: type(one) for case, one in found.items()} == MEANINGS
    assert isinstance(moved := found["migrated"], MovedError)
    assert moved.chat == "-1001234567890"
    assert isinstance(flood := found["flood"], ThrottledError)
    assert flood.seconds == 34
    assert api.delivered == []


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        (refusal(400, "Bad Request: message thread not found"), TopicGoneError),
        (refusal(400, "Bad Request: TOPIC_CLOSED"), TopicGoneError),
        (refusal(400, "Bad Request: not enough rights to send text messages to the chat"), RefusedError),
        (refusal(400, "Bad Request: message text is empty"), ContentRefusedError),
        (refusal(404, "Not Found"), RefusedError),
        (refusal(409, "Conflict"), UnreachableError),
        (refusal(500, "Internal Server Error"), UnreachableError),
        (Answer(302, b""), UnreachableError),
        (Answer(200, b"{broken"), UnreachableError),
        (Answer(200, b'{"ok": true}'), UnreachableError),
        (Drop(), UnreachableError),
    ],
)
def test_other_answers_have_their_meaning(
    api: BotApi,
    connect: Callable[..., TelegramNotifier],
    answer: Answer | Drop,
    meaning: type[DeliveryError],
) -> None:
    api.answer(answer)
    assert type(refused(connect(api.url))) is meaning


def test_a_server_that_says_nothing_may_have_delivered(
    api: BotApi, connect: Callable[..., TelegramNotifier]
) -> None:
    api.answer(Hang(delivered=True))
    found = refused(connect(api.url, SHORT_TIMEOUTS))
    assert isinstance(found, UnreachableError)
    assert "may have been delivered" in str(found)
    assert len(api.delivered) == 1


def test_a_server_that_drips_ends_with_the_whole_time(connect: Callable[..., TelegramNotifier]) -> None:
    """Each byte starts the library's own time-out again."""
    with DrippingServer() as url:
        found = refused(connect(url, Timeouts(connect=2.0, read=2.0, whole=0.5)))
    assert "may have been delivered" in str(found)


def test_nothing_listens(connect: Callable[..., TelegramNotifier]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert isinstance(refused(connect(f"http://127.0.0.1:{port}")), UnreachableError)


def test_a_missing_token_is_a_refusal_that_names_the_variable(api: BotApi) -> None:
    notifier = TelegramNotifier(TelegramSettings("-1", token_env="NO_SUCH", api_url=api.url), {})
    assert "the variable NO_SUCH is not set" in str(refused(notifier))


def test_nothing_of_the_library_is_loaded_before_a_message_is_sent() -> None:
    code = (
        "import sys, argus_sched.agent.notifiers, argus_sched.agent.telling.teller;"
        "print([name for name in ('telegram', 'httpx', 'urllib.request') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def everything_logged() -> Iterator[io.StringIO]:
    """Every record of every logger, at DEBUG, as a handler added late sees it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(before)


FAULTS: dict[str, Answer | Drop | Hang] = {
    "unauthorized": refusal(401, "Unauthorized"),
    "echo of the address": refusal(404, f"Not Found: /bot{TOKEN}/sendMessage"),
    "chat not found": refusal(400, "Bad Request: chat not found"),
    "kicked": refusal(403, "Forbidden: bot was kicked from the supergroup chat"),
    "page with the token": Answer(502, f"<html>{TOKEN}</html>".encode()),
    "broken JSON": Answer(200, b"{broken"),
    "dropped": Drop(),
    "silent": Hang(),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_token_is_in_no_log_exception_repr_or_traceback_with_locals(
    api: BotApi, connect: Callable[..., TelegramNotifier], everything_logged: io.StringIO, fault: str
) -> None:
    notifier = connect(api.url, SHORT_TIMEOUTS)
    api.answer(FAULTS[fault])
    caught = refused(notifier)
    found = traceback.TracebackException.from_exception(caught, capture_locals=True)
    shown = ["".join(found.format()), str(caught), repr(caught), repr(vars(caught))]
    assert "notifier = " in shown[0]
    assert caught.__cause__ is None
    assert caught.__context__ is None
    notifier.send(HELLO, Route())
    logging.getLogger("httpx").setLevel(logging.DEBUG)  # somebody turns everything on
    notifier.send(HELLO, Route())
    logging.getLogger("httpx").setLevel(logging.WARNING)
    shown += [repr(notifier), str(notifier), everything_logged.getvalue()]
    assert MASK in everything_logged.getvalue()
    for text in shown:
        assert TOKEN not in text
        assert TOKEN.split(":")[1] not in text


def test_a_secret_shows_a_mask_wherever_it_is_printed() -> None:
    secret = Secret(TOKEN)
    assert secret.reveal() == TOKEN
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r:>20}", f"{[secret]}"):
        assert TOKEN not in shown
    assert (
        secret.redact(f"http://h/bot{TOKEN}/x and 987654321:{'A' * 35}") == f"http://h/bot{MASK}/x and {MASK}"
    )
    with pytest.raises(TypeError):
        pickle.dumps(secret)
