"""Reading a log by its tail: asks for the last N records, more until what is needed is covered, once through.

The daemon is slow (19 MB/s) and `since` makes it decode everything it keeps, while a tail is read backwards:
200 records cost milliseconds whatever the log's size. A damaged file ends an answer early, or leaves records
out of its middle, and says nothing; so every read is held against the log's newest record, asked for
beforehand, and against the number of records that were asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from argus_sched.agent.logevents import Coverage, Cursor
from argus_sched.agent.reading.reach import Span, coverage, first_span, next_span
from argus_sched.agent.sources.answer import Answer
from argus_sched.agent.sources.facts import LogFacts
from argus_sched.agent.sources.intake import Intake
from argus_sched.agent.sources.pieces import Beginnings, LineJoiner, Piece, Quiet

FIRST_TAIL = 200
GROWTH = 8
# What the daemon and this reader manage per second, with room (127,000 measured): a tail that could not be
# read in time would cover nothing.
RECORDS_PER_SECOND = 50_000

Open = Callable[[int], Answer]


@dataclass(frozen=True)
class _Chosen:
    """The answer to read, its tail, and whether it is known to hold the whole log."""

    answer: Answer
    tail: int
    whole: bool


class TailReading:
    """One read of one container. `run` does it; then coverage, problem and notes tell how it went."""

    def __init__(
        self,
        open_log: Open,
        intake: Intake,
        cursor: Cursor | None,
        horizon_ns: int,
        *,
        facts: LogFacts,
        seconds: float,
    ) -> None:
        self.problem = ""
        self.notes: list[str] = []
        self.bytes = 0
        self._open_log = open_log
        self._intake = intake
        self._cursor = cursor
        self._horizon_ns = horizon_ns
        self._facts = facts
        self._most = max(int(seconds * RECORDS_PER_SECOND), FIRST_TAIL)
        self._span: Span | None = None
        self._last_ns = -1
        self._reached_end = False

    def run(self) -> None:
        """Read what is new; raises SourceError when the daemon refuses to answer at all."""
        newest_ns = self._newest_ns()
        chosen = self._covering()
        self._read(chosen, newest_ns)
        if chosen.answer.problem or self._last_ns < newest_ns:
            self._recover(chosen, newest_ns)
        self._reached_end = not self.problem and self._last_ns >= newest_ns
        self._intake.hand_over()

    def coverage(self, asked_ns: int) -> Coverage | None:
        """The span read; `asked_ns` is the instant before the first request."""
        return coverage(self._span, max(self._last_ns, 0), asked_ns, self._reached_end)

    def _newest_ns(self) -> int:
        """The stamp of the log's newest record, -1 for an empty log."""
        answer = self._open_log(1)
        newest_ns = max(map(_stamp, answer.pieces()), default=-1)
        self._close(answer)
        return newest_ns

    def _covering(self) -> _Chosen:
        """The smallest answer that reaches back far enough.

        A longer tail that begins with the same record shows that there is nothing older.
        """
        shorter: Answer | None = None
        for tail in self._tails():
            answer = self._open_log(tail)
            if shorter is not None:
                answer.expect(shorter.first_record)
            first = answer.first()
            whole = first is None or (shorter is not None and first == shorter.first())
            if first is None or whole or first.stamp_ns < self._intake.needed_ns or tail == self._most:
                return _Chosen(answer, tail, whole)
            shorter = answer
            self._close(answer)
        raise AssertionError("the longest tail is always chosen")

    def _tails(self) -> Iterator[int]:
        tail = FIRST_TAIL
        while tail < self._most:
            yield tail
            tail *= GROWTH
        yield self._most

    def _read(self, chosen: _Chosen, newest_ns: int) -> None:
        answer, first = chosen.answer, chosen.answer.first()
        oldest_ns = first.stamp_ns if first else None
        joined = self._cursor is not None and oldest_ns is not None and oldest_ns <= self._cursor.stamp_ns
        self._drain(answer, trusted=joined or (chosen.whole and not self._facts.rotates))
        complete = not answer.problem and self._last_ns >= newest_ns
        whole = complete and (chosen.whole or answer.count < chosen.tail)
        begins_ns = self._facts.begins_ns if not self._facts.rotates or oldest_ns is None else None
        self._span = first_span(oldest_ns, whole, self._cursor, self._horizon_ns, begins_ns)
        if (
            complete
            and first is not None
            and (not answer.passed_landmark or self._lacks_records(chosen, first))
        ):
            self.notes.append("log damaged: the daemon leaves records out, so what is covered begins anew")
            self._span = Span(self._last_ns, gap=True)
        elif complete and not whole and first is not None and first.stamp_ns > self._intake.needed_ns:
            self.notes.append(
                f"only the newest {chosen.tail} records were read: give it more time (read_timeout),"
                " or let it read the json-file"
            )

    def _lacks_records(self, chosen: _Chosen, first: Piece) -> bool:
        """Whether fewer records came than stand in the log from `first` on.

        The daemon counts lines of its file, so the tail of as many as came must begin at the same record,
        unless more were written meanwhile.
        """
        answer = chosen.answer
        if answer.count == chosen.tail or not answer.counts_records or answer.out_of_time:
            return False
        check = self._open_log(answer.count)
        same = check.first() == first or bool(check.problem)
        self._close(check)
        return not same and self._newest_ns() == self._last_ns

    def _drain(self, answer: Answer, trusted: bool) -> None:
        """Take the whole answer in; once everything that follows is new, only what may speak is looked at."""
        joiner = LineJoiner(Beginnings(trusted), self._facts.patience_ns)
        offer, needed_ns = self._intake.offer, self._intake.needed_ns
        for piece in answer.pieces():
            if isinstance(piece, Quiet):
                joiner.pass_over(piece)
                self._intake.pass_over(piece.number, piece.newest_ns, piece.at_newest)
                self._last_ns = max(self._last_ns, piece.newest_ns)
                continue
            if piece.stamp_ns > self._last_ns:
                self._last_ns = piece.stamp_ns
            answer.quietly = answer.quietly or piece.stamp_ns > needed_ns
            for line in joiner.add(piece):
                offer(line)
        if self._facts.ended and not answer.problem:
            for line in joiner.rest():
                offer(line)
        self._close(answer)

    def _recover(self, chosen: _Chosen, newest_ns: int) -> None:
        """The answer ended early: once more, then from behind the damage, by a shorter tail.

        A record that is only half written mends itself; zeros that a power loss left do not, and no answer
        passes them, but a tail that begins behind them is sound.
        """
        self.problem = chosen.answer.problem or "the log ended before its newest record"
        if chosen.answer.out_of_time:
            return
        again = self._go_on(chosen.tail)
        if self._last_ns >= newest_ns:
            self.problem = again.problem
            return
        tail = self._longest_sound(chosen.tail, newest_ns)
        if tail:
            before, cause = self._span, self.problem
            self.problem = self._go_on(tail).problem
            if self._span != before:
                self.notes.append(f"log damaged: {cause}; what is covered begins anew behind the damage")

    def _go_on(self, tail: int) -> Answer:
        """Read another answer, from which only what is new counts."""
        delivered_ns = max(self._last_ns, self._cursor.stamp_ns if self._cursor else -1)
        self._intake.begin()
        answer = self._open_log(tail)
        first = answer.first()
        self._drain(answer, trusted=first is not None and first.stamp_ns <= delivered_ns)
        if first is not None:
            self._span = next_span(self._span, delivered_ns, first.stamp_ns)
        return answer

    def _longest_sound(self, tail: int, newest_ns: int) -> int:
        """The longest tail, within an eighth, whose answer is whole; 0 when none is."""
        sound, broken = 0, tail
        while not sound and broken > 1:
            shorter = broken // GROWTH or 1
            if self._is_sound(shorter, newest_ns):
                sound = shorter
            else:
                broken = shorter
        while sound and broken - sound > max(sound // GROWTH, 1):
            middle = (sound + broken) // 2
            if self._is_sound(middle, newest_ns):
                sound = middle
            else:
                broken = middle
        return sound

    def _is_sound(self, tail: int, newest_ns: int) -> bool:
        answer = self._open_log(tail)
        answer.quietly = True
        last_ns = max(map(_stamp, answer.pieces()), default=-1)
        self._close(answer)
        complete = answer.count == tail or not answer.counts_records
        return complete and not answer.problem and last_ns >= newest_ns

    def _close(self, answer: Answer) -> None:
        self.bytes += answer.bytes
        answer.close()


def _stamp(piece: Piece | Quiet) -> int:
    return piece.newest_ns if isinstance(piece, Quiet) else piece.stamp_ns
