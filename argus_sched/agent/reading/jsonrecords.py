"""Pieces from the lines of Docker's json-file: {"log":"text\\n","stream":"stderr","time":"RFC 3339"}."""

from __future__ import annotations

import json

from argus_sched.agent.reading.stamps import parse_stamp

_STARTS = (b'{"log":"', b'{"log": "')
_STREAMS = {b"stdout": "stdout", b"stderr": "stderr"}


def glance(line: bytes) -> tuple[int, str, bool] | None:
    """Stamp, stream, and whether a line feed ends the text, of a line as the daemon writes it.

    None when only decoding can tell. Quotes inside the text are escaped, so the last bare key of each kind is
    the record's own.
    """
    at = line.rfind(b'","stream":"')
    stream = _STREAMS.get(line[at + 12 : at + 18])
    stamp_ns = _own_stamp(line)
    if stamp_ns is None or stream is None or at < 0 or line[at + 18 : at + 20] != b'",':
        return None
    if line.rfind(_STARTS[0]) or line[at - 3 : at - 2] == b"\\":
        return None  # half a record before this one, or an escaped backslash that only looks like a line feed
    return stamp_ns, stream, line[at - 2 : at] == b"\\n"


def holds_whole_lines(block: bytes) -> bool:
    """Whether every record of a block ends its line of text, as the daemon writes it, and none is damaged.

    Counting says so: each line of the file has one such end, and text cannot hold one, since its quotes are
    escaped.
    """
    lines = block.count(b"\n")
    ends = block.count(b'\\n","stream":"std')
    return lines == ends == block.count(b'Z"}\n') and b'\\\\n","stream":"std' not in block


def stamp_of(line: bytes) -> int | None:
    """The stamp of one line in nanoseconds; None when the line is damaged."""
    stamp_ns = _own_stamp(line)
    if stamp_ns is None:
        found = decode(line)
        return found[0] if found else None
    return stamp_ns


def _own_stamp(line: bytes) -> int | None:
    at = line.rfind(b'"time":"')
    if at < 0 or not line.startswith(b"{") or not line.endswith(b'"}'):
        return None
    stamp = parse_stamp(line[at + 8 : -2])
    return stamp[0] if stamp and at + 8 + stamp[1] + 2 == len(line) else None


def salvage(line: bytes) -> tuple[int, str, bytes] | None:
    """The whole record at the end of a line whose beginning is torn: a crash left half of another there."""
    start = max(line.rfind(mark) for mark in _STARTS)
    return decode(line[start:]) if start > 0 else None


def decode(line: bytes) -> tuple[int, str, bytes] | None:
    """Stamp, stream and text of one line; None when it is damaged."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    text, stream, time = value.get("log"), value.get("stream"), value.get("time")
    stamp = parse_stamp(time.encode("ascii", "replace")) if isinstance(time, str) else None
    if stamp is None or not isinstance(text, str):
        return None
    return stamp[0], stream if isinstance(stream, str) else "stdout", text.encode("utf-8", "replace")
