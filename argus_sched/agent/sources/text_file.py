"""The text of `docker logs -t` in a file, read from its end."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from argus_sched.agent.logevents import Coverage, Cursor
from argus_sched.agent.reading.dockertext import LONGEST_LINE, TextJoiner
from argus_sched.agent.reading.reach import Span, coverage, first_span
from argus_sched.agent.reading.speech import every_line, loud_lines
from argus_sched.agent.reading.stamps import parse_stamp
from argus_sched.agent.sources.answer import Deadline
from argus_sched.agent.sources.blocks import NEWEST, line_blocks, start_offset
from argus_sched.agent.sources.intake import Intake
from argus_sched.agent.sources.pieces import Line


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
        self._joiner = TextJoiner()

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
        quietly = False
        for block, final in line_blocks(file, LONGEST_LINE):
            if not self._deadline.left:
                self.problem = f"the log was not read within {self._deadline.seconds:g} s"
                return
            self.bytes += len(block)
            self._block(block if self._still else block[: block.rfind(b"\n") + 1], quietly, final)
            quietly = self._last_ns > self._intake.needed_ns

    def _block(self, block: bytes, quietly: bool, final: bool) -> None:
        """Every line of a block, or once everything is new, those that may speak."""
        for passed, line in loud_lines(block, NEWEST if final else 1) if quietly else every_line(block):
            self._intake.pass_over(passed)
            for record in self._joiner.records(line, 0):
                self._line(Line(record.stamp_ns, "stdout", record.text))

    def _line(self, line: Line) -> None:
        if self._oldest_ns is None:
            self._oldest_ns = line.stamp_ns
        self._last_ns = max(self._last_ns, line.stamp_ns)
        self._intake.offer(line)


def _stamp_of(line: bytes) -> int | None:
    stamp = parse_stamp(line)
    return stamp[0] if stamp else None
