"""Evidence is a sum: whatever the batches, passes and containers, the same lines give the same facts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_sched.agent.instants import rfc3339
from argus_sched.agent.judging.coverage import Span, extend, holes
from argus_sched.agent.judging.evidence import (
    DOUBLES_KEPT,
    MARKS_KEPT,
    RUNS_KEPT,
    STRANGERS_KEPT,
    Evidence,
    combine,
    cover,
    first_seen,
    fold,
    prune,
)
from argus_sched.agent.judging.evidence_json import from_json, to_json
from argus_sched.agent.logevents import Container, Coverage, Cursor, Event, EventKind
from argus_sched.agent.reading.stamps import nanoseconds
from tests.unit.agent.judging.evidence_cases import LONG_AGO, NOON, WEB, ago, event, known, run

KINDS = [kind for kind in EventKind if kind is not EventKind.DEBUG]
events = st.builds(
    lambda kind, stamp, name, fire: Event(
        kind,
        stamp,
        name=name if not kind.value.startswith("scheduler_") else None,
        job_id="id-1" if name is None and kind in (EventKind.REMOVED, EventKind.RESTORE_ERROR) else None,
        trigger=f"interval[0:0{stamp % 7}:00]" if name else None,
        scheduled_at_utc=LONG_AGO + timedelta(seconds=fire) if kind is EventKind.RUNNING else None,
        detail=f"detail {stamp % 3}",
    ),
    st.sampled_from(KINDS),
    st.integers(1, 10_000),
    st.sampled_from(["a", "b → c", None]),
    st.integers(0, 5),
)
logs = st.lists(st.tuples(st.sampled_from(["web-1", "web-2"]), events), max_size=80)


@given(log=logs, seed=st.integers())
def test_any_split_any_order_and_any_repetition_of_lines_gives_the_same_evidence(
    log: list[tuple[str, Event]], seed: int
) -> None:
    chance = random.Random(seed)
    whole = Evidence()
    for container in ("web-1", "web-2"):
        whole = fold(whole, container, [line for where, line in log if where == container])
    pieces = [(where, [line]) for where, line in log]
    chance.shuffle(pieces)
    pieces += chance.choices(pieces, k=3) if pieces else []
    split = Evidence()
    for where, lines in pieces:
        split = fold(split, where, lines)
        if chance.random() < 0.2:
            split = from_json(to_json(split))
    assert without_doubles(split) == without_doubles(whole)
    parts = [fold(Evidence(), where, lines) for where, lines in pieces]
    summed = reduce(combine, parts, Evidence())
    assert without_doubles(summed) == without_doubles(whole)
    assert from_json(to_json(whole)) == whole


def without_doubles(evidence: Evidence) -> Evidence:
    jobs = {name: replace(facts, doubles={}) for name, facts in evidence.jobs.items()}
    return replace(evidence, jobs=jobs)


@given(cuts=st.lists(st.integers(1, RUNS_KEPT // 2), max_size=20), late=st.integers(0, 3))
def test_the_newest_double_fires_are_found_and_kept_however_the_log_was_cut(
    cuts: list[int], late: int
) -> None:
    """Each due time runs in web-1 and up to three runs later in web-2; many single runs follow."""
    fires = [LONG_AGO + timedelta(minutes=n) for n in range(30)]
    log = [("web-1", n, run(fire, fire=fire)) for n, fire in enumerate(fires)]
    log += [("web-2", n + late, run(fire + timedelta(seconds=9), fire=fire)) for n, fire in enumerate(fires)]
    log += [("web-1", n, run(LONG_AGO + timedelta(minutes=n))) for n in range(40, 80)]
    lines = [(where, line) for where, _, line in sorted(log, key=lambda entry: entry[1])]
    evidence = Evidence()
    for cut in [*cuts, *[RUNS_KEPT // 2] * 20]:
        piece, lines = lines[:cut], lines[cut:]
        for where in ("web-1", "web-2"):
            evidence = fold(evidence, where, [line for place, line in piece if place == where])
    doubles = evidence.facts("sync orders").doubles
    assert list(doubles) == [rfc3339(fire) for fire in reversed(fires[-DOUBLES_KEPT:])]
    assert {len(marks) for marks in doubles.values()} == {2}


@given(
    ends=st.lists(st.integers(1, 1000), min_size=1, max_size=12, unique=True),
    gaps=st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_spans_join_where_reads_went_on_and_part_where_lines_were_lost(
    ends: Sequence[int], gaps: Sequence[bool]
) -> None:
    spans: tuple[Span, ...] = ()
    begin, lost = 0, 0
    for end, wanted in zip(sorted(ends), gaps, strict=False):
        gap = wanted and bool(spans)
        begin = begin + 1 if gap else begin
        if begin > end:
            continue
        spans = extend(spans, Coverage(begin, end, reached_end=True, gap=gap))
        lost += gap
        begin = end
    assert len(spans) == lost + 1
    assert sum(hole.to_ns - hole.from_ns for hole in holes(spans, 0, spans[-1].to_ns)) == lost


def test_what_a_read_did_not_reach_is_a_hole_at_each_end() -> None:
    spans = (Span(10, 20), Span(30, 40))
    assert list(holes(spans, 0, 50)) == [Span(0, 10), Span(20, 30), Span(40, 50)]
    assert list(holes(spans, 12, 35)) == [Span(20, 30)]
    assert list(holes(spans, 25, 28)) == [Span(25, 28)]
    assert list(holes((), 5, 6)) == [Span(5, 6)]
    assert list(holes(spans, 31, 40)) == []


def test_only_the_newest_marks_are_kept_whatever_the_length_of_the_log() -> None:
    lines = [run(ago(seconds=n)) for n in range(500)]
    lines += [event(EventKind.FAILED, ago(seconds=n)) for n in range(500)]
    facts = known(lines).facts("sync orders")
    assert len(facts.of(EventKind.RUNNING)) == RUNS_KEPT
    assert len(facts.of(EventKind.FAILED)) == MARKS_KEPT
    assert facts.last_run is not None
    assert facts.last_run.stamp_ns == nanoseconds(NOON)
    assert facts.first_ns == nanoseconds(ago(seconds=499))


def test_a_hundred_thousand_names_leave_the_watched_and_the_newest() -> None:
    lines = [run(ago(seconds=n), f"job {n}") for n in range(3000)]
    pruned = prune(known(lines), {"job 2999"})
    assert len(pruned.jobs) == STRANGERS_KEPT + 1
    assert {"job 0", "job 2999"} <= pruned.jobs.keys()
    assert len(to_json(pruned)) < 100_000


def test_containers_that_exist_stay_however_many_are_gone() -> None:
    evidence = known([])
    for number in range(300):
        old = Container(f"old-{number}", "x", "x", None, running=False)
        evidence = cover(evidence, old, Coverage(number, number + 1, reached_end=True), None)
    kept = prune(evidence, (), {WEB.key, "old-0"}).containers
    assert {WEB.key, "old-0", "old-299"} <= kept.keys()
    assert len(kept) < 300


def test_facts_under_a_name_and_under_an_id_are_one_job() -> None:
    evidence = known([run(ago(minutes=5)), event(EventKind.RUN_ERROR, ago(minutes=1), None, job_id="sync")])
    both = evidence.facts("sync orders", "sync")
    assert len(both.of(EventKind.RUNNING)) == len(both.of(EventKind.RUN_ERROR)) == 1
    assert evidence.facts("sync orders", "sync orders") == evidence.facts("sync orders")
    assert evidence.facts("nobody").last_run is None


def test_the_first_sight_of_a_job_is_never_moved() -> None:
    evidence = first_seen(Evidence(), ["a"], ago(days=1))
    evidence = first_seen(evidence, ["a", "b"], NOON)
    assert evidence.first_sight == {"a": ago(days=1), "b": NOON}
    assert prune(evidence, {"b"}).first_sight == {"b": NOON}


def test_a_first_sight_from_the_future_begins_anew_so_that_a_clock_set_back_hides_no_dead_job() -> None:
    evidence = first_seen(Evidence(), ["b"], NOON + timedelta(minutes=50))
    evidence = replace(evidence, first_sight={**evidence.first_sight, "a": NOON + timedelta(days=1000)})
    assert first_seen(evidence, ["a", "b"], NOON).first_sight == {
        "a": NOON,
        "b": NOON + timedelta(minutes=50),
    }


def test_a_recreated_container_is_read_from_its_start_and_does_not_join_on() -> None:
    reach = Coverage(0, 100, reached_end=True)
    evidence = cover(Evidence(), WEB, reach, Cursor(90, 1))
    assert evidence.cursor(WEB) == Cursor(90, 1)
    assert cover(evidence, WEB, reach, None).cursor(WEB) == Cursor(90, 1)
    reborn = Container(WEB.key, "c2", WEB.name, NOON, running=True)
    assert evidence.cursor(reborn) is None
    evidence = cover(evidence, reborn, Coverage(130, 150, reached_end=True), Cursor(140, 1))
    assert evidence.containers[WEB.key].spans == (Span(0, 100), Span(130, 150))
    assert evidence.cursor(WEB) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 99}', '{"format": 1, "jobs": 3}'])
def test_text_that_is_no_evidence_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"evidence|Expecting"):
        from_json(text)
