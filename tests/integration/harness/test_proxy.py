"""The proxy between a real client and a real server: what it takes away, and that it alters nothing else."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from argus_sched.harness.proxy import Proxy

PATIENCE = 20.0
SILENCE = 0.3  # long enough for a loopback byte to arrive, were it sent


class Echo:
    """A server that sends back what it gets and notes when a stream ended."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.ended = threading.Event()
        self._peers: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                self._peers.append(peer)
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := peer.recv(65536):
                peer.sendall(data)
        self.ended.set()

    def hang_up(self) -> None:
        for peer in self._peers:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
            peer.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # a close alone leaves a blocked accept listening
        self._listener.close()
        self.hang_up()


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as running:
        yield running


@pytest.fixture
def client(proxy: Proxy, echo: Echo) -> Iterator[socket.socket]:
    port = proxy.open("line", "127.0.0.1", echo.port)
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(b"hello")
        assert read(connection, 5) == b"hello"
        yield connection


def read(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (more := connection.recv(count - len(data))):
        data += more
    return data


def is_silent(connection: socket.socket) -> bool:
    connection.settimeout(SILENCE)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(PATIENCE)
    return False


def test_a_megabyte_passes_unaltered(client: socket.socket) -> None:
    data = bytes(range(256)) * 4096
    threading.Thread(target=client.sendall, args=(data,), daemon=True).start()
    assert read(client, len(data)) == data


def test_the_end_of_a_stream_passes(client: socket.socket, echo: Echo) -> None:
    client.shutdown(socket.SHUT_WR)
    assert echo.ended.wait(PATIENCE)


def test_the_servers_end_passes(client: socket.socket, echo: Echo) -> None:
    echo.hang_up()
    assert read(client, 1) == b""


@pytest.mark.parametrize("directions", [(), ("up",), ("down",)], ids=["both", "up", "down"])
def test_a_held_line_is_silent_and_delivers_once_healed(
    proxy: Proxy, client: socket.socket, directions: tuple[str, ...]
) -> None:
    proxy.hold("line", *directions)
    client.sendall(b"later")
    assert is_silent(client)
    proxy.heal("line")
    assert read(client, 5) == b"later"


def test_a_held_line_hides_that_the_client_is_gone(proxy: Proxy, client: socket.socket, echo: Echo) -> None:
    proxy.hold("line")
    client.close()
    assert not echo.ended.wait(SILENCE)
    proxy.heal("line")
    assert echo.ended.wait(PATIENCE)


def test_a_held_line_hides_that_the_server_is_gone(proxy: Proxy, client: socket.socket, echo: Echo) -> None:
    proxy.hold("line", "down")
    echo.hang_up()
    assert is_silent(client)
    proxy.heal("line")
    assert read(client, 1) == b""


def test_what_a_lossy_line_lost_resets_the_connection_once_healed(
    proxy: Proxy, client: socket.socket
) -> None:
    proxy.drop("line")
    client.sendall(b"gone")
    assert is_silent(client)
    proxy.heal("line")
    with pytest.raises(ConnectionResetError):
        client.recv(1)


def test_a_new_connection_over_a_held_line_reaches_nobody(proxy: Proxy, client: socket.socket) -> None:
    proxy.hold("line")
    with socket.create_connection(client.getpeername(), PATIENCE) as second:
        second.sendall(b"hi")
        assert is_silent(second)
        proxy.heal("line")
        assert read(second, 2) == b"hi"


def test_a_cut_line_resets_and_takes_new_connections(proxy: Proxy, client: socket.socket) -> None:
    address = client.getpeername()
    proxy.cut("line")
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    with socket.create_connection(address, PATIENCE) as second:
        second.sendall(b"hi")
        assert read(second, 2) == b"hi"


def test_a_slow_line_delivers_late(proxy: Proxy, client: socket.socket) -> None:
    proxy.delay("line", 0.1)
    sent = time.monotonic()
    client.sendall(b"slow")
    assert read(client, 4) == b"slow"
    assert time.monotonic() - sent >= 0.2


def test_one_line_does_not_disturb_another(proxy: Proxy, client: socket.socket, echo: Echo) -> None:
    port = proxy.open("other", "127.0.0.1", echo.port)
    proxy.hold("line")
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as other:
        other.sendall(b"free")
        assert read(other, 4) == b"free"


def test_a_server_that_is_away_refuses_by_ending_the_connection(proxy: Proxy, echo: Echo) -> None:
    port = proxy.open("away", "127.0.0.1", echo.port)
    echo.close()
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE) as connection,
        contextlib.suppress(ConnectionResetError),
    ):
        assert connection.recv(1) == b""


def test_the_proxy_ends_with_its_owner(echo: Echo) -> None:
    proxy = Proxy()
    port = proxy.open("line", "127.0.0.1", echo.port)
    proxy.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), PATIENCE)


def test_a_line_can_be_led_to_another_server(proxy: Proxy, client: socket.socket) -> None:
    address, other = client.getpeername(), Echo()
    proxy.point("line", "127.0.0.1", other.port)
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    with socket.create_connection(address, PATIENCE) as second:
        second.sendall(b"hi")
        assert read(second, 2) == b"hi"
        other.close()
        assert read(second, 1) == b""
