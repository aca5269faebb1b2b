"""A real connection pooler before Postgres."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from argus_sched.postgres.embedded import free_port
from tests.workers.scheduler_cluster import until


@contextlib.contextmanager
def pgbouncer(server_port: int, mode: str) -> Iterator[int]:
    """A pooler of one server session in front of the server; its port."""
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="argus-pgbouncer-"))
    folder.chmod(0o755)
    (folder / "users.txt").write_text('"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={server_port}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
        f"auth_file = {folder}/users.txt\npool_mode = {mode}\ndefault_pool_size = 1\n"
    )
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    process = subprocess.Popen(
        ["pgbouncer", "-q", str(folder / "pgbouncer.ini")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **user,  # type: ignore[call-overload]
    )
    try:
        until("the pooler", lambda: listens(port))
        yield port
    finally:
        process.terminate()
        process.wait()


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False
