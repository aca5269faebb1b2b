"""Reading a log by its tail: asks for the last N records, more until what is needed is covered, once through.

The daemon is slow (19 MB/s) and `since` makes it decode everything it keeps, while a tail is read backwards:
200 records cost milliseconds whatever the log's size. A damaged file ends an answer early and says nothing,
so every read is held against the log's newest record, asked for beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from argus_sched.agent.logevents import Coverage, Cursor
from argus_sched.agent.reach import Span, coverage, first_span, next_span
from argus_sched.agent.sources.answer import Answer
from argus_sched.agent.sources.intake import Intake
from argus_sched.agent.sources.pieces import Beginnings, LineJoiner, Piece

FIRST_TAIL = 200
GROWTH = 8
# What the daemon and this reader manage per second, with room (127,000 measured): a tail that could not be
# read in time would cover nothing.
RECORDS_PER_SECOND = 50_000

Open = Callable[[int], Answer]


class TailReading:
    """One read of one container. `run` does it; then coverage, problem and notes tell how it went."""

    def __init__(
        self,
        open_log: Open,
        intake: Intake,
        cursor: Cursor | None,
        horizon_ns: int,
        *,
        begins_ns: int | None,
        rotates: bool,
        ended: bool,
        seconds: float,
    ) -> None:
        self.problem = ""
        self.notes: list[str] = []
        self.bytes = 0
        self._open_log = open_log
        self._intake = intake
        self._cursor = cursor
        self._horizon_ns = horizon_ns
        self._begins_ns = begins_ns
        self._rotates = rotates
        self._ended = ended
        self._most = max(int(seconds * RECORDS_PER_SECOND), FIRST_TAIL)
        self._span: Span | None = None
        self._last_ns = -1
        self._reached_end = False

    def run(self) -> None:
        """Read what is new; raises SourceError when the daemon refuses to answer at all."""
        newest_ns = self._newest_ns()
        answer, tail, whole = self._covering()
        self._drain_first(answer, tail, whole, newest_ns)
        if answer.problem or self._last_ns < newest_ns:
            self._recover(answer, tail, newest_ns)
        self._reached_end = not self.problem and self._last_ns >= newest_ns
        self._intake.hand_over()

    def coverage(self, asked_ns: int) -> Coverage | None:
        """The span read; `asked_ns` is the instant before the first request."""
        return coverage(self._span, max(self._last_ns, 0), asked_ns, self._reached_end)

    def _newest_ns(self) -> int:
        """The stamp of the log's newest record, -1 for an empty log."""
        answer = self._open_log(1)
        newest_ns = max((piece.stamp_ns for piece in answer.pieces()), default=-1)
        self._close(answer)
        return newest_ns

    def _covering(self) -> tuple[Answer, int, bool]:
        """The smallest answer that reaches back far enough, its tail, and whether it holds the whole log.

        A longer tail that begins with the same record shows that there is nothing older.
        """
        previous: Piece | None = None
        for tail in self._tails():
            answer = self._open_log(tail)
            first = answer.first()
            if first is None or first.stamp_ns < self._intake.needed_ns:
                return answer, tail, first is None
            if first == previous or tail == self._most:
                return answer, tail, first == previous
            previous = first
            self._close(answer)
        raise AssertionError("the last tail always returns")

    def _tails(self) -> Iterator[int]:
        tail = FIRST_TAIL
        while tail < self._most:
            yield tail
            tail *= GROWTH
        yield self._most

    def _drain_first(self, answer: Answer, tail: int, whole: bool, newest_ns: int) -> None:
        first = answer.first()
        oldest_ns = first.stamp_ns if first else None
        joined = self._cursor is not None and oldest_ns is not None and oldest_ns <= self._cursor.stamp_ns
        self._drain(answer, trusted=joined or (whole and not self._rotates))
        complete = not answer.problem and self._last_ns >= newest_ns
        whole = complete and (whole or answer.count < tail)
        begins_ns = self._begins_ns if not self._rotates or oldest_ns is None else None
        self._span = first_span(oldest_ns, whole, self._cursor, self._horizon_ns, begins_ns)
        reaches = whole or oldest_ns is None or oldest_ns <= self._intake.needed_ns
        if complete and not reaches:
            self.notes.append(
                f"only the newest {tail} records were read: give it more time (read_timeout),"
                " or let it read the json-file"
            )

    def _drain(self, answer: Answer, *, trusted: bool) -> None:
        joiner = LineJoiner(Beginnings(trusted))
        offer = self._intake.offer
        for piece in answer.pieces():
            if piece.stamp_ns > self._last_ns:
                self._last_ns = piece.stamp_ns
            for line in joiner.add(piece):
                offer(line)
        if self._ended and not answer.problem:
            # Nobody will finish this line any more.
            for line in joiner.rest():
                offer(line)
        self._close(answer)

    def _recover(self, broken: Answer, tail: int, newest_ns: int) -> None:
        """The answer ended early: once more, then from beyond the damage, by shorter tails.

        A record that is only half written mends itself; zeros that a power loss left do not, and no answer
        passes them, but a tail that begins behind them is whole.
        """
        self.problem = broken.problem or "the log ended before its newest record"
        for shorter in _shrinking(tail):
            if broken.out_of_time:
                return
            delivered_ns = self._last_ns
            self._intake.begin()
            broken = self._open_log(shorter)
            first = broken.first()
            joined = first is not None and first.stamp_ns <= delivered_ns
            self._drain(broken, trusted=joined)
            if first is not None and self._last_ns > delivered_ns:
                self._span = next_span(self._span, delivered_ns, first.stamp_ns)
            if not broken.problem and self._last_ns >= newest_ns:
                self._mended(lost=not joined)
                return
            if self._last_ns >= newest_ns:
                self.problem = broken.problem
                return

    def _mended(self, lost: bool) -> None:
        if lost:
            self.notes.append(f"log damaged: {self.problem}; what stood behind the damage may be lost in part")
        self.problem = ""

    def _close(self, answer: Answer) -> None:
        self.bytes += answer.bytes
        answer.close()


def _shrinking(tail: int) -> Iterator[int]:
    while tail > 1:
        yield tail
        tail //= GROWTH
    yield 1
