"""Where to remember what was told while the state file takes nothing: a full disk, a read-only folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

# Memory that survives the process and shares no disk with the state.
SHARED_MEMORY = "/dev/shm"  # noqa: S108 a folder of our own is made in it, and refused when it is another's
IN_MEMORY = Path(":memory:")


def stand_in_path(state: Path, environ: Mapping[str, str]) -> Path:
    """A file for the stand-in of `state`, in a private folder of the first place that takes one.

    `:memory:` when no place does: then each process tells everything that is wrong once.
    """
    name = hashlib.sha256(str(state.absolute()).encode(errors="surrogateescape")).hexdigest()[:16]
    places = (environ.get("XDG_RUNTIME_DIR", ""), SHARED_MEMORY, tempfile.gettempdir())
    for place in filter(None, places):
        folder = Path(place) / f"argus-sched-{os.getuid()}"
        if _is_private(folder):
            return folder / f"{name}.db"
    return IN_MEMORY


def _is_private(folder: Path) -> bool:
    """Whether `folder` is there, or could be made, and is ours alone: these places are open to everyone."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        probe = os.access(folder, os.W_OK)
        return probe and folder.is_dir() and not folder.is_symlink() and found.st_uid == os.getuid()
    return False
