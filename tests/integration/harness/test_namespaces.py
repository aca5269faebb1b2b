"""Real network namespaces: what a silent line does to a TCP connection, and that nothing of them is left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argus_sched.errors import SourceError
from argus_sched.harness import namespaces
from argus_sched.harness.blocks import Block, block_of
from argus_sched.harness.lines import Way
from argus_sched.harness.namespaces import NamespaceLines
from argus_sched.postgres.embedded import EmbeddedPostgres
from argus_sched.postgres.witness import Witness, address_of

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(bool(namespaces.obstacle()), reason=f"no network namespaces: {namespaces.obstacle()}"),
]

PATIENCE = 60.0
SILENCE = 0.7  # long enough for a first retransmission

# One command a line on standard input, one answer a line: a client within a namespace.
CLIENT = """
import json, select, socket, struct, sys
connection = None
for line in sys.stdin:
    do, *rest = json.loads(line)
    answer = None
    try:
        if do == "connect":
            connection = socket.create_connection((rest[0], rest[1]), rest[2])
        elif do == "send":
            connection.sendall(rest[0].encode())
        elif do == "receive":
            answer = connection.recv(100).decode() if select.select([connection], [], [], rest[0])[0] else None
        elif do == "unacknowledged":
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
            answer = [struct.unpack_from("I", info, 24)[0], info[2]]
    except OSError as error:
        answer = type(error).__name__
    print(json.dumps(answer), flush=True)
"""


class Client:
    """A process in a namespace that holds one TCP connection."""

    def __init__(self, way: Way) -> None:
        command = [*way.within, sys.executable, "-c", CLIENT]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *command: object) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def lines() -> Iterator[NamespaceLines]:
    with NamespaceLines(f"{os.getpid():x}", ["w1", "w2"]) as running:
        yield running


@pytest.fixture
def pair(lines: NamespaceLines) -> Iterator[tuple[Client, socket.socket]]:
    """A client in the first namespace, and this machine's end of its connection."""
    with socket.create_server((lines.block.host, 0)) as server:
        server.settimeout(PATIENCE)
        client = Client(lines.open("w1", dsn_of(server)))
        client.ask("connect", *server.getsockname(), PATIENCE)
        peer, _ = server.accept()
        with peer:
            peer.settimeout(PATIENCE)
            yield client, peer
        client.close()


def dsn_of(server: socket.socket) -> str:
    return f"postgresql://postgres@127.0.0.1:{server.getsockname()[1]}/x"


def present(block: Block, *slots: str) -> list[str]:
    """Which of a block's namespaces and links are there; only `slots`' if given."""
    names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout.split()
    names += [link.name for link in Path("/sys/class/net").iterdir()]
    return [name for name in names if block_of(name) == block and (not slots or name.endswith(slots))]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, f"waited {PATIENCE:g} s for {what}"
        time.sleep(0.02)


def test_each_slot_has_an_address_of_its_own_and_reaches_this_machine(lines: NamespaceLines) -> None:
    with socket.create_server((lines.block.host, 0)) as server:
        server.settimeout(PATIENCE)
        for place, slot in enumerate(("w1", "w2")):
            way = lines.open(slot, dsn_of(server))
            assert address_of(way.dsn) == server.getsockname()
            client = Client(way)
            assert client.ask("connect", *address_of(way.dsn), PATIENCE) is None
            peer, (address, _) = server.accept()
            peer.close()
            client.close()
            assert address == lines.block.slot(place)


def test_a_namespace_reaches_nothing_but_this_machine(lines: NamespaceLines) -> None:
    with socket.create_server((lines.block.host, 0)) as server:
        client = Client(lines.open("w1", dsn_of(server)))
        # No route leads to the other slot, nor out into the world.
        assert client.ask("connect", lines.block.slot(1), 9, PATIENCE) == "OSError"
        assert client.ask("connect", "192.0.2.1", 9, PATIENCE) == "OSError"
        client.close()


@pytest.mark.parametrize("directions", [(), ("up",)])
def test_what_is_sent_on_a_silent_line_is_lost_on_the_way_and_arrives_once_it_is_healed(
    lines: NamespaceLines, pair: tuple[Client, socket.socket], directions: tuple[str, ...]
) -> None:
    client, peer = pair
    lines.silence("w1", *directions)
    client.ask("send", "hello")
    peer.settimeout(SILENCE)
    with pytest.raises(TimeoutError):
        peer.recv(100)
    # Sent as far as its own kernel can tell, and sent again: neither end was told that anything is wrong.
    wait_until(lambda: all(client.ask("unacknowledged")), "a retransmission")
    lines.heal("w1")
    peer.settimeout(PATIENCE)
    assert peer.recv(100) == b"hello"


def test_what_a_silent_line_does_not_hear_is_still_asked(
    lines: NamespaceLines, pair: tuple[Client, socket.socket]
) -> None:
    client, peer = pair
    lines.silence("w1", "down")
    client.ask("send", "question")
    assert peer.recv(100) == b"question"
    peer.sendall(b"answer")
    assert client.ask("receive", SILENCE) is None
    lines.heal("w1")
    assert client.ask("receive", PATIENCE) == "answer"


@pytest.mark.parametrize("directions", [(), ("up",), ("down",)])
def test_no_new_connection_comes_through_a_silent_line(
    lines: NamespaceLines, pair: tuple[Client, socket.socket], directions: tuple[str, ...]
) -> None:
    client, peer = pair
    address = peer.getsockname()
    lines.silence("w1", *directions)
    # Silence, where a line with a rule that rejects would say so at once.
    assert client.ask("connect", *address, SILENCE) == "TimeoutError"
    lines.heal("w1")
    assert client.ask("connect", *address, PATIENCE) is None


def test_one_silent_line_leaves_the_other_alone(lines: NamespaceLines) -> None:
    with socket.create_server((lines.block.host, 0)) as server:
        lines.silence("w1")
        other = Client(lines.open("w2", dsn_of(server)))
        assert other.ask("connect", *server.getsockname(), PATIENCE) is None
        other.close()


def test_two_runs_with_the_same_beginning_share_nothing_and_leave_nothing() -> None:
    with NamespaceLines("7", ["w1"]) as first, NamespaceLines("7", ["w1"]) as second:
        blocks = (first.block, second.block)
        assert blocks[0] != blocks[1]
        assert all(len(present(block)) == 2 for block in blocks)
    assert [present(block) for block in blocks] == [[], []]


def test_a_start_that_fails_halfway_leaves_nothing() -> None:
    lines = NamespaceLines("9", ["w1", "too-long-for-a-device"])
    with pytest.raises(SourceError, match=r"`ip .*` failed: "):
        lines.__enter__()
    assert present(lines.block) == []


def test_what_a_killed_run_left_is_gone_with_the_next_run() -> None:
    code = (
        "import subprocess, sys; from argus_sched.harness.namespaces import NamespaceLines\n"
        "lines = NamespaceLines('b', ['w1']).__enter__()\n"
        "child = subprocess.Popen([*lines.open('w1', '').within, 'sleep', '600'], stdout=subprocess.DEVNULL)\n"
        "print(lines.block.number, child.pid, flush=True); sys.stdin.read()"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout
    number, child = map(int, run.stdout.readline().split())
    namespaces.sweep()
    assert len(present(Block(number))) == 2, "a run that is still there loses nothing"
    run.kill()
    run.communicate()
    try:
        with NamespaceLines("b", ["w2"]):
            assert present(Block(number), "w1") == [], "although a process is left in it"
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_server_lets_a_slot_in_through_its_door(lines: NamespaceLines) -> None:
    query = "import sys, psycopg; print(psycopg.connect(sys.argv[1]).execute('SELECT inet_client_addr()').fetchone()[0])"
    with EmbeddedPostgres(door=lines.door) as server:
        for _ in range(2):
            way = lines.open("w2", server.dsn())
            command = [*way.within, sys.executable, "-c", query, way.dsn]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.stdout.strip() == lines.block.slot(1), done.stderr
            server.restart("immediate")


# A session of the scheduler's that hears no answer any more, and gives up; its process lives on.
DEAF = """
import sys
from argus_sched.postgres.connection import NoAnswerError, Session
session = Session.open(sys.argv[1], {"application_name": "deaf"})
print(session.announced_pid, flush=True)
sys.stdin.readline()
try:
    session.ask("SELECT 1", timeout=1.0)
except NoAnswerError:
    session.close()
print("closed", flush=True)
sys.stdin.read()
"""


def test_a_session_that_is_given_up_for_want_of_an_answer_ends_at_the_server_too(
    lines: NamespaceLines,
) -> None:
    with EmbeddedPostgres(door=lines.door) as server, contextlib.closing(Witness(server.dsn(), 1)) as witness:
        way = lines.open("w1", server.dsn())
        command = [*way.within, sys.executable, "-c", DEAF, way.dsn]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as deaf:
            assert deaf.stdin
            assert deaf.stdout
            pid = int(deaf.stdout.readline())
            assert witness.seat(pid)
            lines.silence("w1", "down")
            deaf.stdin.write("ask\n")
            deaf.stdin.flush()
            assert deaf.stdout.readline() == "closed\n"
            # A farewell would wait in line behind the question, which no acknowledgement ever reaches.
            wait_until(lambda: witness.seat(pid) is None, "the server to let the session go")


def test_a_run_that_is_interrupted_takes_its_namespaces_down() -> None:
    command = [
        sys.executable,
        "-m",
        "argus_sched",
        "harness",
        "run",
        "--lines",
        "namespaces",
        "--faults",
        "partition",
    ]
    command += ["--profile", "fast", "--jobs", "2", "--duration", "10m"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.stdout
    told = ""
    while "goes silent" not in told:
        told = run.stdout.readline()
        assert told, "it ended before its first fault"
    block = next(block for block in map(block_within, children_of(run.pid)) if block)
    assert len(present(block)) == 6
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=PATIENCE)
    assert run.returncode != 0
    assert present(block) == []


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def block_within(pid: int) -> Block | None:
    """The block whose namespace a process is in."""
    with contextlib.suppress(OSError):
        own = Path(f"/proc/{pid}/ns/net").stat().st_ino
        for path in Path("/run/netns").iterdir():
            if path.stat().st_ino == own:
                return block_of(path.name)
    return None
