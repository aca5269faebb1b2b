"""What a round of fires decides, as a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argus_sched.due_times import every
from argus_sched.scheduling.claims import Orphan, Outcome, Want
from argus_sched.scheduling.decisions import MOST_WANTS, Look, Seen, decide
from argus_sched.scheduling.job import Fire, Job, declare

T = datetime(2026, 3, 14, 10, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return T + timedelta(minutes=minutes)


def job(job_id: str = "a", **options: Any) -> Job:
    return declare(lambda: None, every(minutes=1), id=job_id, now=T, **options)


def seen(one: Job, after: float, now: float, running: int = 0) -> Seen:
    return Seen(one, at(after), at(now), running)


def look(*jobs: Seen, now: float, free: int = 10, **options: Any) -> Look:
    return Look(now=at(now), term_start=at(-60), free=free, jobs=jobs, **options)


def run(job_id: str, minute: float, **options: Any) -> Want:
    return Want(job_id, at(minute), next_due=at(minute + 1), **options)


def test_a_due_job_wants_to_run() -> None:
    decision = decide(look(seen(job(), 0, 1), now=1))
    assert decision.wants == (run("a", 1),)
    assert decision.done == ("a",)


def test_a_job_that_is_not_due_needs_no_further_look() -> None:
    decision = decide(look(seen(job(), 0, 0.5), now=0.5))
    assert (decision.wants, decision.done) == ((), ("a",))


def test_a_late_job_runs_once_and_answers_for_the_rest() -> None:
    decision = decide(look(seen(job(), 0, 5.5), now=5.5))
    assert decision.wants == (run("a", 5, missed=4, reason="coalesced"),)


def test_a_job_that_wants_every_due_time_runs_them_one_after_the_other() -> None:
    decision = decide(look(seen(job(catch_up="all"), 0, 3.5), now=3.5))
    assert decision.wants == (run("a", 1, waits=True),)
    assert decision.done == ()


def test_with_room_for_more_they_run_together_in_order() -> None:
    decision = decide(look(seen(job(catch_up="all", max_instances=2), 0, 3.5), now=3.5))
    assert decision.wants == (
        run("a", 1, waits=True, room=2, rank=1),
        run("a", 2, waits=True, room=2, rank=2),
    )


def test_a_running_job_is_skipped_and_that_is_on_record() -> None:
    decision = decide(look(seen(job(), 0, 1, running=1), now=1))
    assert decision.wants == (run("a", 1, outcome=Outcome.SKIPPED_OVERLAP),)
    assert decision.done == ("a",)


def test_a_running_job_that_wants_every_due_time_waits() -> None:
    decision = decide(look(seen(job(catch_up="all"), 0, 1, running=1), now=1))
    assert (decision.wants, decision.done) == ((), ())


def test_what_is_too_old_is_missed_and_that_is_on_record() -> None:
    one = job(catch_up_window=timedelta(minutes=10))
    decision = decide(look(seen(one, 0, 3.5), now=30))
    assert decision.wants == (run("a", 3, outcome=Outcome.MISSED, missed=2, reason="expired"),)


def test_no_more_is_claimed_than_there_are_free_slots() -> None:
    jobs = [seen(job(name), 0, 1) for name in ("a", "b", "c")]
    decision = decide(look(*jobs, now=1, free=2))
    assert [want.job_id for want in decision.wants] == ["a", "b"]
    assert decide(look(*jobs, now=1, free=0)).wants == ()


def test_a_batch_is_bounded() -> None:
    jobs = [seen(job(f"j{n}"), 0, 1) for n in range(MOST_WANTS + 5)]
    assert len(decide(look(*jobs, now=1, free=10**6)).wants) == MOST_WANTS


def orphan(job_id: str, minute: float) -> Orphan:
    return Orphan(Fire(at(minute), job_id), "w", dead=False, claimed_at=at(minute))


def test_orphans_come_first_and_take_slots_and_room() -> None:
    decision = decide(
        look(seen(job(), 0, 1), seen(job("b"), 0, 1), now=1, free=2, orphans=((orphan("a", 0), 1),))
    )
    assert decision.orphans == (orphan("a", 0),)
    # Job a has its one run; its new due time is looked at again in the next round.
    assert [want.job_id for want in decision.wants] == ["b"]


def test_an_orphan_without_room_waits() -> None:
    assert decide(look(now=1, orphans=((orphan("a", 0), 0),))).orphans == ()


@pytest.mark.parametrize(("running", "starts"), [(0, 1), (1, 0)])
def test_a_first_run_after_the_start_has_a_key_of_its_own(running: int, starts: int) -> None:
    decision = decide(look(now=1, starts=((job(), at(0.5), running),), start_origin="start:x"))
    assert [(want.origin, want.due, want.next_due) for want in decision.wants] == [
        ("start:x", at(0.5), None)
    ] * starts


def test_orphans_of_one_job_do_not_exceed_its_room() -> None:
    both = ((orphan("a", 0), 1), (orphan("a", 1), 1))
    assert len(decide(look(now=1, orphans=both)).orphans) == 1
