"""Files of the agent's state, made so that the state's owner can use them whoever made them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

MODE = 0o644


def make_sure_of(path: Path) -> None:
    """Make an empty file at `path` unless there is one; root gives what it makes to the folder's owner.

    A person runs `argus-sched silence` as root beside a service that is another user: a file of root's would
    keep the service from ever writing its state. Raises OSError where no file can be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        # Exclusively, so that root never gives away a file that somebody has put or linked there.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
        try:
            _give(descriptor, path.parent)
        finally:
            os.close(descriptor)


def _give(descriptor: int, folder: Path) -> None:
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
