"""The terminal of a run: a line for each thing that happens, and an end that cleans up however it comes."""

from __future__ import annotations

import contextlib
import shutil
import signal
import textwrap
import time
from collections.abc import Iterator
from types import FrameType
from typing import TextIO

PAGE = 96
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Console:
    """Prints lines with the seconds since it was made."""

    def __init__(self, stream: TextIO, digits: int = 1) -> None:
        self._stream = stream
        self._digits = digits
        self._began = time.monotonic()

    def tell(self, line: str) -> None:
        """Print one line at once."""
        seconds = time.monotonic() - self._began
        print(f"{seconds:7.{self._digits}f} s  {line}", file=self._stream, flush=True)


def narrate(text: str) -> None:
    """Print a passage of a story, folded to the width of a page or of a terminal narrower than that."""
    width = min(PAGE, shutil.get_terminal_size((PAGE, 24)).columns)
    for paragraph in text.splitlines():
        print(textwrap.fill(paragraph, width, break_long_words=False, break_on_hyphens=False), flush=True)
    print(flush=True)


@contextlib.contextmanager
def ending_cleanly() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as Ctrl-C does; after the first of them all are ignored for good.

    An impatient second Ctrl-C would end the cleaning up instead, and leave behind what it had not reached.
    """
    before = {number: signal.signal(number, _interrupt) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
