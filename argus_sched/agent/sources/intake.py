"""What a source hands on: only what is new, only what may speak, in batches; and the cursor to go on from."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from argus_sched.agent.logevents import Cursor, Record
from argus_sched.agent.reading.loglines import Sieve
from argus_sched.agent.sources.pieces import Line

BATCH = 512


class Intake:
    """One read's way from lines to records.

    Lines are counted as they come; those at or before the cursor were seen by an earlier read, and where
    several carry the cursor's own stamp, as many as it counted are passed over.
    """

    def __init__(
        self, cursor: Cursor | None, horizon_ns: int, take: Callable[[Iterable[Record]], None]
    ) -> None:
        self.records = 0
        self._take = take
        self._horizon_ns = horizon_ns
        self._sieve = Sieve()
        self._batch: list[Record] = []
        self._cursor = cursor
        self._newest_ns = -1
        self._at_newest = 0
        self._repeats = 0
        self.begin()

    def begin(self) -> None:
        """Another answer follows, which may repeat what was had."""
        self._cursor = self.cursor
        self._repeats = self._cursor.seen_at_stamp if self._cursor else 0
        self._newest_ns = -1
        self._at_newest = 0

    @property
    def needed_ns(self) -> int:
        """The stamp an answer must reach back beyond."""
        return self._cursor.stamp_ns if self._cursor else self._horizon_ns

    @property
    def cursor(self) -> Cursor | None:
        """Where the next read goes on."""
        if self._newest_ns >= 0 and (self._cursor is None or self._newest_ns >= self._cursor.stamp_ns):
            return Cursor(self._newest_ns, self._at_newest)
        return self._cursor

    def offer(self, line: Line) -> None:
        """Count one line, and keep it when it is new and may speak."""
        stamp_ns, stream, text = line
        self._see(stamp_ns, 1)
        if not self._is_new(stamp_ns):
            return
        self.records += 1
        if text is not None and self._sieve.keeps(stream, text):
            self._batch.append(Record(stamp_ns, text, stream, self.records))
            if len(self._batch) >= BATCH:
                self.hand_over()

    def pass_over(self, number: int, newest_ns: int = -1, at_newest: int = 0) -> None:
        """Count lines that are new and cannot speak, of which `at_newest` carry the newest stamp."""
        self.records += number
        self._see(newest_ns, at_newest)

    def hand_over(self) -> None:
        """Give what is gathered to the taker."""
        if self._batch:
            batch, self._batch = self._batch, []
            self._take(batch)

    def _see(self, stamp_ns: int, number: int) -> None:
        if stamp_ns > self._newest_ns:
            self._newest_ns, self._at_newest = stamp_ns, number
        elif stamp_ns == self._newest_ns:
            self._at_newest += number

    def _is_new(self, stamp_ns: int) -> bool:
        if self._cursor is None:
            return stamp_ns >= self._horizon_ns
        if stamp_ns == self._cursor.stamp_ns and self._repeats:
            self._repeats -= 1
            return False
        return stamp_ns >= self._cursor.stamp_ns
