"""Whole lines from the pieces a log driver stores, and proof that a line begins where it seems to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from argus_sched.agent.reading.dockertext import LONGEST_LINE
from argus_sched.agent.reading.stamps import SECOND_NS


class Piece(NamedTuple):
    """One stored record: a line, or 16 KiB of a longer one (then its text has no line feed at the end)."""

    stamp_ns: int
    stream: str
    text: bytes


class Quiet(NamedTuple):
    """Records that cannot speak, passed over unread: how many, of which streams, the stamp of the last, and
    how many of those before it share that stamp, itself included."""

    number: int
    streams: frozenset[str]
    newest_ns: int
    at_newest: int


class Line(NamedTuple):
    """One whole line without its end; text is None when it may be the rest of a longer line."""

    stamp_ns: int
    stream: str
    text: bytes | None


class Beginnings:
    """Knows of which lines the beginning has been seen.

    The first record of a stream in an answer may continue a longer line, and a request body cut there could
    forge a run. All pieces of one line carry the stamp of its first, and a log is written in the order of
    stamps up to the race between two streams; so a first record counts only when an older one, by more than
    that race can explain, stands before it. A `trusted` answer is known to begin with whole lines.
    """

    RACE_NS = SECOND_NS

    def __init__(self, trusted: bool) -> None:
        self._trusted = trusted
        self._streams: set[str] = set()
        self._oldest_ns: int | None = None

    def add(self, streams: Iterable[str]) -> None:
        """Whole lines of these streams have gone by."""
        self._streams.update(streams)

    def has(self, stream: str, stamp_ns: int) -> bool:
        """Whether this piece, the next of the answer, is known to begin a line unless one is open."""
        older = self._oldest_ns is not None and self._oldest_ns + self.RACE_NS < stamp_ns
        proven = self._trusted or older or stream in self._streams
        self._streams.add(stream)
        self._oldest_ns = stamp_ns if self._oldest_ns is None else min(self._oldest_ns, stamp_ns)
        return proven


@dataclass
class _Open:
    stamp_ns: int
    proven: bool
    size: int = 0
    parts: list[bytes] = field(default_factory=list)

    def add(self, text: bytes) -> None:
        if self.size < LONGEST_LINE:
            self.parts.append(text)
            self.size += len(text)

    def line(self, stream: str) -> Line:
        text = b"".join(self.parts)[:LONGEST_LINE].removesuffix(b"\n")
        return Line(self.stamp_ns, stream, text if self.proven else None)


# journald stamps each piece of a line as it receives it, one right after the other.
JOURNALD_PATIENCE_NS = 10 * SECOND_NS


class LineJoiner:
    """Joins pieces into lines, each stream by itself.

    The pieces of one line carry one stamp; with `patience_ns`, stamps of their own that are at most so far
    apart, and then a piece that comes later is not trusted to begin a line.
    """

    def __init__(self, beginnings: Beginnings, patience_ns: int = 0) -> None:
        self._beginnings = beginnings
        self._patience_ns = patience_ns
        self._open: dict[str, _Open] = {}

    def pass_over(self, quiet: Quiet) -> None:
        """Know that these streams have begun lines."""
        self._beginnings.add(quiet.streams)

    def is_open(self, stream: str) -> bool:
        """Whether the stream's last piece had no line feed."""
        return stream in self._open

    @property
    def any_open(self) -> bool:
        """Whether some stream's last piece had no line feed."""
        return bool(self._open)

    def add(self, piece: Piece) -> list[Line]:
        """The lines that this piece completes.

        A piece with another stamp than the open one begins a new line: its writer died in between.
        """
        stamp_ns, stream, text = piece
        proven = self._beginnings.has(stream, stamp_ns)
        held = self._open.pop(stream, None)
        done = []
        if held is not None and abs(stamp_ns - held.stamp_ns) > self._patience_ns:
            done.append(held.line(stream))
            held, proven = None, proven and not self._patience_ns
        if held is None:
            if text.endswith(b"\n"):
                done.append(Line(stamp_ns, stream, text[:-1] if proven else None))
                return done
            held = _Open(stamp_ns, proven)
        held.add(text)
        if text.endswith(b"\n"):
            done.append(held.line(stream))
        else:
            self._open[stream] = held
        return done

    def rest(self) -> list[Line]:
        """Lines whose end was not read."""
        lines = [held.line(stream) for stream, held in self._open.items()]
        self._open.clear()
        return lines
