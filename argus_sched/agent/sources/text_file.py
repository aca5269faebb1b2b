"""The text of `docker logs -t` in a file, read from its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from argus_sched.agent.dockertext import TextJoiner, split_lines
from argus_sched.agent.logevents import Coverage, Cursor
from argus_sched.agent.reach import Span, coverage, first_span
from argus_sched.agent.sources.answer import Deadline
from argus_sched.agent.sources.blocks import blocks, start_offset
from argus_sched.agent.sources.intake import Intake
from argus_sched.agent.sources.pieces import Line
from argus_sched.agent.stamps import parse_stamp

_CHECK_EVERY = 4096


class TextFileReading:
    """One read of one file. `run` does it; then coverage, problem and notes tell how it went.

    A last line without a line feed counts only when the file is `still`: otherwise its writer is in the
    middle of it, and the next read will find it whole.
    """

    def __init__(
        self,
        path: Path,
        intake: Intake,
        cursor: Cursor | None,
        horizon_ns: int,
        *,
        still: bool,
        deadline: Deadline,
    ) -> None:
        self.problem = ""
        self.notes: list[str] = []
        self.bytes = 0
        self._path = path
        self._intake = intake
        self._cursor = cursor
        self._horizon_ns = horizon_ns
        self._still = still
        self._deadline = deadline
        self._oldest_ns: int | None = None
        self._last_ns = -1
        self._span: Span | None = None

    def run(self) -> None:
        """Read what is new; raises OSError when the file cannot be opened."""
        with self._path.open("rb") as file:
            end = file.seek(0, 2)
            offset = start_offset(file, end, self._intake.needed_ns, _stamp_of)
            file.seek(offset)
            self._read(file)
        self._span = first_span(self._oldest_ns, offset == 0, self._cursor, self._horizon_ns, None)
        self._intake.hand_over()

    def coverage(self, asked_ns: int) -> Coverage | None:
        """The span read; `asked_ns` is the instant before reading."""
        return coverage(self._span, max(self._last_ns, 0), asked_ns, reached_end=not self.problem)

    def _read(self, file: BinaryIO) -> None:
        joiner = TextJoiner()
        for number, (line, ended) in enumerate(split_lines(self._counted(file))):
            if not number % _CHECK_EVERY and not self._deadline.left:
                self.problem = f"the log was not read within {self._deadline.seconds:g} s"
                return
            if not ended and not self._still:
                return
            for record in joiner.records(line, number):
                self._line(Line(record.stamp_ns, "stdout", record.text))

    def _line(self, line: Line) -> None:
        if self._oldest_ns is None:
            self._oldest_ns = line.stamp_ns
        self._last_ns = max(self._last_ns, line.stamp_ns)
        self._intake.offer(line)

    def _counted(self, file: BinaryIO) -> Iterator[bytes]:
        for block in blocks(file):
            self.bytes += len(block)
            yield block


def _stamp_of(line: bytes) -> int | None:
    stamp = parse_stamp(line)
    return stamp[0] if stamp else None
