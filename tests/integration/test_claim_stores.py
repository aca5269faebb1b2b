"""What every store of claims promises, shown on the real servers: Postgres and Redis alike."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from argus_sched.due_times import every
from argus_sched.errors import ClaimStoreError
from argus_sched.postgres import schema
from argus_sched.postgres.claim_store import PostgresStore
from argus_sched.postgres.embedded import free_port
from argus_sched.scheduling.claims import Batch, ClaimStore, Orphan, Outcome, Result, Verdict, Want
from argus_sched.scheduling.job import Fire, Job, JobRegistry, declare

Open = Callable[[], ClaimStore]
MINUTE = timedelta(minutes=1)
# Redis refuses what is older than its TTL by its own clock, so the due times of the tests are near now.
T = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)
JOBS = [
    declare(lambda: None, every(minutes=1), id="a", now=T),
    declare(lambda: None, every(minutes=1), id="b", on_interrupted="at_least_once", now=T),
    declare(lambda: None, every(minutes=1), id="two", max_instances=2, now=T),
]
HASH = "0123456789abcdef"


def at(minutes: float) -> datetime:
    return T + minutes * MINUTE


@pytest.fixture(scope="session")
def redis_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A real redis-server on a port of its own."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    port, folder = free_port(), tmp_path_factory.mktemp("redis")
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        deadline = time.monotonic() + 30
        while subprocess.run(
            ["redis-cli", "-p", str(port), "ping"], capture_output=True, check=False
        ).returncode:
            assert time.monotonic() < deadline, "redis-server did not start"
            time.sleep(0.05)
        yield port
        server.terminate()


@pytest.fixture(params=["postgres", pytest.param("redis", marks=pytest.mark.redis)])
def open_store(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens stores of new workers in one namespace; a term has begun at T, so every job is answered until T."""
    opened: list[ClaimStore] = []
    made = postgres_store(request) if request.param == "postgres" else redis_store(request)

    def new() -> ClaimStore:
        store = made()
        store.open(JOBS, HASH)
        if not opened:
            store.begin_term(0, JOBS, HASH, T)
        opened.append(store)
        return store

    yield new
    for store in opened:
        with contextlib.suppress(ClaimStoreError):
            store.close()


def postgres_store(request: pytest.FixtureRequest) -> Open:
    dsn = request.getfixturevalue("database")
    return lambda: PostgresStore(dsn, "test", str(uuid.uuid4()), silence=1.0, migrate=True)


def redis_store(request: pytest.FixtureRequest) -> Open:
    from argus_sched.scheduling.redis import RedisStore

    port, namespace = request.getfixturevalue("redis_port"), f"test-{uuid.uuid4()}"
    url = f"redis://127.0.0.1:{port}/0"
    return lambda: RedisStore(url, namespace, str(uuid.uuid4()), silence=1.0)


def batch(*wants: Want, epoch: int = 0) -> Batch:
    return Batch(str(uuid.uuid4()), epoch, wants)


def want(job_id: str, minute: float, **options: Any) -> Want:
    return Want(job_id, at(minute), next_due=at(minute + 1), **options)


def fire(job_id: str, minute: float, attempt: int = 1) -> Fire:
    return Fire(at(minute), job_id, attempt=attempt)


def result(one: Fire, outcome: Outcome = Outcome.SUCCESS, error: str = "") -> Result:
    return Result(one, outcome, one.due, one.due + timedelta(seconds=1), error)


LIMITS = {"a": 3, "b": 3, "two": 3}


def test_a_fire_is_won_once(open_store: Open) -> None:
    one, other = open_store(), open_store()
    assert one.claim(batch(want("a", 1), want("b", 1))) == [Verdict.WON, Verdict.WON]
    assert other.claim(batch(want("a", 1), want("b", 1))) == [Verdict.LOST, Verdict.LOST]
    assert other.claim(batch(want("a", 2, room=2))) == [Verdict.WON]


def test_of_many_who_race_for_many_fires_each_is_won_by_one(open_store: Open) -> None:
    stores = [open_store() for _ in range(4)]
    wants = [replace(want("two", minute + 1), room=1000, rank=minute + 1) for minute in range(50)]
    won: list[datetime] = []
    ready = threading.Barrier(len(stores))

    def race(store: ClaimStore) -> None:
        ready.wait()
        for one in wants:
            if store.claim(batch(replace(one, rank=1))) == [Verdict.WON]:
                won.append(one.due)

    threads = [threading.Thread(target=race, args=[store]) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [one.due for one in wants]


def test_the_watermark_moves_with_the_claim_and_shows_who_is_behind(open_store: Open) -> None:
    store = open_store()
    store.claim(batch(want("a", 1), want("b", 3)))
    view = store.begin_term(0, JOBS, HASH, at(3.5))
    assert view.behind == {"a": at(1), "two": at(0)}
    assert view.changed_from is None


def test_a_new_job_and_a_changed_trigger_start_from_now(open_store: Open) -> None:
    store = open_store()
    changed = declare(lambda: None, every(minutes=2), id="a", now=T)
    new = declare(lambda: None, every(minutes=1), id="new", now=T)
    view = store.begin_term(0, [changed, *JOBS[1:], new], "another", at(5.5))
    assert view.behind == {"b": at(0), "two": at(0)}
    assert view.changed_from == HASH


def test_what_is_given_up_is_answered_for_too(open_store: Open) -> None:
    store = open_store()
    missed = want("a", 3, outcome=Outcome.MISSED, missed=2, reason="expired")
    assert store.claim(batch(missed)) == [Verdict.WON]
    assert "a" not in store.begin_term(0, JOBS, HASH, at(3.5)).behind
    assert store.orphans(timedelta(0)) == []


def test_runs_of_other_workers_count_towards_max_instances(open_store: Open) -> None:
    one, other = open_store(), open_store()
    assert one.claim(batch(want("a", 1), want("two", 1, room=2))) == [Verdict.WON, Verdict.WON]
    verdicts = other.claim(batch(want("a", 2), want("b", 2), want("two", 2, room=2)))
    assert verdicts == [Verdict.OVERLAP, Verdict.WON, Verdict.WON]
    assert other.claim(batch(want("a", 3, waits=True))) == [Verdict.WAIT]
    one.finish([result(fire("a", 1))], LIMITS)
    assert other.claim(batch(want("a", 3, waits=True))) == [Verdict.WON]
    # Own runs are counted by the worker itself: room says how many more there may be.
    assert other.claim(batch(want("b", 3, room=0))) == [Verdict.OVERLAP]


def test_runs_of_one_job_in_one_batch_are_ranked(open_store: Open) -> None:
    store = open_store()
    wants = [want("two", n, room=2, rank=n, waits=True) for n in (1, 2, 3)]
    assert store.claim(batch(*wants)) == [Verdict.WON, Verdict.WON, Verdict.WAIT]
    assert store.begin_term(0, JOBS, HASH, at(3.5)).behind["two"] == at(2)


def test_a_claim_of_unknown_outcome_is_ours_if_our_token_stands(open_store: Open) -> None:
    store, other = open_store(), open_store()
    lost = batch(want("a", 1), want("b", 1))
    assert store.claim(lost) == [Verdict.WON, Verdict.WON]
    assert store.read_again(lost) == [Verdict.WON, Verdict.WON]
    assert other.read_again(replace(lost, token=str(uuid.uuid4()))) == [Verdict.LOST, Verdict.LOST]
    never_sent = batch(want("two", 1, room=2))
    assert other.read_again(never_sent) == [Verdict.WON]


def test_a_fire_given_back_is_taken_over_at_the_same_attempt(open_store: Open) -> None:
    one, other = open_store(), open_store()
    one.claim(batch(want("a", 1)))
    one.give_back([fire("a", 1, attempt=2)])
    assert other.orphans(timedelta(hours=1)) == []
    one.give_back([fire("a", 1)])
    (orphan,) = other.orphans(timedelta(hours=1))
    assert (orphan.fire.key, orphan.dead) == (fire("a", 1).key, False)
    assert other.reclaim([orphan], 0) == [fire("a", 1)]
    assert one.reclaim([orphan], 0) == [None]
    assert other.orphans(timedelta(hours=1)) == []


def test_a_claim_in_doubt_that_was_given_back_meanwhile_is_not_ours_any_more(open_store: Open) -> None:
    store = open_store()
    doubted = batch(want("a", 1))
    store.claim(doubted)
    store.give_back([fire("a", 1)])
    assert store.read_again(doubted) == [Verdict.LOST]


def test_a_batch_in_doubt_is_let_go_by_its_token_alone(open_store: Open) -> None:
    store, other = open_store(), open_store()
    doubted, certain = batch(want("a", 1), want("b", 1)), batch(want("two", 1, room=2))
    store.claim(doubted)
    store.claim(certain)
    store.disown(replace(certain, token=str(uuid.uuid4())))
    store.disown(doubted)
    other.disown(certain)
    found = other.orphans(timedelta(hours=1))
    assert sorted(orphan.fire.job_id for orphan in found) == ["a", "b"]
    assert None not in other.reclaim(found, 0)
    store.disown(doubted)
    assert other.orphans(timedelta(hours=1)) == []


def test_a_given_back_fire_leaves_room_for_the_next(open_store: Open) -> None:
    one, other = open_store(), open_store()
    one.claim(batch(want("a", 1)))
    one.give_back([fire("a", 1)])
    assert other.claim(batch(want("a", 2))) == [Verdict.WON]


def die(store: ClaimStore) -> None:
    """End a worker's sessions as a kill would: nothing is said, and its heartbeat grows old."""
    if isinstance(store, PostgresStore):
        store._claim_link.close()
        store._link.close()
    else:
        store._redis.close()  # type: ignore[attr-defined]  # the Redis store


def wait_for_orphans(store: ClaimStore, dead_after: float) -> list[Orphan]:
    deadline = time.monotonic() + 60
    while not (found := store.orphans(timedelta(seconds=dead_after))):
        assert time.monotonic() < deadline, "the dead worker was not noticed"
        time.sleep(0.05)
    return found


def test_a_run_whose_worker_died_is_interrupted_once(open_store: Open) -> None:
    one, other, third = open_store(), open_store(), open_store()
    one.beat(True)
    one.claim(batch(want("a", 1)))
    assert other.orphans(timedelta(0)) == []
    die(one)
    found = wait_for_orphans(other, 0.5)
    assert [orphan.dead for orphan in found] == [True]
    assert other.interrupt(found) == found
    assert third.interrupt(found) == []
    # It does not count as running any more, and its claim still stands.
    assert other.claim(batch(want("a", 1), want("a", 2))) == [Verdict.LOST, Verdict.WON]


@pytest.mark.parametrize("open_store", ["postgres"], indirect=True)
def test_a_worker_taken_for_dead_may_still_give_back_what_it_never_began(open_store: Open) -> None:
    one, other = open_store(), open_store()
    one.beat(True)
    one.claim(batch(want("a", 1)))
    die(one)
    found = wait_for_orphans(other, 0.5)
    assert other.interrupt(found) == found
    one.give_back([fire("a", 1)])
    (orphan,) = other.orphans(timedelta(hours=1))
    assert other.reclaim([orphan], 0) == [fire("a", 1)]
    one.give_back([fire("a", 1)])
    assert other.orphans(timedelta(hours=1)) == []


def test_a_run_whose_worker_died_may_be_taken_over_at_the_next_attempt(open_store: Open) -> None:
    one, other, third = open_store(), open_store(), open_store()
    one.beat(True)
    one.claim(batch(want("b", 1)))
    die(one)
    found = wait_for_orphans(other, 0.5)
    assert other.reclaim(found, 0) == [fire("b", 1, attempt=2)]
    assert third.reclaim(found, 0) == [None]


def test_claims_whose_answer_never_came_are_found(open_store: Open) -> None:
    store = open_store()
    store.claim(batch(want("a", 1), want("b", 1)))
    assert store.forgotten([fire("a", 1)], timedelta(hours=1)) == []
    deadline = time.monotonic() + 30
    while not (found := store.forgotten([fire("a", 1)], timedelta(seconds=0.05))):
        assert time.monotonic() < deadline
    assert [one.key for one in found] == [fire("b", 1).key]


def test_failures_in_a_row_switch_a_job_off_once(open_store: Open) -> None:
    store = open_store()

    def fail(minute: float, outcome: Outcome = Outcome.ERROR) -> list[Any]:
        store.claim(batch(want("a", minute)))
        return store.finish([result(fire("a", minute), outcome, "ValueError: no")], LIMITS)

    assert fail(1) == []
    assert fail(2, Outcome.TARGET_MISSING) == []
    store.claim(batch(want("a", 3)))
    assert store.finish([result(fire("a", 3))], LIMITS) == []
    assert fail(4) == []
    assert fail(5) == []
    (off,) = fail(6)
    assert (off.job_id, off.failures, off.reason) == ("a", 3, "ValueError: no")
    assert store.disabled() == {"a": "scheduler: ValueError: no"}
    assert store.claim(batch(want("a", 7), want("b", 7))) == [Verdict.DISABLED, Verdict.WON]


def test_failures_within_one_write_count_from_the_last_success(open_store: Open) -> None:
    store = open_store()
    for minute in (1, 2, 3, 4, 5):
        store.claim(batch(want("two", minute, room=9)))
    ends = [Outcome.ERROR, Outcome.ERROR, Outcome.SUCCESS, Outcome.ERROR, Outcome.ERROR]
    results = [result(fire("two", n), end, "x") for n, end in zip((1, 2, 3, 4, 5), ends, strict=True)]
    assert store.finish(results, LIMITS) == []
    store.claim(batch(want("two", 6)))
    assert len(store.finish([result(fire("two", 6), Outcome.ERROR, "x")], LIMITS)) == 1


def test_a_switched_job_starts_from_now_when_it_is_on_again(open_store: Open) -> None:
    store = open_store()
    assert store.switch("a", False, "anna", "the supplier is down", at(2))
    assert not store.switch("a", False, "anna", "again", at(2))
    assert store.disabled() == {"a": "anna: the supplier is down"}
    assert store.claim(batch(want("a", 1))) == [Verdict.DISABLED]
    assert store.switch("a", True, "anna", "", at(9.5))
    assert not store.switch("a", True, "anna", "", at(9.5))
    assert store.begin_term(0, JOBS, HASH, at(9.9)).behind.get("a", at(9.5)) == at(9.5)
    assert store.claim(batch(want("a", 10))) == [Verdict.WON]


def job(job_id: str) -> Job:
    registry = JobRegistry()
    for one in JOBS:
        registry.add(one)
    return registry[job_id]


def test_run_now_is_granted_to_one_and_says_why_to_the_other(open_store: Open) -> None:
    one, other = open_store(), open_store()
    granted = one.run_now(job("a"), at(0.5), "manual:1")
    assert granted.fire == Fire(at(0.5), "a", origin="manual:1")
    refused = other.run_now(job("a"), at(0.6), "manual:2")
    assert (refused.fire, refused.reason) == (None, "already_running")
    assert refused.owner
    assert refused.started_at is not None
    # It counts as a run of the job, and it leaves the schedule's watermark alone.
    assert other.claim(batch(want("a", 1, waits=True))) == [Verdict.WAIT]
    assert one.begin_term(0, JOBS, HASH, at(0.9)).behind == {}
    one.finish([result(granted.fire)], LIMITS)
    assert other.run_now(job("a"), at(0.7), "manual:3").fire is not None


def test_run_now_is_refused_while_the_job_runs_by_schedule_or_is_disabled(open_store: Open) -> None:
    one, other = open_store(), open_store()
    one.claim(batch(want("a", 1)))
    assert other.run_now(job("a"), at(1.5), "manual:1").reason == "already_running"
    other.switch("b", False, "anna", "no", at(1))
    assert one.run_now(job("b"), at(1.5), "manual:2").reason == "disabled"


def test_a_manual_run_whose_worker_died_blocks_nobody_for_long(open_store: Open) -> None:
    one, other = open_store(), open_store()
    one.beat(True)
    one.run_now(job("a"), at(0.5), "manual:1")
    die(one)
    assert other.run_now(job("a"), at(0.6), "manual:2").reason == "already_running"
    other.interrupt(wait_for_orphans(other, 0.5))
    assert other.run_now(job("a"), at(0.7), "manual:3").fire is not None


def test_the_clock_of_the_store_is_near_ours(open_store: Open) -> None:
    assert abs(open_store().beat(True).offset) < 5


def test_workers_with_another_set_of_jobs_are_told_apart(open_store: Open) -> None:
    one, other = open_store(), open_store()
    assert one.other_sets() == []
    other.open(JOBS[:1], "another set")
    assert [found for found, _, _ in one.other_sets()] == ["another set"]


def test_a_leader_that_was_replaced_claims_nothing(database: str) -> None:
    store = PostgresStore(database, "test", str(uuid.uuid4()), silence=1.0, migrate=True)
    store.open(JOBS, HASH)
    store.begin_term(0, JOBS, HASH, T)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO argus_sched.leader (namespace, lock_key, epoch) VALUES ('test', 1, 7)"
        )
        assert store.claim(batch(want("a", 1), epoch=6)) == [Verdict.FENCED]
        assert store.claim(batch(want("a", 1), epoch=7)) == [Verdict.WON]
        store.give_back([fire("a", 1)])
        connection.execute("UPDATE argus_sched.leader SET epoch = 8")
        assert store.reclaim(store.orphans(timedelta(hours=1)), 7) == [None]
    store.close()


def test_old_runs_are_pruned_in_batches_and_open_ones_are_kept(database: str) -> None:
    store = PostgresStore(database, "test", str(uuid.uuid4()), silence=1.0, migrate=True)
    store.open(JOBS, HASH)
    store.begin_term(0, JOBS, HASH, T)
    wants = [want("two", n, room=1000, rank=n) for n in range(1, 11)]
    store.claim(batch(*wants))
    store.finish([result(fire("two", n)) for n in range(1, 10)], LIMITS)
    assert store.prune(timedelta(hours=1), 100) == 0
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE argus_sched.run SET claimed_at = claimed_at - interval '2 hours'")
        assert store.prune(timedelta(hours=1), 6) == 6
        assert store.prune(timedelta(hours=1), 6) == 3
        assert connection.execute("SELECT due FROM argus_sched.run").fetchall() == [(at(10),)]
    store.close()


def test_a_namespace_claims_in_one_store(database: str) -> None:
    from argus_sched.postgres.claim_store import note_store

    schema.migrate(database)
    note_store(database, "test", str(uuid.uuid4()), "redis", migrate=False)
    store = PostgresStore(database, "test", str(uuid.uuid4()), silence=1.0)
    with pytest.raises(
        ClaimStoreError, match="namespace 'test' claims in redis, but this worker is configured"
    ):
        store.open(JOBS, HASH)
    store.close()


@pytest.mark.redis
def test_redis_refuses_a_due_time_that_its_ttl_no_longer_covers(redis_port: int, tmp_path: Path) -> None:
    from argus_sched.scheduling.redis import RedisStore

    store = RedisStore(
        f"redis://127.0.0.1:{redis_port}/0", f"ttl-{uuid.uuid4()}", str(uuid.uuid4()), ttl=600, silence=1.0
    )
    now = datetime.now(UTC)
    store.open(JOBS, HASH)
    store.begin_term(0, JOBS, HASH, now - timedelta(hours=2))
    old, young = now - timedelta(seconds=560), now - timedelta(seconds=500)
    assert store.claim(batch(Want("a", old))) == [Verdict.REFUSED]
    assert store.claim(batch(Want("a", young), Want("b", young))) == [Verdict.WON, Verdict.WON]
    # Not after the watermark, and no claim stands: it may have been granted and forgotten.
    assert store.claim(batch(Want("a", young - timedelta(seconds=1)))) == [Verdict.REFUSED]
    assert store.claim(batch(Want("a", young))) == [Verdict.LOST]
    store.close()


@pytest.mark.redis
def test_redis_that_stands_still_is_given_up_within_its_timeout(tmp_path: Path) -> None:
    import socket

    from argus_sched.scheduling.redis import RedisStore

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        store = RedisStore(url, "x", str(uuid.uuid4()))
        began = time.monotonic()
        with pytest.raises(ClaimStoreError, match="Redis cannot be reached"):
            store.beat(True)
        # One attempt, not ten: redis-py's default would have taken ten times as long.
        assert time.monotonic() - began < 8
