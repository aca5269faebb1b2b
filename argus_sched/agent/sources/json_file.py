"""The daemon's own json-file, with its rotated siblings, read from the end: near the speed of the disk."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, cast

from argus_sched.agent.logevents import Coverage, Cursor, Record
from argus_sched.agent.reading.dockertext import split_lines
from argus_sched.agent.reading.jsonrecords import decode, glance, holds_whole_lines, salvage, stamp_of
from argus_sched.agent.reading.loglines import Sieve
from argus_sched.agent.reading.reach import Span, coverage, first_span, next_span
from argus_sched.agent.reading.speech import every_line, loud_lines
from argus_sched.agent.sources.answer import Deadline
from argus_sched.agent.sources.blocks import NEWEST, first_stamp, line_blocks, start_offset
from argus_sched.agent.sources.facts import LogFacts
from argus_sched.agent.sources.intake import Intake
from argus_sched.agent.sources.pieces import Beginnings, LineJoiner, Piece

# JSON escapes can make one stored piece of 16 KiB six times as long.
LONGEST_RECORD = 1 << 18
_ROTATED = re.compile(r"\.(\d+)(\.gz)?")


class JsonFileReading:
    """One read of one log. `run` does it; then coverage, problem and notes tell how it went."""

    def __init__(
        self,
        path: Path,
        intake: Intake,
        cursor: Cursor | None,
        horizon_ns: int,
        *,
        facts: LogFacts,
        deadline: Deadline,
    ) -> None:
        self.problem = ""
        self.notes: list[str] = []
        self.bytes = 0
        self._path = path
        self._intake = intake
        self._cursor = cursor
        self._horizon_ns = horizon_ns
        self._facts = facts
        self._deadline = deadline
        self._sieve = Sieve()
        self._joiner = LineJoiner(Beginnings(trusted=False))
        self._span: Span | None = None
        self._oldest_ns: int | None = None
        self._last_ns = -1
        self._first_ns: int | None = None
        self._damaged = 0
        self._unpassed = 0
        self._whole = False

    def run(self) -> None:
        """Read what is new; raises OSError when the file cannot be opened."""
        with ExitStack() as stack:
            files = self._covering(stack)
            joined = (
                self._cursor is not None
                and self._first_ns is not None
                and self._first_ns <= self._cursor.stamp_ns
            )
            self._joiner = LineJoiner(Beginnings(trusted=joined or (self._whole and not self._facts.rotates)))
            for index, file in enumerate(files):
                self._read(file, last=index == len(files) - 1)
        self._finish()

    def coverage(self, asked_ns: int) -> Coverage | None:
        """The span read; `asked_ns` is the instant before reading."""
        return coverage(self._span, max(self._last_ns, 0), asked_ns, reached_end=not self.problem)

    def _covering(self, stack: ExitStack) -> list[BinaryIO]:
        """The files that reach back far enough, oldest first, the oldest standing where reading begins."""
        chain: list[BinaryIO] = []
        seen: set[tuple[int, int]] = set()
        for path in (self._path, *rotated(self._path)):
            try:
                file = stack.enter_context(_opened(path))
            except FileNotFoundError:
                if path == self._path:
                    raise
                continue
            identity = _identity(file)
            if identity in seen:
                continue  # it was rotated while we looked
            seen.add(identity)
            chain.insert(0, file)
            if self._stands_before_needed(file):
                return chain
        self._whole = True
        return chain

    def _stands_before_needed(self, file: BinaryIO) -> bool:
        """Whether the file begins before what is needed; leaves it at the right place."""
        needed_ns = self._intake.needed_ns
        try:
            self._first_ns = first_stamp(file, stamp_of)
            old_enough = self._first_ns is not None and self._first_ns < needed_ns
            seekable = not isinstance(file, gzip.GzipFile)
            end = os.fstat(file.fileno()).st_size
            file.seek(start_offset(file, end, needed_ns, stamp_of) if old_enough and seekable else 0)
        except (OSError, EOFError, zlib.error):
            self._unpassed += 1
            return False
        return old_enough

    def _read(self, file: BinaryIO, *, last: bool) -> None:
        quietly = False
        try:
            for block, final in line_blocks(file, LONGEST_RECORD):
                if not self._deadline.left:
                    self.problem = f"the log was not read within {self._deadline.seconds:g} s"
                    return
                self.bytes += len(block)
                # The last line of the current file is still being written while it has no end.
                self._block(block[: block.rfind(b"\n") + 1] if last else block, quietly, final)
                quietly = self._last_ns > self._intake.needed_ns
        except (OSError, EOFError, zlib.error):
            self._unpassed += 1

    def _block(self, block: bytes, quietly: bool, final: bool) -> None:
        """Every line of a block; once everything is new and no long line is about, those that may speak."""
        quietly = quietly and not self._unpassed and holds_whole_lines(block) and not self._joiner.any_open
        for passed, line in loud_lines(block, NEWEST if final else 1) if quietly else every_line(block):
            self._intake.pass_over(passed)
            self._record(line)

    def _record(self, line: bytes) -> None:
        seen = glance(line)
        if (
            seen is not None
            and seen[2]
            and not self._joiner.is_open(seen[1])
            and not self._sieve.keeps(seen[1], line)
        ):
            self._piece(Piece(seen[0], seen[1], b"\n"))
            return
        whole = decode(line)
        sound = whole or salvage(line)
        if whole is None:
            self._unpassed += 1
        if sound is not None:
            self._piece(Piece(*sound))

    def _piece(self, piece: Piece) -> None:
        stamp_ns = piece.stamp_ns
        if self._unpassed:
            self._pass_damage(stamp_ns)
        if self._oldest_ns is None:
            self._oldest_ns = stamp_ns
        if stamp_ns > self._last_ns:
            self._last_ns = stamp_ns
        for line in self._joiner.add(piece):
            self._intake.offer(line)

    def _pass_damage(self, stamp_ns: int) -> None:
        """Records may be lost in a damaged stretch, so what is covered begins anew behind it."""
        if stamp_ns > self._intake.needed_ns:
            self._damaged += self._unpassed
            self._span = next_span(None, self._last_ns, stamp_ns)
        self._unpassed = 0

    def _finish(self) -> None:
        if self._facts.ended:
            for line in self._joiner.rest():
                self._intake.offer(line)
        if self._span is None:
            begins_ns = self._facts.begins_ns if not self._facts.rotates or self._oldest_ns is None else None
            self._span = first_span(self._oldest_ns, self._whole, self._cursor, self._horizon_ns, begins_ns)
        if self._damaged + self._unpassed:
            self.notes.append(
                f"log damaged: {self._damaged + self._unpassed} records of {self._path} cannot be read"
            )
        self._intake.hand_over()


def rotated(path: Path) -> list[Path]:
    """The rotated siblings of a log (`.1`, `.2.gz`), newest first."""
    found = []
    for sibling in path.parent.glob(f"{path.name}.*"):
        match = _ROTATED.fullmatch(sibling.name[len(path.name) :])
        if match:
            found.append((int(match[1]), sibling))
    return [sibling for _, sibling in sorted(found)]


def _opened(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _identity(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def json_records(data: Iterable[bytes]) -> Iterator[Record]:
    """Every record of a json-file's bytes, numbered by the line its first piece stands on.

    What cannot be decoded is passed over: a half record, zeros after a power loss.
    """
    joiner = LineJoiner(Beginnings(trusted=True))
    begun: dict[str, int] = {}
    for number, (line, _) in enumerate(split_lines(data, LONGEST_RECORD), start=1):
        found = decode(line) or salvage(line)
        if found is None:
            continue
        piece = Piece(*found)
        begun.setdefault(piece.stream, number)
        for whole in joiner.add(piece):
            yield Record(whole.stamp_ns, whole.text or b"", whole.stream, begun.pop(whole.stream, number))
    for whole in joiner.rest():
        yield Record(whole.stamp_ns, whole.text or b"", whole.stream, begun.get(whole.stream, 0))
