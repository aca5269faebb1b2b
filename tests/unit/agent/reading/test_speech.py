"""Searching blocks instead of reading lines loses nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from argus_sched.agent.logevents import Event, Record
from argus_sched.agent.reading.loglines import parse
from argus_sched.agent.reading.speech import every_line, loud_lines, may_speak, places
from argus_sched.agent.reading.stamps import format_stamp
from argus_sched.agent.sources.frames import FrameParser
from argus_sched.agent.sources.listener import Listener
from argus_sched.agent.sources.pieces import Beginnings, LineJoiner, Piece, Quiet
from tests.fakes.docker_daemon import frame

RUN = (
    'Running job "{} (trigger: interval[0:05:00], next run at: 2026-03-14 09:05:00 UTC)"'
    " (scheduled at 2026-03-14 09:00:00+00:00)"
)
TEXTS = st.sampled_from(
    [
        RUN.format("whole"),
        RUN.format("two\nlines").partition("\n")[0],
        RUN.format("two\nlines").partition("\n")[2],
        "INFO:     GET /jobs/17",
        "a job for someone",
        "",
        "WARNING:     Error getting due jobs from job store 'pg': gone",
        "ERROR:     Error running job j1",
        "Removed job j1",
        "Scheduler started",
        "Process pool is broken; replacing pool with a fresh instance",
        "Error notifying listener",
        "Job 10ad6c57-3ca2-4ac8-9782-5743f83209b8 completed successfully",
        'Job "x" (id=j1) enabled by me',
        '{"message": "Job \\"x\\" (id=j1) enabled by me"}',
        "Running job \x1b[1m" + RUN.format("bright")[12:],
    ]
)


def events(lines: list[bytes]) -> list[Event]:
    return list(parse(Record(1, line) for line in lines))


@given(st.lists(TEXTS, max_size=30), st.integers(0, 4), st.booleans())
def test_the_loud_lines_of_a_block_say_all_that_it_says(texts: list[str], newest: int, ended: bool) -> None:
    block = "\n".join(texts).encode() + (b"\n" if ended else b"")
    every = [line for _, line in every_line(block)]
    loud = list(loud_lines(block, newest))
    assert events([line for _, line in loud]) == events(every)
    assert len(loud) + sum(passed for passed, _ in loud) <= len(every)
    if newest:
        assert len(loud) + sum(passed for passed, _ in loud) == len(every)
        assert [line for _, line in loud][-newest:] == every[-newest:]


@given(TEXTS)
def test_a_line_and_a_block_are_searched_for_the_same(text: str) -> None:
    assert may_speak(text.encode()) == bool(places(text.encode()))


@given(
    st.lists(st.tuples(TEXTS, st.sampled_from(["stdout", "stderr"]), st.booleans()), max_size=30),
    st.integers(1, 400),
)
def test_a_listener_hears_in_blocks_what_every_record_says(
    records: list[tuple[str, str, bool]], size: int
) -> None:
    data = b"".join(
        frame(stream, format_stamp(number // 2).encode() + b" " + text.encode() + (b"\n" if ended else b""))
        for number, (text, stream, ended) in enumerate(records)
    )

    def heard(quietly: bool) -> tuple[list[Event], int, list[tuple[int, int]]]:
        parser, listener, joiner = FrameParser(), Listener(), LineJoiner(Beginnings(trusted=True))
        lines, number, newest = [], 0, []
        for at in range(0, len(data), size):
            for item in listener.heard(*parser.feed(data[at : at + size]), quietly):
                if isinstance(item, Quiet):
                    number += item.number
                    newest += [(item.newest_ns, item.at_newest)]
                    continue
                assert isinstance(item, Piece)
                number += 1
                lines += joiner.add(item)
        said = parse(Record(line.stamp_ns, line.text or b"", line.stream) for line in lines)
        return [event for event in said if event.kind != "unreadable"], number, newest

    quiet, loud = heard(quietly=True), heard(quietly=False)
    assert quiet[:2] == loud[:2]
    assert all(1 <= number <= 2 for _, number in quiet[2])
