"""The daemon's stream format: frames of eight header bytes and a payload, one per stored record.

Header: type (0 stdin, 1 stdout, 2 stderr, 3 the daemon's own error), three zero bytes, the payload's length
as a big-endian unsigned 32-bit number (moby pkg/stdcopy). A container with a TTY sends bytes without frames.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

HEADER = struct.Struct(">B3xI")
STREAMS = {0: "stdin", 1: "stdout", 2: "stderr", 3: "daemon"}
DAEMON = "daemon"
# A record is at most 16 KiB and a stamp; some daemons of other makes send a whole line as one frame.
LONGEST = 4 << 20


class Frame(NamedTuple):
    """One payload and the stream it belongs to."""

    stream: str
    payload: bytes


class FrameParser:
    """Cuts bytes that arrive in pieces of any size into frames.

    `problem` is set, and nothing more is read, once a header cannot be one of docker's.
    """

    def __init__(self) -> None:
        self.problem = ""
        self._held = bytearray()
        self._needed = HEADER.size

    @property
    def inside(self) -> bool:
        """Whether a frame has begun and not ended: at the end of the stream, that it was cut off."""
        return bool(self._held)

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that `data` completes."""
        if self._held:
            self._held += data
            if len(self._held) < self._needed:
                return []
            data = bytes(self._held)
            self._held.clear()
        return [] if self.problem else self._cut(data)

    def _cut(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        at, size = 0, len(data)
        self._needed = HEADER.size
        while at + HEADER.size <= size:
            kind, length = HEADER.unpack_from(data, at)
            start = at + HEADER.size
            if kind > 3 or data[at + 1 : at + 4] != b"\0\0\0" or length > LONGEST:
                self.problem = f"a frame header of type {kind} and {length} bytes is not docker's"
                return frames
            if start + length > size:
                self._needed = HEADER.size + length
                break
            frames.append(Frame(STREAMS[kind], data[start : start + length]))
            at = start + length
        self._held += data[at:]
        return frames
