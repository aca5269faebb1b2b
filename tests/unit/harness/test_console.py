"""The terminal of a run, and its end by a signal."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from argus_sched.harness.console import ending_cleanly, narrate

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """The handlers of pytest itself, whatever a test left."""
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("first", ENDING)
@pytest.mark.parametrize("second", ENDING)
def test_a_second_signal_does_not_disturb_the_cleaning_up(
    first: signal.Signals, second: signal.Signals
) -> None:
    cleaned = []

    def interrupted() -> None:
        with ending_cleanly():
            try:
                signal.raise_signal(first)
            finally:
                signal.raise_signal(second)
                cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    signal.raise_signal(second)
    assert cleaned


def test_without_a_signal_the_handlers_are_as_before() -> None:
    before = [signal.getsignal(number) for number in ENDING]
    with ending_cleanly():
        pass
    assert [signal.getsignal(number) for number in ENDING] == before


@pytest.mark.parametrize(("columns", "longest"), [("40", 40), ("200", 96)])
def test_a_story_fits_a_narrow_terminal_and_stays_a_page_on_a_wide_one(
    columns: str, longest: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    narrate("word " * 100)
    lines = capsys.readouterr().out.splitlines()
    assert longest - 5 < max(map(len, lines)) <= longest
