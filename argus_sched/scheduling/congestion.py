"""Due jobs that wait because every job thread is taken, and has been for long."""

from __future__ import annotations

PATIENCE = 15.0  # seconds


class Congestion:
    """Remembers since when no thread was free while something due waited."""

    def __init__(self) -> None:
        self._since: float | None = None

    def look(self, waiting: int, free: int, size: int, now: float) -> str:
        """Why due jobs wait, as one sentence; empty while a thread is free, nothing waits, or not for long.

        `waiting` jobs are due, `free` of `size` threads take another run; `now` in elapsed seconds.
        """
        if not waiting or free > 0:
            self._since = None
            return ""
        if self._since is None:
            self._since = now
        if now - self._since < PATIENCE:
            return ""
        return (
            f"all {size} job threads have been busy for {now - self._since:.0f} s, {waiting} due jobs wait: "
            "see which runs do not end, or raise threads="
        )
