"""Records from the text that `docker logs -t` prints, as bytes, with its joints taken out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from argus_sched.agent.logevents import Record
from argus_sched.agent.reading.stamps import parse_stamp

# The daemon stores a longer line in pieces of this size and stamps each (moby daemon/logger/copier.go).
PIECE = 16384
# What is kept of one line: far above any message, far below what a runaway writer can print.
LONGEST_LINE = 1 << 20


def split_docker_text(data: Iterable[bytes]) -> Iterator[Record]:
    """Every stamped line of `data` (blocks of any size), numbered from 1 by line feed.

    A line without a stamp is no record: the half line a window begins with, or a message of the daemon. A
    last line without a line feed counts; whether it is whole is for its reader to say.
    """
    joiner = TextJoiner()
    for number, (line, _) in enumerate(split_lines(data), start=1):
        yield from joiner.records(line, number)


def split_lines(blocks: Iterable[bytes], longest: int = LONGEST_LINE) -> Iterator[tuple[bytes, bool]]:
    """Each line without its line feed, and whether it had one; of a line above `longest` the beginning."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        *lines, rest = block.split(b"\n")
        for line in lines:
            yield (b"".join(held) + line if held else line)[:longest], True
            held.clear()
            size = 0
        if rest and size < longest:
            held.append(rest)
            size += len(rest)
    if held:
        yield b"".join(held)[:longest], False


class TextJoiner:
    """Takes pieces of one long line together, also where a line of the other stream stands between them."""

    def __init__(self) -> None:
        self._stamp_ns = -1
        self._begun = b""

    def records(self, line: bytes, number: int) -> Iterator[Record]:
        """The records that begin on one physical line: one, none without a stamp, more where streams mix."""
        stamp = parse_stamp(line)
        while stamp is not None:
            stamp_ns, end = stamp
            head, text = line[: end + 1], line[end + 1 :]
            following = parse_stamp(text[PIECE : PIECE + 64]) if len(text) > PIECE else None
            if following is not None and following[0] != stamp_ns:
                # Merged streams: another line's record begins here, and this line goes on later.
                self._stamp_ns, self._begun = stamp_ns, self._whole(stamp_ns, text[:PIECE])
                line, stamp = text[PIECE:], following
                continue
            if len(text) > PIECE:
                text = text.replace(head, b"")
            yield Record(stamp_ns, self._whole(stamp_ns, text), line=number)
            return

    def _whole(self, stamp_ns: int, text: bytes) -> bytes:
        if stamp_ns != self._stamp_ns:
            return text
        begun, self._stamp_ns, self._begun = self._begun, -1, b""
        return (begun + text)[:LONGEST_LINE]
