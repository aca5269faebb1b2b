"""A TCP door to a Unix socket, with TLS or without, that can fall silent: a Docker daemon on another machine.

with FakeDocker() as docker, Front(docker.socket) as front:
    front.host                       # tcp://127.0.0.1:PORT
    front.silent = True              # takes connections and answers nothing, as a frozen machine does
    front.close()                    # refuses them

"""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Self


class Front:
    """The door; `connections` counts who knocked."""

    def __init__(self, target: Path, tls: ssl.SSLContext | None = None, *, silent: bool = False) -> None:
        self.silent = silent
        self.connections = 0
        self._target = str(target)
        self._tls = tls
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.host = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Go away; everything under way breaks off."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for line in self._open:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(caller)
            if not self.silent:
                threading.Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                caller = self._tls.wrap_socket(caller, server_side=True)
                self._open.append(caller)
            inner = socket.socket(socket.AF_UNIX)
            self._open.append(inner)
            inner.connect(self._target)
            threading.Thread(target=_pump, args=(caller, inner), daemon=True).start()
            _pump(inner, caller)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    # With TLS one way cannot be ended alone; the daemon ends an answer by its length.
    for line in (source, sink):
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)


def make_certificates(folder: Path, server: str = "IP:127.0.0.1") -> None:
    """`ca.pem`, and `server` and `client` with their `-key.pem`, signed by it; needs the openssl program."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl(*new, "-x509", "-subj", "/CN=test authority", "-keyout", "ca-key.pem", "-out", "ca.pem")
    for name, names in (("server", server), ("client", "DNS:client")):
        openssl(*new, "-subj", f"/CN={name}", "-keyout", f"{name}-key.pem", "-out", f"{name}.csr")
        (folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        sign = ["x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-days", "2"]
        openssl(*sign, "-CAcreateserial", "-extfile", f"{name}.ext", "-out", f"{name}.pem")


def server_context(folder: Path) -> ssl.SSLContext:
    """TLS that wants a client's certificate, as a Docker daemon does with --tlsverify."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server-key.pem")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context
