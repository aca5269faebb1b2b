"""A daemon on a Unix socket is asked directly: in its own version, with its own words, and without the SDK."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer

import pytest

from argus_sched.agent.sources.engine import AbsentError, RefusedError
from argus_sched.agent.sources.unix_engine import UnixEngine
from tests.fakes.docker_daemon import FakeDocker

SECONDS = 60.0


@contextmanager
def answering(path: Path, status: int, body: bytes) -> Iterator[None]:
    """A server that gives one answer to everything but the question for its version."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.path == "/version"
            self.send_response_only(200 if asked else status)
            self.end_headers()
            self.wfile.write(b'{"ApiVersion": "1.41"}' if asked else body)

    with ThreadingUnixStreamServer(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def test_every_question_is_asked_in_the_version_that_the_daemon_speaks() -> None:
    with FakeDocker() as docker:
        docker.add("web", labels={"tier": "a"})
        engine = UnixEngine(str(docker.socket), SECONDS)
        (row,) = engine.listed(["tier=a"])
        engine.inspected("web")
        engine.log(row["Id"], 1, SECONDS).close()
    first, *others = docker.requests
    assert first == "/version"
    assert [path.startswith("/v1.41/containers/") for path in others] == [True, True, True]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"message": "no space left\\n"}', "no space left"),
        (b"upstream is away\n", "upstream is away"),
        (b'"only a text"', '"only a text"'),
        (b"", "Bad Gateway"),
    ],
)
def test_a_refusal_carries_the_words_of_whoever_answered(tmp_path: Path, body: bytes, words: str) -> None:
    with answering(tmp_path / "socket", 502, body), pytest.raises(RefusedError) as caught:
        UnixEngine(str(tmp_path / "socket"), SECONDS).inspected("web")
    assert (caught.value.status, caught.value.words) == (502, words)


def test_a_name_cannot_reach_out_of_its_place_in_the_path() -> None:
    with FakeDocker() as docker, pytest.raises(RefusedError):
        UnixEngine(str(docker.socket), SECONDS).inspected("../../images?a=b")
    assert docker.requests[-1] == "/v1.41/containers/..%2F..%2Fimages%3Fa%3Db/json"


def test_nobody_there_is_no_refusal(tmp_path: Path) -> None:
    with pytest.raises(AbsentError) as caught:
        UnixEngine(str(tmp_path / "socket"), SECONDS)
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_log_on_this_machine_is_read_without_loading_the_sdk() -> None:
    with FakeDocker() as docker:
        docker.add("web")
        program = (
            "import sys; from argus_sched.agent.packs import LogSpec; from argus_sched.clock import SystemClock\n"
            "from argus_sched.agent.sources import open_source\n"
            f"source = open_source(LogSpec(container='web'), clock=SystemClock(), timeout=60, docker_host={docker.host!r})\n"
            "print(len(source.containers()), 'docker' in sys.modules, 'requests' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1 False False\n", "")
