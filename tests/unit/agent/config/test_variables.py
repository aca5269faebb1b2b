"""Variables in values: a shell's rules, and nothing more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_sched.agent.config.variables import escape, substitute

ENVIRON = {"MINUTES": "5", "EMPTY": "", "NESTED": "${MINUTES}"}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain", "plain"),
        ("${MINUTES}m", "5m"),
        ("${MINUTES:-9}m", "5m"),
        ("${NOPE:-9}m", "9m"),
        ("${EMPTY:-9}m", "9m"),
        ("[${EMPTY}]", "[]"),
        ("${NOPE:-}", ""),
        ("${MINUTES}${MINUTES}", "55"),
        ("${NESTED}", "${MINUTES}"),
        ("$${MINUTES}", "${MINUTES}"),
        ("$MINUTES costs 5$", "$MINUTES costs 5$"),
        ("${NOPE:-a:-b}", "a:-b"),
    ],
)
def test_a_reference_becomes_its_value(text: str, result: str) -> None:
    assert substitute(text, ENVIRON) == result


def test_an_unset_variable_is_named_with_what_to_do() -> None:
    with pytest.raises(ValueError) as caught:
        substitute("${NOPE}m", ENVIRON)
    assert str(caught.value) == "the variable NOPE is not set: set it or write ${NOPE:-default}"


@pytest.mark.parametrize("text", ["${", "${}", "${1X}", "${MINUTES", "${MINUTES-5}", "${A:-${B}}", "${A B}"])
def test_a_malformed_reference_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a reference is written"):
        substitute(text, ENVIRON)


@given(st.text(alphabet="${}:-Aa", max_size=30))
def test_escaped_text_comes_back_unchanged(text: str) -> None:
    assert substitute(escape(text), {}) == text
