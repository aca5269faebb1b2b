"""Which process this is, as the leader's record names it."""

from __future__ import annotations

import os
import re
import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path

_CONTAINER = re.compile(r"/(?:containers|docker|libpod-|crio-|cri-containerd-)[-/]?([0-9a-f]{64})\b")


@dataclass(frozen=True)
class Worker:
    """One process that may lead; `instance` is new for each, since a host's or container's name returns."""

    namespace: str
    instance: str = field(default_factory=lambda: str(uuid.uuid4()))
    host: str = field(default_factory=socket.gethostname)
    container: str | None = field(default_factory=lambda: container_id(_mounts()))
    pid: int = field(default_factory=os.getpid)
    schedule_hash: str | None = None


def container_id(mountinfo: str) -> str | None:
    """The id of the container whose `/proc/self/mountinfo` this is; None outside one."""
    found = _CONTAINER.search(mountinfo)
    return found.group(1) if found else None


def _mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text()
    except OSError:
        return ""
