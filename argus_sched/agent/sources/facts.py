"""What is known of a log before it is read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogFacts:
    """When the container was created (None for a bare file), whether old records may have gone, and whether
    the container has ended, so that nobody will finish a last line.

    `patience_ns` is how far apart the stamps of one line's pieces may be.
    """

    begins_ns: int | None
    rotates: bool
    ended: bool
    patience_ns: int = 0
