"""Foreign text made safe, and lengths in UTF-16 units."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_sched.agent.telling.visible_text import brief, clip, units, visible
from tests.matrix.names import names


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), ("abc", 3), ("é", 1), ("🧹", 2), ("🧹" * 2049, 4098), ("\ud800", 1)]
)
def test_units_are_those_of_utf_16(text: str, length: int) -> None:
    assert units(text) == length


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain → text 🧹", "plain → text 🧹"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[31mred\x00", "\\x1b[31mred\\x00"),
        ("evil\u202etxt", "evil\\u202etxt"),
        ("line\u2028end\u0085", "line\\u2028end\\x85"),
        ("lone \ud83e", "lone \\ud83e"),
        ("👩\u200d🔧 ❤\ufe0f", "👩\u200d🔧 ❤\ufe0f"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("🧹🧹🧹", 5, "🧹🧹…"),
        ("🧹🧹🧹", 4, "🧹…"),
        ("ae\u0301x", 3, "a…"),
        ("a👩\u200d🔧x", 4, "a…"),
        ("a👍🏽x", 4, "a…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_a_cut_falls_between_characters(text: str, limit: int, cut: str) -> None:
    assert clip(text, limit) == cut


@given(st.text(), st.integers(0, 50))
def test_a_clipped_text_keeps_its_limit(text: str, limit: int) -> None:
    assert units(clip(text, limit)) <= limit


@given(st.text(alphabet=st.characters()))
def test_visible_text_is_one_line_that_utf_8_can_hold(text: str) -> None:
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    shown.encode()


@pytest.mark.parametrize("limit", [1, 2, 10, 240])
def test_what_is_brief_is_what_would_be_clipped_of_the_whole(limit: int) -> None:
    for name in names(random.Random(limit), 300):
        assert brief(name, limit) == clip(visible(name), limit)
