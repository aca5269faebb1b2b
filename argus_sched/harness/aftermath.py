"""What is done once this process is over, however it ends: also after kill -9, when it can do nothing itself.

A shell waits on a pipe whose other end only this process holds; the kernel closes it with the process.
"""

from __future__ import annotations

import ctypes
import secrets
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from argus_sched.errors import SettingsError

PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
_ONCE_OVER = 'read -r _; "$@"'
# A Postgres that ends with this process gives its shared memory back, unless its files are gone before that.
_REMOVE = """
working() { ls -l /proc/[0-9]*/cwd 2>/dev/null | grep -qF -- "-> $1/"; }
for _ in $(seq 100); do working "$1" || break; sleep 0.1; done
for _ in $(seq 10); do rm -rf -- "$1" && break; sleep 1; done
"""


@contextmanager
def afterwards(*command: str) -> Iterator[None]:
    """Have `command` run when the block is over; also when this process is killed within it.

    Ctrl-C does not reach it, and what it prints is not shown.
    """
    # The pipe is closed on leaving, and the command waited for.
    with subprocess.Popen(
        ["/bin/sh", "-c", _ONCE_OVER, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    ):
        yield


@contextmanager
def one_folder(prefix: str) -> Iterator[Path]:
    """A new folder that takes every temporary file of this process, and is gone with it.

    Who works in it has ten seconds to end before. Raises SettingsError when there is no place for one.
    """
    # Resolved, since it is named to programs that run elsewhere.
    folder = _parent().resolve() / f"{prefix}{secrets.token_hex(8)}"
    # Who removes it is there before it is.
    with afterwards("/bin/sh", "-c", _REMOVE, "sh", str(folder)):
        _make(folder)
        before, tempfile.tempdir = tempfile.tempdir, str(folder)
        try:
            yield folder
        finally:
            tempfile.tempdir = before


def _parent() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except OSError as error:
        raise SettingsError(f"there is no temporary folder, name one in TMPDIR: {error}") from error


def _make(folder: Path) -> None:
    try:
        folder.mkdir()
        # Postgres runs as another user where we are root, in a folder below this one.
        folder.chmod(0o711)
    except OSError as error:
        raise SettingsError(f"no temporary folder can be made, name one in TMPDIR: {error}") from error


def end_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends; for `preexec_fn`."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
