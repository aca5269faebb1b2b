"""Asking systemd's journal: `journalctl -o export`, which gives the bytes of any message as they are.

The format is systemd's "Journal Export Format": `NAME=value` a line, or the name alone, the length as a
little endian 64-bit number, the bytes and a line feed; an empty line ends an entry. JSON would give numbers
for bytes, and nothing at all for long messages.
"""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import IO

from argus_sched.agent.reading.dockertext import LONGEST_LINE
from argus_sched.agent.sources.answer import Deadline
from argus_sched.errors import SourceError

FIELDS = ("MESSAGE", "MESSAGE_ID", "_LINE_BREAK", "_STREAM_ID", "_SYSTEMD_UNIT", "N_DROPPED")
_LENGTH = struct.Struct("<Q")
_PARTIAL_VIEW = ("insufficient permissions", "not seeing messages", "Permission denied")

Entry = Mapping[bytes, bytes]


def journal_entries(unit: str, directory: str | None, deadline: Deadline, *arguments: str) -> Iterator[Entry]:
    """The unit's entries that `arguments` of journalctl select, in its order, read as they are asked for.

    Raises SourceError when journalctl fails, complains, or has not ended by the deadline: then entries may be
    missing.
    """
    command = ["journalctl", "--unit", unit, "--output=export", f"--output-fields={','.join(FIELDS)}"]
    command += ["--no-pager", *(["--directory", directory] if directory else []), *arguments]
    with tempfile.TemporaryFile() as complaints:
        process = _start(command, complaints)
        timer = threading.Timer(deadline.left, process.kill)
        timer.daemon = True
        timer.start()
        try:
            if process.stdout is not None:
                yield from parse_export(process.stdout)
            code = process.wait()
        finally:
            timer.cancel()
            process.kill()
            process.communicate()
        complaints.seek(0)
        _judge(code, complaints.read(1 << 16).decode(errors="replace"), deadline)


def parse_export(stream: IO[bytes]) -> Iterator[Entry]:
    """The entries of an export; of a value above a mebibyte its beginning. A cut-off one is left out."""
    fields: dict[bytes, bytes] = {}
    while line := _line(stream):
        if line == b"\n":
            if fields:
                yield fields
            fields = {}
            continue
        name, mark, value = line.removesuffix(b"\n").partition(b"=")
        fields[name] = value if mark else _counted(stream)


def _line(stream: IO[bytes]) -> bytes:
    """The next line; of one that is too long the beginning."""
    line = rest = stream.readline(LONGEST_LINE)
    while rest and not rest.endswith(b"\n"):
        rest = stream.readline(LONGEST_LINE)
    return line


def _counted(stream: IO[bytes]) -> bytes:
    """A value with its length before it and a line feed behind it."""
    length = stream.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        return b""
    (left,) = _LENGTH.unpack(length)
    value = stream.read(min(left, LONGEST_LINE))
    left += 1 - len(value)
    while left > 0 and (skipped := stream.read(min(left, LONGEST_LINE))):
        left -= len(skipped)
    return value


def _start(command: list[str], complaints: IO[bytes]) -> subprocess.Popen[bytes]:
    # Notices tell what is hidden from this user; below them is only talk.
    environ = {**os.environ, "LC_ALL": "C.UTF-8", "SYSTEMD_LOG_LEVEL": "notice", "SYSTEMD_COLORS": "0"}
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, env=environ
        )
    except OSError as error:
        raise SourceError(f"cannot start journalctl: {error.strerror}: is systemd installed?") from error


def _judge(code: int, complaints: str, deadline: Deadline) -> None:
    if not deadline.left:
        raise SourceError(f"the journal was not read within {deadline.seconds:g} s")
    if any(words in complaints for words in _PARTIAL_VIEW):
        raise SourceError(
            "this user may not see the whole journal: run as root or in the group systemd-journal"
        )
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    if lines or code:
        raise SourceError(f"journalctl: {lines[-1] if lines else f'exit code {code}'}")
