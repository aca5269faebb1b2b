"""The report as text: well formed, escaped, and loading nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from argus_sched.harness import timeline
from argus_sched.harness.history import Born, Died, Fault, History
from argus_sched.harness.report import _counted, page
from tests.unit.harness.sample_run import T0, record


def test_it_loads_nothing_and_runs_nothing() -> None:
    html = page(record())
    assert not re.search(r"<script|https?://|@import|url\(|\son\w+=", html)
    assert re.findall(r'(?:href|src)="?([^" >]+)', html) == ["data:,", "report.json", "history.jsonl"]


def test_every_word_of_a_run_is_escaped() -> None:
    html = page(record())
    assert "&lt;not the leader&gt;" in html
    assert "<not the leader>" not in html


def test_its_tags_are_balanced() -> None:
    class Balance(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []
            # HTML closes these by itself
            self.loose = {"meta", "link", "br", "th", "td", "tr", "li", "col"}

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in self.loose:
                self.open.append(tag)

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            pass

        def handle_endtag(self, tag: str) -> None:
            if tag not in self.loose:
                assert self.open.pop() == tag

    balance = Balance()
    balance.feed(page(record(doubled=True)))
    assert balance.open == []


def test_it_says_held_or_violated_and_why() -> None:
    assert '<span class="verdict held" id="verdict">held</span>' in page(record())
    broken = page(record(doubled=True))
    assert '<span class="verdict violated" id="verdict">violated</span>' in broken
    assert "job_0 due 2027-01-15T08:00:08.000Z ran twice" in broken


def test_it_names_the_command_that_repeats_the_run() -> None:
    assert (
        "argus-sched harness run --workers 3 --jobs 8 --duration 40s --faults kill,terminate,freeze,clock --seed 4711"
        in page(record())
    )


@pytest.mark.parametrize("seconds", [40, 3600])
def test_a_long_run_is_drawn_with_few_marks(seconds: int) -> None:
    drawn = timeline.svg(record(seconds=seconds).history, (T0 * 1000, (T0 + seconds) * 1000))
    assert len(drawn) < 3_000_000
    assert float(re.search(r'width="(\d+)"', drawn)[1]) <= timeline.WIDEST  # type: ignore[index]  # it has a width


def test_two_workers_of_one_slot_get_a_lane_each() -> None:
    history = History.of(
        [
            Born(T0, "u.1", "u", 1),
            Born(T0, "u.2", "u", 2),
            Died(T0 + 1, "u.2", "kill"),
            Born(T0 + 2, "u.3", "u", 3),
        ]
    )
    found = timeline.lanes(history, T0 + 9)
    assert [(lane.name, lane.workers) for lane in found] == [("u", ["u.1"]), ("u-2", ["u.2", "u.3"])]


def test_labels_of_faults_that_follow_closely_do_not_touch() -> None:
    faults = [Fault(T0 + n / 10, T0 + n / 10, "terminate", "a", True, T0, "") for n in range(5)]
    drawn = timeline.svg(History.of(faults), (T0 * 1000, (T0 + 60) * 1000))
    places = [
        (float(x), float(y)) for x, y in re.findall(r'<text x="([\d.]+)" y="([\d.]+)" >terminate', drawn)
    ]
    assert len(places) == 5
    for index, (x, y) in enumerate(places):
        assert all(other_y != y or abs(other_x - x) > 60 for other_x, other_y in places[:index])


@pytest.mark.parametrize(("count", "words"), [(0, "0 faults"), (1, "1 fault"), (1200, "1,200 faults")])
def test_a_number_and_its_noun_agree(count: int, words: str) -> None:
    assert _counted(count, "fault") == words
