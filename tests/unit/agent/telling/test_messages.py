"""The text of a digest: every name, within the limit, no entity split, whatever the names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argus_sched.agent.status import Phase, Status
from argus_sched.agent.telling.incidents import Incident, incident_id
from argus_sched.agent.telling.messages import (
    SHORT_LIMIT,
    TELEGRAM_LIMIT,
    Digest,
    Message,
    Style,
    compose,
)
from argus_sched.agent.telling.notices import Change, Line, Notice
from argus_sched.agent.telling.visible_text import units

AT = datetime(2026, 3, 14, 10, 41, tzinfo=UTC)
OPENED = datetime(2026, 3, 14, 10, tzinfo=UTC)


def line(
    subject: str,
    change: Change = Change.FIRED,
    status: Status = Status.CRIT,
    number: int = 1,
    **words: Any,
) -> Line:
    """A line about `subject`."""
    incident = Incident(
        incident_id(subject, OPENED), subject, OPENED, max(status, Status.WARN), Phase.STALE, "no run for 41m"
    )
    if change.is_end:
        incident = replace(incident, closed_at=AT)
    notice = Notice("telegram", change, status, replace(incident, **words), AT, number, changes=6)
    return Line(notice, (number,), was_told=change is not Change.FIRED)


def digest(*lines: Line) -> Digest:
    """A digest of `lines`."""
    return Digest(AT, lines)


def only(*lines: Line) -> Message:
    """The one message these make."""
    (message,) = compose(digest(*lines))
    return message


def styled(message: Message, style: Style) -> list[str]:
    """The stretches of a message in one style, as Telegram cuts them."""
    raw = message.text.encode("utf-16-le")
    return [
        raw[2 * one.offset : 2 * (one.offset + one.length)].decode("utf-16-le")
        for one in message.entities
        if one.style is style
    ]


def test_an_alert_names_target_job_cause_begin_and_incident() -> None:
    message = only(line("labs/reminders", name="Send SMS", reason="missed by 0:01:12"))
    tag = incident_id("labs/reminders", OPENED)
    assert message.text == (
        f"1 CRIT\n\nCRIT labs/reminders Send SMS\nno run for 41m; missed by 0:01:12\nsince 10:00 UTC #{tag}"
    )
    assert styled(message, Style.BOLD) == ["1 CRIT", "CRIT"]
    assert styled(message, Style.CODE) == ["labs/reminders"]


# What is told -> the words that say so.
WORDS = {
    Change.FIRED: "since 10:00 UTC",
    Change.WORSE: "worse, since 10:00 UTC",
    Change.EASED: "eased, since 10:00 UTC",
    Change.REMINDER: "still CRIT",
    Change.FLAPPING: "flapping labs/job\n6 changes in 20 passes",
    Change.STEADY: "steady labs/job\nCRIT now; no run for 41m",
    Change.RECOVERED: "was CRIT: no run for 41m\nrecovered after 41m, since 10:00 UTC",
    Change.DISABLED: "switched off after 41m",
    Change.REMOVED: "no longer watched, after 41m",
}


@pytest.mark.parametrize("change", Change)
def test_each_change_has_its_words(change: Change) -> None:
    assert WORDS[change] in only(line("labs/job", change)).text


def test_what_flaps_and_is_well_at_the_moment_is_not_told_as_still_ok() -> None:
    flapping = line("labs/job", Change.REMINDER)
    well = replace(flapping, notice=replace(flapping.notice, status=Status.OK))
    assert "still flapping labs/job\n6 changes in 20 passes" in only(well).text


def test_the_plain_form_says_of_each_name_what_it_is() -> None:
    lines = (line("labs/a", Change.RECOVERED), line("labs/b"))
    (message,) = compose(Digest(AT, lines))
    assert [found.partition(" #")[0] for found in message.short.splitlines()[1:]] == [
        "OK labs/a",
        "CRIT labs/b",
    ]


def test_an_end_that_comes_before_its_alert_says_so() -> None:
    late = replace(line("labs/job", Change.RECOVERED), was_told=False)
    assert "its alert could not be sent before" in only(late).text


def test_a_beginning_on_another_day_has_its_date() -> None:
    yesterday = line("labs/job", opened_at=OPENED - timedelta(days=1))
    assert "since 2026-03-13 10:00 UTC" in only(yesterday).text


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(seconds=42), "after 42s,"),
        (timedelta(minutes=41, seconds=5), "after 41m5s,"),
        (timedelta(hours=5, minutes=3, seconds=9), "after 5h3m,"),
        (timedelta(days=2, hours=3, minutes=59), "after 2d3h,"),
        (timedelta(0), "after 0s,"),
    ],
)
def test_a_duration_has_two_units(length: timedelta, words: str) -> None:
    assert words in only(line("labs/job", Change.RECOVERED, closed_at=OPENED + length)).text


@pytest.mark.parametrize(
    ("changes", "silent"),
    [
        ([Change.FIRED], False),
        ([Change.RECOVERED], False),
        ([Change.REMINDER], True),
        ([Change.REMINDER, Change.EASED], True),
        ([Change.REMINDER, Change.FIRED], False),
    ],
)
def test_only_reminders_leave_the_phone_quiet(changes: list[Change], silent: bool) -> None:
    assert only(*(line(f"labs/{n}", change) for n, change in enumerate(changes))).silent is silent


def test_a_reminder_whose_alert_nobody_got_is_not_quiet() -> None:
    assert not only(replace(line("labs/job", Change.REMINDER), was_told=False)).silent


def test_the_head_counts_what_follows() -> None:
    lines = [
        line("a"),
        line("b", status=Status.UNKNOWN),
        line("c", status=Status.UNKNOWN),
        line("d", Change.RECOVERED, Status.OK),
    ]
    assert only(*lines).text.startswith("1 CRIT, 2 UNKNOWN, 1 recovered\n")


def test_an_unwritable_store_is_told() -> None:
    (message,) = compose(replace(digest(line("labs/job")), state_saved=False))
    assert "(state not saved: this may be told again)" in message.text


@pytest.mark.parametrize("count", [1, 20, 60, 150, 300, 500, 5000])
def test_every_name_is_reachable_in_two_messages(count: int) -> None:
    """In full, then names, then as many names as fit and the command that shows the rest."""
    lines = [line(f"labs/job_{number:04}", number=number) for number in range(count)]
    messages = compose(digest(*lines))
    text = "\n".join(message.text for message in messages)
    assert len(messages) <= 2
    assert sorted(number for message in messages for number in message.covers) == list(range(count))
    named = sum(f"labs/job_{number:04}" in text for number in range(count))
    assert named == count or f"and {count - named} more: run argus-sched check" in text
    assert named >= min(count, 300)


def test_the_handed_cases_of_length_are_within_the_limit(field_cases: Any) -> None:
    """B62: 300 jobs, text that would be cut in its markup, and emoji that count twice."""
    cases = {case["id"]: case for case in field_cases("telegram")["cases"]}
    assert units("🧹" * 2049) == cases["utf16"]["utf16_units"] > TELEGRAM_LIMIT
    names = ["🧹" * 2049, cases["cut-entity"]["text"]] + [
        f"job {n} 🧹" * 20 for n in range(cases["too-long"]["jobs"])
    ]
    for message in compose(digest(*(line(name, number=n) for n, name in enumerate(names)))):
        _is_sound(message)


def _is_sound(message: Message) -> None:
    """Within the limits, and every entity a whole stretch inside the text."""
    length = units(message.text)
    assert 0 < length <= TELEGRAM_LIMIT
    assert units(message.short) <= SHORT_LIMIT
    message.text.encode()
    message.short.encode()
    assert message.text == message.text.strip("\n")
    end = 0
    for entity in message.entities:
        assert entity.length > 0
        assert end <= entity.offset
        end = entity.offset + entity.length
        assert end <= length
    raw = message.text.encode("utf-16-le")
    for entity in message.entities:
        raw[2 * entity.offset : 2 * (entity.offset + entity.length)].decode("utf-16-le")
    assert len(message.entities) <= 100


NASTY = st.text(alphabet=st.characters(), max_size=40) | st.sampled_from(
    [
        "🧹" * 2049,
        "<b>bold",
        "*_[`",
        "a\nb\r\n",
        "\x00\x1b[2J",
        "e" + "\u0301" * 500,
        "👩\u200d🔧" * 99,
        "",
        " ",
        "\u202eabc",
        "\ud83e",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(NASTY, NASTY, NASTY, NASTY, st.sampled_from(Change), st.sampled_from(Status)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([1, 1, 1, 30, 300]),
)
def test_no_name_breaks_a_message(words: list[tuple[str, str, str, str, Change, Status]], times: int) -> None:
    lines = [
        line(subject, change, status, number, name=name, summary=summary, reason=reason)
        for number, (subject, name, summary, reason, change, status) in enumerate(words * times)
    ]
    messages = compose(digest(*lines))
    assert 1 <= len(messages) <= 2
    assert sorted(number for message in messages for number in message.covers) == list(range(len(lines)))
    for message in messages:
        _is_sound(message)


def test_without_a_limit_there_is_one_message() -> None:
    lines = [line(f"labs/{number}", number=number) for number in range(500)]
    assert len(compose(digest(*lines), limit=1 << 40)) == 1
