"""The standard streams, made fit for anything that is printed."""

from __future__ import annotations

import io
import os
import sys

_MODES = {"stdin": "r", "stdout": "w", "stderr": "w"}


def prepare() -> None:
    """Make every stream be there, and take every letter: a verdict must not be lost on the way out.

    A stream that the caller closed is None, and the next file opened, perhaps the state, gets its number: the
    null device takes its place. What a locale cannot write, it gets as an escape.
    """
    for name, mode in _MODES.items():
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def speak_utf8() -> None:
    """Let standard output be UTF-8 whatever the locale, as JSON is; half a letter becomes JSON's escape."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
