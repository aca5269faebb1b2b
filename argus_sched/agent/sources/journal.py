"""The messages of one systemd unit in the journal, as a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from argus_sched.agent.logevents import Container, Coverage, Cursor, Record
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.ports import Reading
from argus_sched.agent.reading.dockertext import LONGEST_LINE
from argus_sched.agent.reading.reach import Span, coverage, first_span, next_span
from argus_sched.agent.reading.stamps import SECOND_NS, instant, nanoseconds
from argus_sched.agent.sources.answer import Deadline
from argus_sched.agent.sources.intake import Intake
from argus_sched.agent.sources.journalctl import Entry, journal_entries
from argus_sched.agent.sources.pieces import Line
from argus_sched.clock import Clock
from argus_sched.errors import SourceError

# From sd-messages.h: "a unit has started", and "journald has dropped messages".
UNIT_STARTED = "39f53479d3a045ac8e11786248231fbf"
DROPPED = b"a596d6fe7bfa4994828e72309e95d61e"
# How far before the cursor a read begins, so that a line which journald broke is met from its first piece on.
LOOK_BACK_NS = 5 * SECOND_NS

Ask = Callable[..., Iterator[Entry]]


class JournalSource:
    """One unit as a LogSource; it is its own only container."""

    def __init__(self, spec: LogSpec, *, clock: Clock, timeout: float) -> None:
        if spec.unit is None:
            raise ValueError("a journal source needs a unit")
        self.node = spec.node
        self._unit = spec.unit
        self._directory = spec.directory
        self._clock = clock
        self._timeout = timeout

    def containers(self) -> Sequence[Container]:
        """The unit; SourceError when the journal cannot be read or has no word of it."""
        ask = self._asking(Deadline(self._timeout))
        if _newest(ask("-n1")) < 0:
            raise SourceError(f"the journal has no entry of {self._unit}: correct the name, or start it")
        started_ns = _newest(ask("-n1", f"MESSAGE_ID={UNIT_STARTED}"))
        started = instant(started_ns) if started_ns >= 0 else None
        return (Container(self._unit, self._unit, self._unit, started, running=True, driver="journald"),)

    def read(
        self,
        container: Container,
        cursor: Cursor | None,
        horizon: datetime,
        take: Callable[[Iterable[Record]], None],
    ) -> Reading:
        """Hand on what is new; see `ports.LogSource.read`."""
        started, asked_ns = time.monotonic(), nanoseconds(self._clock.now())
        intake = Intake(cursor, nanoseconds(horizon), take)
        reading = UnitReading(self._asking(Deadline(self._timeout)), self._unit, intake, cursor)
        try:
            reading.run(nanoseconds(horizon))
        except SourceError as error:
            reading.problem = str(error)
        return Reading(
            container=container,
            coverage=reading.coverage(asked_ns),
            cursor=intake.cursor,
            records=intake.records,
            bytes=reading.bytes,
            seconds=time.monotonic() - started,
            problem=reading.problem,
            notes=tuple(reading.notes),
        )

    def close(self) -> None:
        """Nothing is held open between reads."""

    def _asking(self, deadline: Deadline) -> Ask:
        return lambda *arguments: journal_entries(self._unit, self._directory, deadline, *arguments)


class UnitReading:
    """One read of one unit. `run` does it; then coverage, problem and notes tell how it went.

    Going on begins a little before the cursor: journald breaks a long line into entries, and what follows a
    break must not be taken for a line of its own.
    """

    def __init__(self, ask: Ask, unit: str, intake: Intake, cursor: Cursor | None) -> None:
        self.problem = ""
        self.notes: list[str] = []
        self.bytes = 0
        self._ask = ask
        self._intake = intake
        self._cursor = cursor
        self._joiner = EntryJoiner(unit)
        self._span: Span | None = None
        self._last_ns = -1

    def run(self, horizon_ns: int) -> None:
        """Read what is new; raises SourceError when the journal cannot be read to its end."""
        newest_ns = _newest(self._ask("-n1"))
        since_ns = self._intake.needed_ns - LOOK_BACK_NS
        if self._cursor is None:
            # Whether the log reaches back beyond what is read.
            self._begin(_newest(self._ask("-n1", f"--until={_moment(since_ns)}")), horizon_ns)
        try:
            for entry in self._ask(f"--since={_moment(since_ns)}"):
                self._entry(entry, horizon_ns)
        finally:
            self._intake.hand_over()
        if self._cursor is not None and newest_ns < self._cursor.stamp_ns:
            self.problem = (
                "the unit's newest entry is older than what was read before: was the clock set back?"
            )
        elif self._last_ns < newest_ns >= since_ns:
            self.problem = "the journal ended before the unit's newest entry"

    def coverage(self, asked_ns: int) -> Coverage | None:
        """The span read; `asked_ns` is the instant before the first question."""
        return coverage(self._span, max(self._last_ns, 0), asked_ns, reached_end=not self.problem)

    def _begin(self, oldest_ns: int, horizon_ns: int) -> None:
        if self._span is None and oldest_ns >= 0:
            self._span = first_span(oldest_ns, False, self._cursor, horizon_ns, None)

    def _entry(self, entry: Entry, horizon_ns: int) -> None:
        stamp_ns = stamp_of(entry)
        self._begin(stamp_ns, horizon_ns)
        self._last_ns = max(self._last_ns, stamp_ns)
        self.bytes += sum(map(len, entry.values()))
        if entry.get(b"MESSAGE_ID") == DROPPED and stamp_ns > self._intake.needed_ns:
            self._span = next_span(self._span, delivered_ns=-1, oldest_ns=stamp_ns)
            number = entry.get(b"N_DROPPED", b"some").decode(errors="replace")
            self.notes.append(f"journald dropped {number} messages of the unit: raise its LogRateLimitBurst")
        for line in self._joiner.lines(entry):
            self._intake.offer(line)


class EntryJoiner:
    """Makes lines of entries: takes apart a message of several, takes together what journald broke.

    A line carries the stamp of the entry that ends it. What others said of the unit (systemd, journald) is
    counted and never understood.
    """

    def __init__(self, unit: str) -> None:
        self._unit = unit.encode()
        self._begun: dict[bytes, bytes] = {}

    def lines(self, entry: Entry) -> Iterator[Line]:
        """The lines that this entry completes."""
        stamp_ns, stream = stamp_of(entry), entry.get(b"_STREAM_ID", b"")
        if entry.get(b"_SYSTEMD_UNIT") != self._unit:
            yield Line(stamp_ns, "", None)
            return
        text = (self._begun.pop(stream, b"") + entry.get(b"MESSAGE", b""))[:LONGEST_LINE]
        if entry.get(b"_LINE_BREAK") == b"line-max":
            self._begun[stream] = text
            yield Line(stamp_ns, "", None)
            return
        for line in text.split(b"\n"):
            yield Line(stamp_ns, stream.decode(errors="replace"), line)


def stamp_of(entry: Entry) -> int:
    """When journald received the entry; the format has microseconds."""
    digits = entry.get(b"__REALTIME_TIMESTAMP", b"")
    return int(digits) * 1000 if digits.isdigit() else 0


def _newest(entries: Iterable[Entry]) -> int:
    return max(map(stamp_of, entries), default=-1)


def _moment(stamp_ns: int) -> str:
    """As systemd.time(7) takes it: seconds since the epoch, here with microseconds."""
    seconds, rest = divmod(max(stamp_ns, 0) // 1000, 1_000_000)
    return f"@{seconds}.{rest:06d}"
