"""Where a message of the scheduler may stand in a log: cheap for every byte, wrong only towards yes."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Lines that may go on with a job's name behind a line end: two streams stand in one file.
FOLLOWING = 16

# `Running job "`, in JSON `Job \"`, coloured, and the forms that go on with a word or an id. A regular
# expression that begins with plain letters is searched at two gigabytes a second, one that begins with a
# choice is not. Of plain needles the longer is the faster.
_JOB = re.compile(rb'ob (?:\\*"|\x1b|store |tentatively|processing|(?<=rror running job )|(?<=Removed job ))')
_SCHEDULER = b"cheduler"
_OTHERS = (b"Process pool is broken; replacing", b"Error notifying listener", b" completed successfully")


def may_speak(text: bytes) -> bool:
    """Whether one line could hold a message."""
    if _SCHEDULER in text or (b"ob " in text and _JOB.search(text)):
        return True
    pool, listener, finished = _OTHERS
    return pool in text or listener in text or finished in text


def is_unfinished(text: bytes) -> bool:
    """Whether a line that may speak could begin a message that goes on behind a line end in a job's name."""
    return (b'ob "' in text or b'ob \\"' in text) and b"(trigger: " not in text


def loud_lines(block: bytes, newest: int = 0) -> Iterator[tuple[int, bytes]]:
    """The lines of a block of whole lines that may speak, with all that could be the rest of a name.

    Each comes with the number of lines between it and the one before. The last `newest` lines always come;
    the lines that follow the last one given are counted nowhere, so ask for at least one.
    """
    body = _start_of_last(block, newest)
    found = [*places(block[:body]), len(block)]
    at = start = passed = following = 0
    while start < len(block):
        end = block.find(b"\n", start)
        end = len(block) if end < 0 else end
        while found[at] < start:
            at += 1
        if found[at] <= end or following or start >= body:
            line = block[start:end]
            following = FOLLOWING if found[at] <= end and is_unfinished(line) else max(following - 1, 0)
            yield passed, line
            passed, start = 0, end + 1
            continue
        quiet_end = block.rfind(b"\n", start, min(found[at], body)) + 1
        passed += block.count(b"\n", start, quiet_end)
        start = quiet_end


def every_line(block: bytes) -> Iterator[tuple[int, bytes]]:
    """Each line of a block in the form of `loud_lines`."""
    lines = block.split(b"\n")
    if not lines[-1]:
        del lines[-1]
    return ((0, line) for line in lines)


def _start_of_last(block: bytes, lines: int) -> int:
    """Where the last so many lines begin."""
    at = len(block.removesuffix(b"\n"))
    for _ in range(lines):
        at = block.rfind(b"\n", 0, max(at, 0))
    return at + 1 if lines else len(block)


def places(block: bytes) -> list[int]:
    """The offsets in a block of many lines where `may_speak` would say yes, in order; several to a line."""
    found = [match.start() for match in _JOB.finditer(block)]
    for needle in (_SCHEDULER, *_OTHERS):
        at = block.find(needle)
        while at >= 0:
            found.append(at)
            at = block.find(needle, at + len(needle))
    found.sort()
    return found
