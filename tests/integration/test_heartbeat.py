"""The sign of life against a real server."""

from __future__ import annotations

import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from argus_sched.agent.heartbeat import beat
from argus_sched.agent.web_address import WebAddress
from argus_sched.errors import DeliveryError
from argus_sched.postgres.embedded import free_port
from tests.fakes.http_sink import DrippingServer


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """Answers /ok with 200, /closed with 200 for argus with the password p@ss, everything else with 500."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers["Authorization"] == f"Basic {b64encode(b'argus:p@ss').decode()}"
            self.send_response(200 if self.path == "/ok" or (known and self.path == "/closed") else 500)
            self.end_headers()
            self.wfile.write(b"OK")

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield httpd
    httpd.shutdown()
    httpd.server_close()


def test_a_beat_that_is_heard_says_nothing(server: HTTPServer) -> None:
    beat(WebAddress(f"http://127.0.0.1:{server.server_port}/ok"))


def test_a_refusal_is_an_error_that_names_the_host_and_not_the_secret_path(server: HTTPServer) -> None:
    with pytest.raises(DeliveryError, match=r"127\.0\.0\.1:[0-9]+ was answered with 500") as caught:
        beat(WebAddress(f"http://127.0.0.1:{server.server_port}/s3cret"))
    assert "s3cret" not in str(caught.value)


def test_a_name_and_password_in_the_address_are_sent_as_a_header(server: HTTPServer) -> None:
    beat(WebAddress(f"http://argus:p%40ss@127.0.0.1:{server.server_port}/closed"))
    with pytest.raises(DeliveryError, match="answered with 500"):
        beat(WebAddress(f"http://argus:wrong@127.0.0.1:{server.server_port}/closed"))


def test_nobody_there_is_an_error() -> None:
    with pytest.raises(DeliveryError, match="got no answer"):
        beat(WebAddress(f"http://127.0.0.1:{free_port()}/s3cret"))


def test_a_server_that_drips_its_answer_is_given_up_too() -> None:
    with DrippingServer() as url, pytest.raises(DeliveryError, match=r"gave no whole answer in 0\.5 s"):
        beat(WebAddress(url), timeout=0.5)


def test_a_server_that_never_answers_is_given_up() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(DeliveryError, match=r"got no answer|gave no whole answer"),
    ):
        beat(WebAddress(f"http://127.0.0.1:{silent.getsockname()[1]}/"), timeout=0.2)
