"""Webhook and Alertmanager: what goes over the wire, what the answers mean, and a real Alertmanager."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from argus_sched.agent.config.channels import AlertmanagerSettings, WebhookSettings
from argus_sched.agent.notifiers import http_json
from argus_sched.agent.notifiers.alertmanager import KEEP, AlertmanagerNotifier, alerts_of
from argus_sched.agent.notifiers.stdout import StdoutNotifier
from argus_sched.agent.notifiers.webhook import WebhookNotifier
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.telling.incidents import Incident, incident_id
from argus_sched.agent.telling.messages import NO_LIMIT, Digest, Message, compose
from argus_sched.agent.telling.notices import Change, Line, Notice
from argus_sched.agent.telling.notify_ports import (
    ContentRefusedError,
    RefusedError,
    Route,
    ThrottledError,
    UnreachableError,
)
from argus_sched.errors import DeliveryError
from tests.fakes.http_sink import DrippingServer, HttpSink

AT = datetime(2026, 3, 14, 10, 41, tzinfo=UTC)
OPENED = AT - timedelta(minutes=41)
MINUTE = timedelta(minutes=1)


def incident(subject: str = "labs/job", status: Status = Status.CRIT, opened: datetime = OPENED) -> Incident:
    """An open incident."""
    return Incident(
        incident_id(subject, opened), subject, opened, status, Phase.STALE, "no run for 41m", "missed", "Job"
    )


def message(*lines: tuple[Change, Incident], still: tuple[Incident, ...] = (), at: datetime = AT) -> Message:
    """The one message of a digest."""
    told = tuple(
        Line(Notice("x", change, one.status, one, at, number), (number,), was_told=change is not Change.FIRED)
        for number, (change, one) in enumerate(lines, 1)
    )
    (found,) = compose(Digest(at, told, still), NO_LIMIT)
    return found


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    """A server."""
    with HttpSink() as server:
        yield server


def test_a_webhook_takes_each_notice_with_its_times(sink: HttpSink) -> None:
    notifier = WebhookNotifier(WebhookSettings(f"http://{sink.host}/hook/secret"))
    ended = replace(incident("labs/b"), closed_at=AT)
    told = message((Change.FIRED, incident()), (Change.RECOVERED, ended))
    first = notifier.send(told, Route())
    assert notifier.send(told, Route()) == first
    body = sink.taken[0].body
    assert [(one["target"], one["change"], one["duration_seconds"]) for one in body["notices"]] == [
        ("labs/job", "fired", None),
        ("labs/b", "recovered", 2460.0),
    ]
    assert body["notices"][0]["opened_at"] == "2026-03-14T10:00:00Z"
    assert body["text"].startswith("1 CRIT, 1 recovered")
    assert {one.headers["Idempotency-Key"] for one in sink.taken} == {body["id"]}


def test_a_name_and_password_in_an_address_become_a_header(sink: HttpSink) -> None:
    notifier = WebhookNotifier(WebhookSettings(f"http://me:s3cr%40t@{sink.host}/hook"))
    notifier.send(message((Change.FIRED, incident())), Route())
    assert sink.taken[0].headers["Authorization"] == "Basic bWU6czNjckB0"
    assert notifier.chat == sink.host


@pytest.mark.parametrize(
    ("status", "headers", "meaning"),
    [
        (400, {}, ContentRefusedError),
        (413, {}, ContentRefusedError),
        (401, {}, RefusedError),
        (404, {}, RefusedError),
        (302, {"Location": "/elsewhere"}, RefusedError),
        (408, {}, UnreachableError),
        (500, {}, UnreachableError),
        (503, {}, UnreachableError),
        (503, {"Retry-After": "34"}, ThrottledError),
        (429, {"Retry-After": "34"}, ThrottledError),
    ],
)
def test_an_answer_has_its_meaning_and_no_error_shows_the_address(
    sink: HttpSink, status: int, headers: dict[str, str], meaning: type[DeliveryError]
) -> None:
    sink.answers.append((status, headers))
    notifier = WebhookNotifier(WebhookSettings(f"http://{sink.host}/hook/s3cr3t"))
    with pytest.raises(DeliveryError) as caught:
        notifier.send(message((Change.FIRED, incident())), Route())
    assert type(caught.value) is meaning
    assert getattr(caught.value, "seconds", 34) == 34
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "s3cr3t" not in shown
    assert caught.value.__context__ is None


@pytest.mark.parametrize(("word", "seconds"), [("9" * 40, 1e40), ("²", 60), ("-5", 60), ("soon", 60)])
def test_a_strange_wait_is_a_number_of_seconds_all_the_same(
    sink: HttpSink, word: str, seconds: float
) -> None:
    sink.answers.append((429, {"Retry-After": word}))
    with pytest.raises(ThrottledError) as caught:
        WebhookNotifier(WebhookSettings(f"http://{sink.host}/")).send(
            message((Change.FIRED, incident())), Route()
        )
    assert caught.value.seconds == pytest.approx(seconds)


def test_a_server_that_drips_its_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_json, "WHOLE_SECONDS", 0.5)
    with DrippingServer() as url, pytest.raises(UnreachableError, match="it may have been delivered"):
        WebhookNotifier(WebhookSettings(url)).send(message((Change.FIRED, incident())), Route())


def test_an_alert_of_a_time_when_the_clock_was_ahead_does_not_begin_after_its_end() -> None:
    early = incident(opened=AT + timedelta(days=1500))
    (found,) = alerts_of(message((Change.FIRED, early)), KEEP)
    assert found["startsAt"] == found["endsAt"] == "2026-03-14T11:41:00Z"


def test_an_address_nobody_listens_at_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    notifier = WebhookNotifier(WebhookSettings(f"http://127.0.0.1:{port}/hook/s3cr3t"))
    with pytest.raises(UnreachableError, match=f"127.0.0.1:{port} cannot be reached") as caught:
        notifier.send(message((Change.FIRED, incident())), Route())
    assert "s3cr3t" not in str(caught.value)


def test_alerts_are_what_is_open_and_what_has_ended() -> None:
    ended = replace(incident("labs/b"), closed_at=AT)
    alerts = alerts_of(message((Change.RECOVERED, ended), still=(incident(),)), KEEP)
    assert [(one["labels"]["target"], one["endsAt"]) for one in alerts] == [
        ("labs/job", "2026-03-14T11:41:00Z"),
        ("labs/b", "2026-03-14T10:41:00Z"),
    ]
    assert alerts[0]["labels"] == {
        "alertname": "ArgusCheck",
        "app": "labs",
        "target": "labs/job",
        "severity": "critical",
    }


def test_a_warning_that_became_critical_ends_as_a_warning() -> None:
    alerts = alerts_of(message((Change.WORSE, incident())), KEEP)
    assert [(one["labels"]["severity"], one["endsAt"]) for one in alerts] == [
        ("critical", "2026-03-14T11:41:00Z"),
        ("warning", "2026-03-14T10:41:00Z"),
    ]


def test_standard_output_shows_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    StdoutNotifier().send(message((Change.FIRED, incident())), Route())
    assert capsys.readouterr().out.startswith("1 CRIT\n\nCRIT labs/job Job\n")


@pytest.fixture
def alertmanager(tmp_path: Path, sink: HttpSink) -> Iterator[str]:
    """The root of a real Alertmanager that groups everything and tells the sink at once."""
    program = shutil.which("prometheus-alertmanager")
    if program is None:
        pytest.skip("prometheus-alertmanager is not installed")
    config = {
        "route": {
            "receiver": "sink",
            "group_by": ["alertname"],
            "group_wait": "10ms",
            "group_interval": "10ms",
        },
        "receivers": [
            {"name": "sink", "webhook_configs": [{"url": f"http://{sink.host}/am", "send_resolved": True}]}
        ],
    }
    (tmp_path / "am.yml").write_text(json.dumps(config))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = subprocess.Popen(
        [
            program,
            f"--config.file={tmp_path / 'am.yml'}",
            f"--storage.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(lambda: _is_ready(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.prometheus
def test_a_real_alertmanager_takes_an_alert_and_its_end(alertmanager: str, sink: HttpSink) -> None:
    notifier = AlertmanagerNotifier(AlertmanagerSettings(alertmanager), MINUTE)
    now = datetime.now(UTC)
    opened = incident(opened=now - 5 * MINUTE)
    notifier.send(message((Change.FIRED, opened), still=(opened,), at=now), Route())
    notifier.send(message(still=(opened,), at=now), Route())
    (alert,) = _get(f"{alertmanager}/api/v2/alerts")
    assert alert["labels"]["target"] == "labs/job"
    assert alert["annotations"]["incident"] == opened.id
    _wait_for(lambda: [one.body["status"] for one in sink.taken] == ["firing"])
    ended = replace(opened, closed_at=datetime.now(UTC))
    notifier.send(message((Change.RECOVERED, ended), at=datetime.now(UTC)), Route())
    _wait_for(lambda: [one.body["status"] for one in sink.taken][-1] == "resolved")
    assert _get(f"{alertmanager}/api/v2/alerts") == []


def _get(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready") as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _wait_for(condition: Callable[[], bool], seconds: int = 60) -> None:
    """Until `condition` holds; it is asked ten times a second."""
    pause = threading.Event()
    for _ in range(seconds * 10):
        if condition():
            return
        pause.wait(0.1)
    pytest.fail("the condition never held")
