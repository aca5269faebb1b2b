"""The daemon's stream format: frames of eight header bytes and a payload, one per stored record.

Header: type (0 stdin, 1 stdout, 2 stderr, 3 the daemon's own error), three zero bytes, the payload's length
as a big-endian unsigned 32-bit number (moby pkg/stdcopy). A container with a TTY sends bytes without frames.
"""

from __future__ import annotations

import struct

HEADER = struct.Struct(">II")
STREAMS = {0 << 24: "stdin", 1 << 24: "stdout", 2 << 24: "stderr"}
DAEMON = 3 << 24
# A record is at most 16 KiB and a stamp; some daemons of other makes send a whole line as one frame.
LONGEST = 4 << 20


# The stream of one payload, and where it begins and ends in the bytes beside it.
Span = tuple[str, int, int]


class FrameParser:
    """Cuts bytes that arrive in pieces of any size into frames.

    `problem` is set, and nothing more is read, once the daemon reported an error or a header cannot be one of
    docker's.
    """

    def __init__(self) -> None:
        self.problem = ""
        self._held = bytearray()
        self._needed = HEADER.size

    @property
    def inside(self) -> bool:
        """Whether a frame has begun and not ended: at the end of the stream, that it was cut off."""
        return bool(self._held)

    def feed(self, data: bytes) -> tuple[bytes, list[Span]]:
        """The payloads that `data` completes, and the bytes they stand in."""
        if self._held:
            self._held += data
            if len(self._held) < self._needed:
                return b"", []
            data = bytes(self._held)
            self._held.clear()
        return (b"", []) if self.problem else (data, self._cut(data))

    def _cut(self, data: bytes) -> list[Span]:
        spans: list[Span] = []
        unpack, size = HEADER.unpack_from, len(data)
        at, self._needed = 0, HEADER.size
        while at + 8 <= size:
            kind, length = unpack(data, at)
            stream = STREAMS.get(kind)
            if (stream is None and kind != DAEMON) or length > LONGEST:
                self.problem = f"a frame header {data[at : at + 8].hex(' ')} is not docker's"
                return spans
            end = at + 8 + length
            if end > size:
                self._needed = 8 + length
                break
            if stream is None:
                self.problem = daemon_said(data[at + 8 : end])
                return spans
            spans.append((stream, at + 8, end))
            at = end
        self._held += data[at:]
        return spans


def daemon_said(text: bytes) -> str:
    """The sentence for an error that the daemon put into the stream."""
    return f"the daemon ended the log early: {text.decode('utf-8', 'replace').strip()[:200]}"
