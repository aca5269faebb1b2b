"""A Docker daemon behind ssh: a Unix socket here, whose every connection is `docker system dial-stdio` there.

The SDK's own way over ssh reads from a pipe without a time limit and may ask for a password. A socket has
limits, and OpenSSH is told to ask nobody and to give up.
"""

from __future__ import annotations

import math
import socket
import subprocess
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

REMOTE = ("docker", "system", "dial-stdio")
ENDING_SECONDS = 2.0


class SshDoor:
    """The socket; `host` is its DOCKER_HOST. All connections share one login (ControlMaster)."""

    def __init__(self, url: str, timeout: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="argus-ssh-", ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        self.host = f"unix://{folder / 'docker.sock'}"
        self._errors = folder / "errors"
        self._command = ssh_command(url, timeout, folder / "master")
        self._running: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "docker.sock"))
        self._listener.listen(64)
        self._thread = threading.Thread(target=self._serve, name="ssh-door", daemon=True)
        self._thread.start()

    @property
    def last_words(self) -> str:
        """What ssh complained of last; empty when it did not."""
        try:
            lines = self._errors.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """Hang up: no ssh of this door outlives it."""
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread, which closing would not
        self._thread.join(ENDING_SECONDS)
        self._listener.close()
        with self._lock:
            for process in self._running:
                process.terminate()
            for process in self._running:
                _end(process)
            self._running.clear()
        self._folder.cleanup()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            with caller, self._lock, self._errors.open("ab") as errors:
                self._running = [process for process in self._running if process.poll() is None]
                try:
                    line = caller.fileno()
                    process = subprocess.Popen(self._command, stdin=line, stdout=line, stderr=errors)
                    self._running.append(process)
                except FileNotFoundError:
                    errors.write(b"ssh is not installed here: install OpenSSH's client\n")
                except OSError as error:
                    errors.write(f"cannot start {self._command[0]}: {error.strerror}\n".encode())


def ssh_command(url: str, timeout: float, master: Path) -> list[str]:
    """The command for one connection to the daemon at `url`; it asks nobody, and ends within `timeout`
    seconds when the machine does not answer."""
    parts = urlsplit(url)
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": str(math.ceil(timeout)),
        "ServerAliveInterval": "5",
        "ServerAliveCountMax": "2",
        "ControlMaster": "auto",
        "ControlPath": str(master),
        "ControlPersist": "no",
        "LogLevel": "ERROR",
    }
    command = ["ssh", "-T", *(f"-o{name}={value}" for name, value in options.items())]
    command += ["-l", parts.username] if parts.username else []
    command += ["-p", str(parts.port)] if parts.port else []
    return [*command, "--", parts.hostname or "", *REMOTE]


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
