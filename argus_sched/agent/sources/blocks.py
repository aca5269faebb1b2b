"""Files read from their end: where to begin, so that all newer than a stamp is read, and little else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

from argus_sched.agent.reading.stamps import SECOND_NS

# Larger ones are slower, as they leave the processor's cache, and a pass holds several for each log it reads.
BLOCK = 1 << 17
PROBE = 1 << 15
# The newest records of a file are always looked at: by their stamps the next read goes on.
NEWEST = 64

StampOf = Callable[[bytes], int | None]


def blocks(file: BinaryIO, size: int = BLOCK) -> Iterator[bytes]:
    """The file from where it stands to its end; a short block first, since a read mostly finds little new."""
    block = file.read(min(PROBE, size))
    while block:
        yield block
        block = file.read(size)


def line_blocks(file: BinaryIO, longest: int) -> Iterator[tuple[bytes, bool]]:
    """The file from where it stands in blocks of whole lines, and whether a block is the last.

    Only the last may end within a line. Of a line above `longest` only the beginning is kept.
    """
    held: bytes | None = None
    for block in _whole_lines(file, longest):
        if held is not None:
            yield held, False
        held = block
    if held is not None:
        yield held, True


def _whole_lines(file: BinaryIO, longest: int) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for block in blocks(file):
        end = block.rfind(b"\n") + 1
        if end:
            yield b"".join([*held, block[:end]])
            held, size = [], 0
        if size < longest:
            held.append(block[end:])
            size += len(block) - end
    if size:
        yield b"".join(held)


def start_offset(file: BinaryIO, end: int, needed_ns: int, stamp_of: StampOf) -> int:
    """The offset of a line older than `needed_ns`, found backwards in doubling steps; 0 when there is none.

    A second of margin covers lines that two streams stored out of order.
    """
    step = BLOCK
    while step < end:
        found = _older_line(file, end - step, needed_ns, stamp_of)
        if found is not None:
            beyond = end if step == BLOCK else end - step // 2
            return _narrowed(file, found, beyond, needed_ns, stamp_of)
        step *= 2
    return 0


def _narrowed(file: BinaryIO, offset: int, beyond: int, needed_ns: int, stamp_of: StampOf) -> int:
    """The last such offset below `beyond`, within a probe's length."""
    while beyond - offset > PROBE:
        middle = (offset + beyond) // 2
        found = _older_line(file, middle, needed_ns, stamp_of)
        if found is None or found >= beyond:
            beyond = middle
        else:
            offset = found
    return offset


def _older_line(file: BinaryIO, offset: int, needed_ns: int, stamp_of: StampOf) -> int | None:
    """The offset of the first readable line from `offset` on, when it is older than needed by a second."""
    found = _stamped_line(file, offset, stamp_of)
    return found[0] if found is not None and found[1] + SECOND_NS < needed_ns else None


def first_stamp(file: BinaryIO, stamp_of: StampOf) -> int | None:
    """The stamp of the file's first readable line."""
    found = _stamped_line(file, 0, stamp_of)
    return found[1] if found else None


def _stamped_line(file: BinaryIO, offset: int, stamp_of: StampOf) -> tuple[int, int] | None:
    """Offset and stamp of the first readable line that begins soon after `offset`."""
    for length in (PROBE, 2 * BLOCK):
        file.seek(offset)
        found = _line_in(file.read(length), offset, stamp_of)
        if found is not None:
            return found
    return None


def _line_in(data: bytes, offset: int, stamp_of: StampOf) -> tuple[int, int] | None:
    at = data.find(b"\n") + 1 if offset else 0
    if offset and at == 0:
        return None
    while (line_end := data.find(b"\n", at)) >= 0:
        stamp_ns = stamp_of(data[at:line_end])
        if stamp_ns is not None:
            return offset + at, stamp_ns
        at = line_end + 1
    return None
