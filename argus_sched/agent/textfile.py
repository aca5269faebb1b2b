"""The file that node_exporter's textfile collector reads."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from argus_sched.errors import ArgusError

MODE = 0o644  # node_exporter runs as another user
ABANDONED_SECONDS = 600.0


class TextfileError(ArgusError):
    """The metrics cannot be written to their file."""


def write_textfile(path: str | Path, data: bytes) -> None:
    """Replace `path` by `data` in one step: a reader sees the old file or the new one, never a part.

    The new file is durable before it takes the place, and survives a crash whole. Raises TextfileError, with
    the old file left as it was.
    """
    target = Path(path)
    try:
        with _beside(target) as (descriptor, temporary):
            _write_whole(descriptor, data)
            temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise TextfileError(f"cannot write the textfile {target}: {_cause(error, target)}") from error


@contextlib.contextmanager
def _beside(target: Path) -> Iterator[tuple[int, Path]]:
    """A temporary file in the same folder, gone at the end unless it was renamed."""
    prefix = f".{target.name}."
    _remove_abandoned(target.parent, prefix)
    # The suffix must not be .prom: node_exporter would read the file while it grows.
    descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=".tmp", dir=target.parent)
    try:
        yield descriptor, Path(name)
    finally:
        os.close(descriptor)
        Path(name).unlink(missing_ok=True)


def _write_whole(descriptor: int, data: bytes) -> None:
    os.fchmod(descriptor, MODE)
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(data)
    os.fsync(descriptor)


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Delete what a writer that was killed has left."""
    for leftover in folder.glob(f"{glob.escape(prefix)}*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > ABANDONED_SECONDS:
                leftover.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cause(error: OSError, target: Path) -> str:
    match error:
        case FileNotFoundError():
            return f"the folder {target.parent} does not exist; create it or change `textfile`"
        case IsADirectoryError():
            return "it is a folder; name a file that ends in .prom"
        case PermissionError():
            return f"no permission to create files in {target.parent}"
        case _:
            return error.strerror or str(error)
