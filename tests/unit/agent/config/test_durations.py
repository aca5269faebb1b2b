"""Durations: what is accepted, what it means, and that it is written back as people write it."""

import contextlib
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_sched.agent.config.durations import LONGEST, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("26h", 93600),
        ("1d", 86400),
        ("1h30m", 5400),
        ("0.5s", 0.5),
        ("1d2h3m4.25s", 93784.25),
        ("090s", 90),
        ("3660d", LONGEST.total_seconds()),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "15",
        "m",
        "-5m",
        "5 m",
        "5M",
        "1.5h",
        "30m1h",
        "5m5m",
        "1w",
        "5min",
        "٥m",
        "1e3s",
        "5m\n",
        ".5s",
    ],
)
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 90s, 15m, 26h, 1d or 1h30m, got"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["0s", "0m", "0d0h0m0s", "0.0s"])
def test_nothing_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="must be above zero"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["3661d", "99999999d", "99999999d99999999h"])
def test_more_than_ten_years_is_refused_before_arithmetic_overflows(text: str) -> None:
    with pytest.raises(ValueError, match="must not exceed 3660d"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(hours=26), "26h"),
        (timedelta(days=14), "14d"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(seconds=0.5), "0.5s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(0), "0s"),
    ],
)
def test_a_length_is_written_as_people_write_it(length: timedelta, text: str) -> None:
    assert format_duration(length) == text


@given(st.timedeltas(min_value=timedelta(microseconds=1), max_value=LONGEST))
def test_what_is_written_reads_back(length: timedelta) -> None:
    assert parse_duration(format_duration(length)) == length


@given(st.text(alphabet="0123456789dhms. -", max_size=40))
def test_no_text_raises_anything_but_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert timedelta(0) < parse_duration(text) <= LONGEST
