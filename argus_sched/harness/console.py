"""The terminal of a run: a line for each thing that happens, and an end that cleans up however it comes."""

from __future__ import annotations

import contextlib
import signal
import textwrap
import time
from collections.abc import Iterator
from types import FrameType
from typing import TextIO

PAGE = 96


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
    """Print a passage of a story, folded to the width of a page."""
    for paragraph in text.splitlines():
        print(textwrap.fill(paragraph, PAGE, break_long_words=False, break_on_hyphens=False), flush=True)
    print(flush=True)


@contextlib.contextmanager
def ending_cleanly() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as Ctrl-C does, so that whatever was started is ended too."""
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
