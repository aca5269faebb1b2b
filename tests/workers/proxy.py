"""A proxy before Postgres that can alter what the server says, or go silent without closing anything."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Proxy:
    """Forwards one port to a server on this machine, in threads, until it is left."""

    def __init__(self, server_port: int, alter: Callable[[bytes], bytes] = bytes) -> None:
        self._server_port = server_port
        self._alter = alter
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self.port: int = self._listener.getsockname()[1]

    def freeze(self) -> None:
        """Forward nothing any more, and close nothing: a cable that was pulled."""
        self._open.clear()

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._open.set()
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._sockets += [client, server]
                self._pump(client, server, bytes)
                self._pump(server, client, self._alter)

    def _pump(self, source: socket.socket, target: socket.socket, alter: Callable[[bytes], bytes]) -> None:
        def run() -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    self._open.wait()
                    target.sendall(alter(data))
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()
