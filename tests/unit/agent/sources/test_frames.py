"""The daemon's frames, cut anywhere."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from argus_sched.agent.sources.frames import LONGEST, FrameParser
from tests.fakes.docker_daemon import frame

FRAMES = st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(max_size=60)), max_size=8)


def cut(parser: FrameParser, data: bytes) -> list[tuple[str, bytes]]:
    whole, spans = parser.feed(data)
    return [(stream, whole[start:end]) for stream, start, end in spans]


@given(FRAMES, st.lists(st.integers(1, 30), min_size=1))
def test_frames_come_out_however_the_bytes_arrive(frames: list[tuple[str, bytes]], sizes: list[int]) -> None:
    data = b"".join(frame(stream, payload) for stream, payload in frames)
    parser, found, turn = FrameParser(), [], 0
    while data:
        size = sizes[turn % len(sizes)]
        found += cut(parser, data[:size])
        data, turn = data[size:], turn + 1
    assert found == frames
    assert not parser.inside
    assert parser.problem == ""


def test_an_end_in_the_middle_of_a_frame_shows() -> None:
    parser = FrameParser()
    assert cut(parser, frame("stdout", b"whole") + frame("stderr", b"half")[:-1]) == [("stdout", b"whole")]
    assert parser.inside


def test_bytes_that_are_no_frames_are_named_and_nothing_more_is_read() -> None:
    parser = FrameParser()
    assert cut(parser, frame("stdout", b"one") + b"2026-03-14T10:00:00Z text") == [("stdout", b"one")]
    assert "not docker's" in parser.problem
    assert cut(parser, frame("stdout", b"two")) == []


def test_an_error_of_the_daemon_is_no_record_and_ends_the_stream() -> None:
    parser = FrameParser()
    data = frame("stdout", b"one") + frame("daemon", b"Error grabbing logs: EOF\n") + frame("stdout", b"two")
    assert cut(parser, data) == [("stdout", b"one")]
    assert parser.problem == "the daemon ended the log early: Error grabbing logs: EOF"


def test_a_length_that_no_record_has_is_refused_before_it_is_waited_for() -> None:
    parser = FrameParser()
    parser.feed(struct.pack(">B3xI", 1, LONGEST + 1))
    assert "not docker's" in parser.problem


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(data: bytes) -> None:
    FrameParser().feed(data)
