"""The parser: what counts as a message, what does not, and that no input makes it raise or crawl."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from argus_sched.agent.logevents import Event, EventKind, Record
from argus_sched.agent.reading import loglines
from argus_sched.agent.reading.loglines import LineParser, Sieve, parse, split_docker_text

JOB = "{name} (trigger: interval[0:05:00], next run at: 2026-03-14 10:05:00 UTC)"
RUN = f'Running job "{JOB}" (scheduled at 2026-03-14 10:00:00+00:00)'
LOGGER = "INFO:apscheduler.executors.default:"


def run(name: str = "x") -> str:
    return RUN.replace("{name}", name)


def read(*texts: str, streams: str = "") -> list[Event]:
    records = [
        Record(
            1_000 + number,
            text.encode("utf-8", "surrogatepass"),
            (streams or "o" * len(texts))[number],
            number + 1,
        )
        for number, text in enumerate(texts)
    ]
    return list(parse(records))


def runs(*texts: str) -> list[str | None]:
    return [event.name for event in read(*texts) if event.kind is EventKind.RUNNING]


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "[2026-03-14 10:00:00,015] INFO in base: ",
        "INFO 2026-03-14 10:00:00,015 base 12345 140021 ",
        "MainProcess ThreadPoolExecutor-0_0 INFO base ",
        "web-1  | INFO:     ",
        "Mar 14 11:00:09 node7.example.com scheduler.py[7681]: 2026-03-14 11:00:09 INFO ",
        "<14>Mar 14 11:00:09 node7 app[7681]: ",
        "2026-03-14T10:00:00.123+02:00 node7.example.com gunicorn[17]: [INFO] ",
        "10:00:00 INFO [apscheduler.executors.default] [trace_id=0 resource.service.name=labs.api] - ",
        "/usr/lib/python3.12/site-packages/apscheduler/executors/base.py:129: ",
        "2026-03-14 10:00:00 [info     ] ",
        "\x1b]8;id=1;file:///base.py\x1b\\INFO\x1b]8;;\x1b\\ ",
    ],
)
def test_a_run_is_found_under_a_formatters_prefix(prefix: str) -> None:
    assert runs(prefix + run()) == ["x"]


@pytest.mark.parametrize(
    "prefix",
    [
        "INFO:app.chat:",
        "app.chat | ",
        "INFO:root:Not ",
        "INFO: ticket 4411 says ",
        "alice: bob wrote: ",
        "user 17 wrote: ",
        "> 'quoted' ",
        'GET "',
        "\u201c",
        "`",
        "body=",
        "x" * 600 + ": ",
        '{"message": "',
    ],
)
def test_text_that_quotes_a_run_is_none(prefix: str) -> None:
    assert runs(prefix + run()) == []


@pytest.mark.parametrize(
    "text",
    [
        run() + " - please look",
        run() + "'",
        run()[:-1],
        run().replace("+00:00)", ")"),
        run().replace("2026-03-14 10:00:00+00:00", "tomorrow"),
        run().replace("2026-03-14 10:00:00+00:00", "2026-13-14 10:00:00+00:00"),
        run().replace("interval[0:05:00], next run at: 2026-03-14 10:05:00 UTC", "interval[0:05:00]"),
        "running" + run()[7:],
    ],
)
def test_a_run_reaches_the_end_of_its_line_in_the_fixed_form(text: str) -> None:
    assert runs(LOGGER + text) == []


def test_a_console_suffix_with_the_logger_is_taken_off() -> None:
    text = f"2026-03-14 10:00:00 [info     ] {run()}    [apscheduler.executors.default]"
    assert runs(text) == ["x"]
    assert runs(text.replace("[apscheduler.executors.default]", "[app.chat]")) == []


@pytest.mark.parametrize(
    ("zone", "utc"),
    [
        ("UTC", "2026-03-14T10:05:00+00:00"),
        ("GMT", "2026-03-14T10:05:00+00:00"),
        ("-03", "2026-03-14T13:05:00+00:00"),
        ("+0545", "2026-03-14T04:20:00+00:00"),
        ("UTC+05:30", "2026-03-14T04:35:00+00:00"),
        ("CST", None),
        ("EET", None),
        ("Eastern Standard Time", None),
    ],
)
def test_the_next_run_has_an_instant_only_in_an_unambiguous_zone(zone: str, utc: str | None) -> None:
    (event,) = read(LOGGER + run().replace("10:05:00 UTC", f"10:05:00 {zone}"))
    assert event.next_run == f"2026-03-14 10:05:00 {zone}"
    assert (event.next_run_utc.isoformat() if event.next_run_utc else None) == utc


SWITCHED = "WARNING:argus_sched.scheduling.jobs:"


@pytest.mark.parametrize(
    ("text", "kind", "detail"),
    [
        ('Job "{}" (id=j1) disabled by alice: too slow', EventKind.JOB_DISABLED, "alice: too slow"),
        ('Job "{}" (id=j1) paused by alice: deploy', EventKind.JOB_DISABLED, "alice: deploy"),
        ('Job "{}" (id=j1) enabled by bob', EventKind.JOB_ENABLED, "bob"),
        (
            'Job "{}" (id=j1) auto-disabled after 5 failures in a row: ValueError: no',
            EventKind.JOB_AUTO_DISABLED,
            "5 failures in a row: ValueError: no",
        ),
    ],
)
@pytest.mark.parametrize(
    "name", ["plain", 'a "quoted" (EU)', 'x" (id=fake) enabled by "y', "Generate \u2192 entries"]
)
def test_our_own_switch_lines_are_read(text: str, kind: EventKind, detail: str, name: str) -> None:
    (event,) = read(SWITCHED + text.replace("{}", name))
    assert (event.kind, event.name, event.job_id, event.detail) == (kind, name, "j1", detail)


def test_a_switch_line_of_another_logger_is_no_event() -> None:
    assert read('WARNING:apscheduler.scheduler:Job "x" (id=j) disabled by me: why') == []
    assert read('WARNING:app.chat:Job "x" (id=j) disabled by me: why') == []


def test_json_names_the_logger_that_may_say_it() -> None:
    text = 'Job "x" (id=j) enabled by me'
    assert (
        read(json.dumps({"logger": "argus_sched.scheduling.jobs", "message": text}))[0].kind == "job_enabled"
    )
    assert read(json.dumps({"logger": "apscheduler.scheduler", "message": text})) == []
    assert runs(json.dumps({"message": run()})) == ["x"]
    assert runs(json.dumps({"message": "note: " + run()})) == []
    assert runs(
        json.dumps({"logger": "apscheduler.executors.default", "message": run("half \ud83d pair")})
    ) == ["half \ufffd pair"]


@pytest.mark.parametrize("value", ["[" * 100_000, '{"a":' * 100_000, '{"message": ' + "9" * 100_000 + "}"])
def test_json_that_breaks_parsers_is_no_event(value: str) -> None:
    assert read(value + " Running job ") == []


def test_pieces_of_a_name_are_joined_within_their_own_stream() -> None:
    first, second = f'{LOGGER}Running job "two', run("lines").removeprefix('Running job "')
    assert [event.name for event in read(first, "GET /health", second, streams="eoe")] == ["two\nlines"]
    assert runs(first, "", second) == ["two\n\nlines"]
    assert runs(first, f"{LOGGER}Scheduler started", second) == []
    assert runs(first, *[f"piece {number}" for number in range(9)], second) == []


def test_an_outcome_of_a_name_with_a_line_end_is_read() -> None:
    events = read(
        f'{LOGGER}Job "two', f'{JOB.replace("{name}", "lines")}" raised an exception', "Traceback ..."
    )
    assert [(event.kind, event.name, event.line) for event in events] == [(EventKind.FAILED, "two\nlines", 1)]


def test_a_run_wrapped_by_a_console_handler_is_unreadable_whatever_the_width() -> None:
    rest = " " * 29
    without_path = [
        '[03/14/26 18:00:00] INFO     Running job "sync',
        f"{rest}{run('all')[13:60]}",
        f"{rest}{run()[60:]}",
    ]
    assert [event.kind for event in read(*without_path)] == [EventKind.UNREADABLE]


def test_a_plain_phrase_needs_the_loggers_name() -> None:
    assert read("INFO:root:Removed job number seven") == []
    assert read("INFO:apscheduler.scheduler:Removed job number seven")[0].job_id == "number seven"
    assert read("INFO:root:Removed job j7")[0].job_id == "j7"


def test_an_unfinished_message_at_the_end_is_left_for_the_next_read() -> None:
    parser = LineParser("web")
    assert parser.feed(Record(1, f'{LOGGER}Running job "cut'.encode())) == []
    assert parser.flush() == []
    (event,) = parser.feed(Record(2, (LOGGER + run()).encode()))
    assert (event.name, event.container) == ("x", "web")


@given(
    st.lists(
        st.sampled_from(
            [run(), f'{LOGGER}Running job "a', "b", f"x (trigger: {run()[20:]}", "GET /jobs/1 ob "]
        )
    )
)
def test_the_sieve_loses_no_event(texts: list[str]) -> None:
    records = [Record(number, text.encode(), line=number) for number, text in enumerate(texts)]
    sieve = Sieve()
    kept = [record for record in records if sieve.keeps(record.stream, record.text)]
    everything = [event for event in parse(records) if event.kind is EventKind.RUNNING]
    assert [event for event in parse(kept) if event.kind is EventKind.RUNNING] == everything


FRAGMENTS = st.sampled_from(
    [
        LOGGER,
        'Running job "',
        'Job "',
        " (trigger: ",
        ", next run at: 2026-03-14 10:05:00 UTC",
        ", paused",
        ')" (scheduled at ',
        "2026-03-14 10:00:00+00:00",
        ")",
        '"',
        "'",
        '{"message": "',
        '"}',
        "\x1b[",
        "\x1b]",
        "\\",
        "\n",
        "\r",
        "\0",
        "2026-03-14T10:00:00.000000001Z ",
        '" (id=',
        "apscheduler.",
        "a.b",
        " ",
        "ob ",
    ]
)
NOISE = st.lists(st.one_of(FRAGMENTS, st.text(max_size=12)), max_size=40).map("".join)


@given(st.lists(NOISE, max_size=6))
@example(["\ud800"])
def test_no_text_makes_the_parser_raise(texts: list[str]) -> None:
    for event in read(*texts):
        assert event.kind in EventKind


@given(
    st.binary(max_size=400)
    | st.lists(NOISE, max_size=5).map(lambda parts: "\n".join(parts).encode("utf-8", "replace"))
)
def test_no_bytes_make_the_splitter_raise(data: bytes) -> None:
    list(parse(split_docker_text([data])))


@given(NOISE.filter(lambda text: 'Running job "' not in text), NOISE.filter(lambda text: text.strip() != ""))
def test_a_run_that_something_quotes_or_follows_is_never_invented(before: str, after: str) -> None:
    line = f'note: "{before}{run()}{after}"'.replace("\n", " ")
    assert runs(line) == []


@given(
    st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1).filter(
        lambda name: "(trigger: " not in name
    )
)
@example('x" (scheduled at 2020-01-01 00:00:00+00:00)')
@example("x (trigger: fake, next run at: never)")
@example("  padded  ")
def test_any_name_comes_back_as_it_was(name: str) -> None:
    assert runs(LOGGER + run(name)) == [name]


def steps(work: Callable[[], Any]) -> int:
    """How many lines of Python a piece of work runs: its size, on any machine."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


BULK: dict[str, Callable[[int], list[str]]] = {
    "one opening after another": lambda n: [f'{LOGGER}Running job "a'] * n,
    "openings that go on": lambda n: [f'{LOGGER}Running job "a', "b", "c"] * (n // 3),
    "switch lines that never close": lambda n: [LOGGER + 'Job "x' + '" (id=' * n],
    "brackets": lambda n: ["[" * 200 + "ob " + run()] * n,
    "braces": lambda n: ["{" * n + " ob "],
    "escapes": lambda n: ["ob \x1b[" * n],
}


@pytest.mark.parametrize("kind", sorted(BULK))
def test_work_grows_with_the_input_and_no_faster(kind: str) -> None:
    small, large = (steps(partial(read, *BULK[kind](number))) for number in (150, 600))
    assert large < 6 * small + 500


@pytest.mark.parametrize(
    "fill", ["A", " ", '"', "[", "(", "\x1b[", 'Job "', "ob ", '" (id=', ".", "a.", "\\"]
)
def test_a_line_of_a_megabyte_is_read_in_pieces_that_do_not_multiply(fill: str) -> None:
    # A quadratic expression would need hours here, and the suite's own time-out ends it.
    line = LOGGER + 'Running job "' + fill * (1_000_000 // len(fill)) + run()
    loglines.read_line(loglines.clean(line.encode()))
    loglines.read_line(loglines.clean((fill * (1_000_000 // len(fill)) + run()).encode()))
