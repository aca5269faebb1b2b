"""One answer of the daemon to a request for a log: its pieces as they arrive, and why it ended."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Protocol

from argus_sched.agent.reading.dockertext import TextJoiner, split_lines
from argus_sched.agent.sources.engine import LogBody
from argus_sched.agent.sources.frames import FrameParser, Span, daemon_said
from argus_sched.agent.sources.listener import Listener
from argus_sched.agent.sources.pieces import Piece, Quiet

_TTY_ERROR = b"Error grabbing logs"


class Deadline:
    """Until when a read may last. It bounds a socket, so it runs on the machine's own clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left, not below zero."""
        return max(self._ends - time.monotonic(), 0.0)


class Answer:
    """The pieces of one answer, oldest first.

    A socket's own time-out restarts with every byte, so a daemon that trickles would hold a reader for ever:
    a timer shuts the connection down when the deadline has passed.
    """

    def __init__(self, body: LogBody, tty: bool, deadline: Deadline) -> None:
        self.problem = ""
        self.bytes = 0
        self.count = 0
        # Set once everything that follows is new: then records that cannot speak are only counted.
        self.quietly = False
        # A terminal's pieces come joined, so they are fewer than the records the daemon counts.
        self.counts_records = not tty
        self._body = body
        self._deadline = deadline
        self._cut = threading.Event()
        self._timer = threading.Timer(deadline.left, self._cut_off)
        self._timer.daemon = True
        self._timer.start()
        self._pieces = self._guarded(_tty_pieces if tty else _framed_pieces)
        self._peeked: list[Piece | Quiet] = []
        self.first_record = b""
        self.passed_landmark = True
        self._landmark = b""

    @property
    def out_of_time(self) -> bool:
        """Whether the deadline has passed."""
        return not self._deadline.left

    def first(self) -> Piece | None:
        """The oldest piece, left in place; None when there is none."""
        if not self._peeked:
            self._peeked = [piece for piece in [next(self._pieces, None)] if piece is not None]
        first = self._peeked[0] if self._peeked else None
        return first if isinstance(first, Piece) else None

    def expect(self, record: bytes) -> None:
        """Watch out for the first record of a shorter answer, which must be among those to come."""
        self._landmark = record
        self.passed_landmark = not record

    def look_out(self, data: bytes, first: Span) -> None:
        """Notice the landmark, and keep the first record to be one."""
        if not self.passed_landmark:
            self.passed_landmark = self._landmark in data
        self.first_record = self.first_record or data[first[1] : first[2]]

    def pieces(self) -> Iterator[Piece | Quiet]:
        """Every piece, once; runs of quiet ones as one number where `quietly` is set."""
        while self._peeked:
            yield self._peeked.pop()
        yield from self._pieces

    def close(self) -> None:
        """Stop reading; what is left of the answer is dropped."""
        self._timer.cancel()
        self._body.close()

    def _guarded(self, cut: _Cutter) -> Iterator[Piece | Quiet]:
        try:
            for piece in cut(self._blocks(), self):
                self.count += piece.number if isinstance(piece, Quiet) else 1
                yield piece
        except Exception as error:
            self.problem = f"the answer broke off: {error}"
        if self._cut.is_set() or (self.problem and not self._deadline.left):
            self.problem = f"the answer was not complete within {self._deadline.seconds:g} s"
        self._timer.cancel()

    def _blocks(self) -> Iterator[bytes]:
        for block in self._body.blocks():
            self.bytes += len(block)
            yield block

    def _cut_off(self) -> None:
        self._cut.set()
        with contextlib.suppress(OSError):  # it has ended by itself
            self._body.cut()


class _Cutter(Protocol):
    def __call__(self, blocks: Iterator[bytes], answer: Answer) -> Iterator[Piece | Quiet]: ...


def _framed_pieces(blocks: Iterator[bytes], answer: Answer) -> Iterator[Piece | Quiet]:
    parser, listener = FrameParser(), Listener()
    for block in blocks:
        data, spans = parser.feed(block)
        if spans:
            answer.look_out(data, spans[0])
        yield from listener.heard(data, spans, answer.quietly)
        if parser.problem:
            answer.problem = parser.problem
            return
    if parser.inside:
        answer.problem = "the answer ended in the middle of a record"


def _tty_pieces(blocks: Iterator[bytes], answer: Answer) -> Iterator[Piece]:
    """A terminal's bytes come without frames, all on one stream; the daemon's errors stand among them."""
    joiner = TextJoiner()
    for number, (line, ended) in enumerate(split_lines(blocks), start=1):
        records = list(joiner.records(line, number))
        if not records and _TTY_ERROR in line:
            answer.problem = daemon_said(line)
            return
        for record in records:
            yield Piece(record.stamp_ns, "stdout", record.text + (b"\n" if ended else b""))
