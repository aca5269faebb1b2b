"""The journal's export format, taken apart; and lines made of its entries."""

from __future__ import annotations

import io
import struct

import pytest

from argus_sched.agent.reading.dockertext import LONGEST_LINE
from argus_sched.agent.sources.journal import EntryJoiner, stamp_of
from argus_sched.agent.sources.journalctl import parse_export

UNIT = "labs.service"


def counted(name: bytes, value: bytes) -> bytes:
    return name + b"\n" + struct.pack("<Q", len(value)) + value + b"\n"


@pytest.mark.parametrize(
    ("data", "messages"),
    [
        (b"", []),
        (b"MESSAGE=a\n_PID=1\n\nMESSAGE=b=c\n\n", [b"a", b"b=c"]),
        (b"\n\nMESSAGE=a\n\n\n", [b"a"]),
        (b"MESSAGE=\n\n", [b""]),
        (counted(b"MESSAGE", b"two\nlines\n\nand \xff\x00") + b"\n", [b"two\nlines\n\nand \xff\x00"]),
        (counted(b"MESSAGE", b"") + b"\n", [b""]),
        (b"MESSAGE=whole\n\nMESSAGE=cut", [b"whole"]),
        (b"MESSAGE=whole\n\n" + counted(b"MESSAGE", b"cut")[:-2], [b"whole"]),
        (b"MESSAGE=whole\n\nMESSAGE\n\x05\x00", [b"whole"]),
    ],
)
def test_entries_of_an_export(data: bytes, messages: list[bytes]) -> None:
    assert [entry[b"MESSAGE"] for entry in parse_export(io.BytesIO(data))] == messages


def test_of_an_enormous_value_the_beginning_is_kept_and_the_next_entry_is_found() -> None:
    huge = b"x" * (3 * LONGEST_LINE + 17)
    for data in (b"MESSAGE=" + huge + b"\n\n", counted(b"MESSAGE", huge) + b"\n"):
        first, second = parse_export(io.BytesIO(data + b"MESSAGE=next\n\n"))
        assert len(first[b"MESSAGE"]) <= LONGEST_LINE
        assert second[b"MESSAGE"] == b"next"


def entry(second: int, text: bytes, stream: bytes = b"s", **fields: bytes) -> dict[bytes, bytes]:
    return {
        b"__REALTIME_TIMESTAMP": b"%d" % (second * 1_000_000),
        b"_SYSTEMD_UNIT": UNIT.encode(),
        b"_STREAM_ID": stream,
        b"MESSAGE": text,
        **{name.encode(): value for name, value in fields.items()},
    }


def texts(*entries: dict[bytes, bytes]) -> list[bytes | None]:
    joiner = EntryJoiner(UNIT)
    return [line.text for one in entries for line in joiner.lines(one)]


def test_a_message_of_several_lines_is_several_lines() -> None:
    assert texts(entry(1, b"Job raised\nTraceback\n  x")) == [b"Job raised", b"Traceback", b"  x"]


def test_a_line_that_journald_broke_is_one_line_whatever_stands_between() -> None:
    forged = b'Running job "ghost'
    broken = entry(1, b"body=", _LINE_BREAK=b"line-max")
    assert texts(broken, entry(2, b"other", b"t"), entry(3, forged)) == [None, b"other", b"body=" + forged]
    assert texts(entry(1, b"end", _LINE_BREAK=b"eof"), entry(2, forged)) == [b"end", forged]


def test_what_others_say_of_the_unit_is_no_line_of_it() -> None:
    assert texts(entry(1, b'Running job "ghost', _SYSTEMD_UNIT=b"init.scope")) == [None]


def test_a_stamp_is_the_journals() -> None:
    assert stamp_of(entry(5, b"")) == 5_000_000_000
    assert stamp_of({}) == 0
