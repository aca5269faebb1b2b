"""Places for workers: what fills one, and where its log goes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from argus_sched.harness.aftermath import end_with_parent


@dataclass
class Slot:
    """A place for a worker: where it finds the database, what its command is run by, and its process."""

    name: str
    dsn: str
    size: int = 1
    within: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    births: int = 0


Launcher = Callable[[Path, Slot], "subprocess.Popen[bytes]"]


def launch(folder: Path, slot: Slot) -> subprocess.Popen[bytes]:
    """Fill a slot with a worker process, or with a uvicorn parent of several."""
    command = [*slot.within, sys.executable, "-m", "argus_sched.harness.worker", str(slot.size)]
    return subprocess.Popen(
        command,
        env={**os.environ, **environment_of(folder, slot)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=end_with_parent,  # noqa: PLW1509 - one prctl call, no lock is taken
    )


def keep_log(stream: IO[bytes] | None, path: Path) -> None:
    """Append each line of `stream` to `path` as Docker's json-file driver does."""
    if stream is None:
        return
    with stream, path.open("ab", buffering=0) as log:
        for line in stream:
            stamp = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
            entry = {"log": line.decode(errors="replace"), "stream": "stderr", "time": stamp}
            # Read on when the disk is full: a worker must not wait for its log.
            with contextlib.suppress(OSError):
                log.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")


def environment_of(folder: Path, slot: Slot) -> dict[str, str]:
    """What a worker must be told."""
    return {
        "ARGUS_HARNESS_FOLDER": str(folder),
        "ARGUS_HARNESS_SLOT": slot.name,
        "ARGUS_HARNESS_DSN": slot.dsn,
        "ARGUS_HARNESS_BIRTH": str(slot.births),
        "PYTHONUNBUFFERED": "1",
    }
