"""A file of events that somebody else appends to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from argus_sched.harness.history import Event, read_lines


@dataclass
class Tail:
    """What was read of the file so far, and how far that was."""

    path: Path
    offset: int = 0
    events: list[Event] = field(default_factory=list)

    def read(self) -> list[Event]:
        """The events of the lines that were finished since the last read."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self.offset += len(whole)
        fresh = list(read_lines(whole))
        self.events += fresh
        return fresh
