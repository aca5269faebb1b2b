"""The facade over a real database: start, stop, status, steering, and every trouble with its one message."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from psycopg import sql

from argus_sched import (
    Fire,
    JobError,
    Scheduler,
    SchedulerError,
    SchemaError,
    SettingsError,
    Timing,
    cron,
    every,
    once,
)
from argus_sched.postgres import schema
from argus_sched.postgres.embedded import EmbeddedPostgres, free_port
from argus_sched.scheduling.apscheduler_engine import RUN_LOGGER
from argus_sched.scheduling.leadership import Role
from tests.workers.pgbouncer import pgbouncer
from tests.workers.scheduler_cluster import ROOT, until

KEYS = """
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 911000001 AND granted AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
New = Callable[..., Scheduler]


@pytest.fixture
def new(database: str) -> Iterator[New]:
    """Makes schedulers over the test's database, and stops them."""
    made: list[Scheduler] = []

    def make(dsn: str = database, **options: Any) -> Scheduler:
        settings: dict[str, Any] = {"namespace": "test", "timing": Timing.fast(), "migrate": True, **options}
        scheduler = Scheduler(dsn, **settings)
        made.append(scheduler)
        return scheduler

    yield make
    for scheduler in made:
        scheduler.stop(timeout=5)


def ask(dsn: str, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query.encode(), parameters)
        return cursor.fetchall() if cursor.description else []


def leads(scheduler: Scheduler) -> bool:
    status = scheduler.status()
    return status.role is Role.LEADER and status.firing


def counting(scheduler: Scheduler, job_id: str = "tick", seconds: float = 0.2, **options: Any) -> list[Fire]:
    """Declare a job that keeps its fires."""
    fires: list[Fire] = []
    scheduler.add_job(fires.append, every(seconds=seconds), id=job_id, **options)
    return fires


# What the specification's own tests show.


def test_of_two_that_are_started_one_engine_is_open_and_one_gated(new: New) -> None:
    one, other = new(), new()
    ran = [counting(one), counting(other)]
    one.start()
    until("a leader", lambda: leads(one))
    other.start()
    until("a standby", lambda: other.status().role in (Role.STANDBY, Role.HEIR))
    machine = other._machine
    assert machine is not None
    until("the standby's engine", lambda: machine.engine.problem() == "")
    before = machine.engine.next_run("tick")
    until("the standby's due times stay current", lambda: machine.engine.next_run("tick") != before)
    until("runs", lambda: len(ran[0]) > 3)
    assert ran[1] == []
    assert not other.status().firing


def test_a_guarded_job_runs_its_body_when_the_lock_is_free(new: New, database: str) -> None:
    scheduler = new()
    ran = counting(scheduler)
    scheduler.start()
    until("a run", lambda: ran)
    fire = ran[0]
    assert fire.due.tzinfo is UTC
    assert (fire.job_id, fire.epoch, fire.attempt, fire.origin) == ("tick", 1, 1, "schedule")
    assert fire.due.timestamp() * 10 % 2 == 0
    assert ask(database, KEYS) == [(1,)]
    assert scheduler.stop()
    assert ask(database, KEYS) == [(0,)]


def test_a_stopped_leader_lets_a_new_one_in(new: New) -> None:
    one, other = new(), new()
    ran = [counting(one), counting(other)]
    one.start()
    until("a leader", lambda: leads(one))
    other.start()
    one.stop()
    until("the other leads", lambda: leads(other))
    until("runs of the other", lambda: ran[1])
    assert ran[1][0].epoch == 2
    assert {fire.due for fire in ran[0]} & {fire.due for fire in ran[1]} == set()


def test_a_leader_whose_lock_connection_is_terminated_demotes(new: New, database: str) -> None:
    scheduler = new(candidate=True)
    counting(scheduler)
    heard: list[tuple[str, Any]] = []
    scheduler._listener = lambda event, fields: heard.append((event, fields))
    scheduler.start()
    until("a leader", lambda: leads(scheduler))
    # Held by another before the leader can win it back, the key shows that the old session is gone.
    with psycopg.connect(database, autocommit=True) as other:
        waiting = threading.Thread(target=lambda: other.execute("SELECT pg_advisory_lock(911000001)"))
        waiting.start()
        until(
            "the other waits", lambda: ask(database, KEYS.replace("AND granted", "AND NOT granted")) == [(1,)]
        )
        term = scheduler.status().term
        assert term is not None
        ask(database, "SELECT pg_terminate_backend(%s)", term.backend_pid)
        until("the demotion", lambda: any(event == "demoted" for event, _ in heard))
        waiting.join(30)
        assert scheduler.status().role is not Role.LEADER
        assert not scheduler.status().firing
        assert ask(database, KEYS) == [(1,)]
    cause = next(fields["cause"] for event, fields in heard if event == "demoted")
    assert cause == "terminated"
    until("it leads again once the key is free", lambda: leads(scheduler))


def test_a_transaction_level_lock_is_released_by_a_commit_and_guards_no_job(database: str) -> None:
    with psycopg.connect(database) as holder:
        holder.execute("SELECT pg_advisory_xact_lock(77)")
        assert ask(database, "SELECT pg_try_advisory_lock(77)") == [(False,)]
        holder.commit()
        assert ask(database, "SELECT pg_try_advisory_lock(77)") == [(True,)]
    sources = [path.read_text() for path in (ROOT / "argus_sched" / "scheduling").rglob("*.py")]
    sources += [path.read_text() for path in (ROOT / "argus_sched" / "postgres").rglob("*.py")]
    assert not any("advisory_xact_lock" in source for source in sources)


# The life of a scheduler.


def test_starting_twice_is_one_scheduler_and_stopping_twice_is_fine(new: New) -> None:
    scheduler = new()
    ran = counting(scheduler)
    scheduler.start()
    machine = scheduler._machine
    scheduler.start()
    assert scheduler._machine is machine
    until("runs", lambda: len(ran) > 2)
    assert len({fire.due for fire in ran}) == len(ran)
    assert scheduler.stop()
    assert scheduler.stop()
    assert scheduler.status().role is Role.STOPPED


def test_it_can_be_started_again(new: New) -> None:
    scheduler = new()
    ran = counting(scheduler)
    for _ in range(2):
        scheduler.start()
        until("a run", lambda: len(ran) > 1)
        scheduler.stop()
        ran.clear()


def test_a_clean_stop_waits_for_runs_and_records_them(new: New, database: str) -> None:
    scheduler = new()
    begun = threading.Event()

    def slow() -> None:
        begun.set()
        time.sleep(0.5)

    scheduler.add_job(slow, every(seconds=0.2), id="slow")
    scheduler.start()
    assert begun.wait(30)
    assert scheduler.stop(timeout=20)
    assert ask(database, "SELECT count(*) FROM argus_sched.run WHERE finished_at IS NULL") == [(0,)]
    assert ask(database, "SELECT count(*) FROM argus_sched.worker WHERE stopped_at IS NULL") == [(0,)]


def test_a_stop_that_cannot_wait_any_longer_says_so(new: New) -> None:
    scheduler = new()
    begun, hold = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        hold.wait(30)

    scheduler.add_job(hang, every(seconds=0.2), id="hang")
    scheduler.start()
    assert begun.wait(30)
    assert not scheduler.stop(timeout=0.1)
    hold.set()


def test_lifespan_and_cleanup_context_start_and_stop(new: New) -> None:
    one, other = new(namespace="one"), new(namespace="other", key=5)
    ran = [counting(one), counting(other)]

    async def serve() -> None:
        async with one.lifespan(object()):
            context = other.cleanup_ctx(object())
            await anext(context)
            while not (ran[0] and ran[1]):
                await asyncio.sleep(0.02)
            with pytest.raises(StopAsyncIteration):
                await anext(context)

    asyncio.run(asyncio.wait_for(serve(), 60))
    assert (one.status().role, other.status().role) == (Role.STOPPED, Role.STOPPED)


def test_a_forked_child_neither_leads_nor_ends_the_parents_session(new: New, tmp_path: Path) -> None:
    scheduler = new()
    ran = counting(scheduler)
    scheduler.start()
    until("a leader", lambda: leads(scheduler))
    said = tmp_path / "child"
    child = os.fork()
    if child == 0:
        status = scheduler.status()
        said.write_text(f"{status.role}|{status.problem}")
        os._exit(0)
    os.waitpid(child, 0)
    assert said.read_text() == "stopped|started before a fork: call start() in this process"
    before = len(ran)
    until("the parent goes on", lambda: len(ran) > before + 2)
    assert scheduler.status().epoch == 1


def test_leader_services_run_on_the_leader_alone(new: New) -> None:
    log: list[str] = []

    class Bot:
        def __init__(self, name: str) -> None:
            self.name = name

        def start(self) -> None:
            log.append(f"start {self.name}")

        def stop(self) -> None:
            log.append(f"stop {self.name}")

    one, other = new(), new()
    for name, scheduler in (("one", one), ("other", other)):
        scheduler.leader_service("bot", Bot(name))
    one.start()
    until("the first starts its bot", lambda: log == ["start one"])
    other.start()
    until("a standby", lambda: other.status().role in (Role.STANDBY, Role.HEIR))
    assert one.status().services == ("bot",)
    one.stop()
    until("the second starts its bot", lambda: log == ["start one", "stop one", "start other"])


# Steering.


def test_run_now_runs_once_and_leaves_the_schedule_alone(new: New, database: str) -> None:
    scheduler = new()
    hold, ran = threading.Event(), list[Fire]()

    def body(fire: Fire) -> None:
        ran.append(fire)
        hold.wait(30)

    scheduler.add_job(body, every(days=400), id="rare", name="Rare job")
    scheduler.start()
    until("a leader", lambda: leads(scheduler))
    before = ask(database, "SELECT watermark FROM argus_sched.job")
    answer = scheduler.run_now("rare")
    assert answer.fire is not None
    until("the run", lambda: ran)
    refused = scheduler.run_now("rare")
    assert (refused.fire, refused.reason) == (None, "already_running")
    assert refused.retry_after is not None
    assert refused.owner.endswith(f":{os.getpid()}")
    hold.set()
    until("its end", lambda: ask(database, "SELECT outcome FROM argus_sched.run") == [("success",)])
    assert ask(database, "SELECT watermark FROM argus_sched.job") == before
    assert ran[0].origin.startswith("manual:")
    scheduler.disable("rare", by="anna", reason="no")
    assert scheduler.run_now("rare").reason == "disabled"
    with pytest.raises(JobError, match="no job with the id 'unknown'"):
        scheduler.run_now("unknown")


def test_switching_a_job_off_and_on_is_heard_by_every_worker_and_logged(
    new: New, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "argus_sched.scheduling.jobs")
    one, other = new(), new()
    ran = counting(one, name="Tick")
    counting(other, name="Tick")
    one.start()
    until("runs", lambda: ran)
    other.start()
    until("the other can write", lambda: other._machine is not None and other._machine.supervisor.booted)
    assert other.pause("tick", by="anna", reason="migration")
    assert not one.pause("tick", by="anna", reason="again")
    time.sleep(0.5)  # what was under way when the job was switched off ends
    ran.clear()
    time.sleep(1.0)  # five due times
    assert ran == []
    assert one.enable("tick", by="ben", reason="done")
    until("it runs again", lambda: ran)
    assert other.disable("tick", by="anna", reason="the supplier is down")
    lines = [record.getMessage() for record in caplog.records if record.name.endswith("jobs")]
    assert lines == [
        'Job "Tick" (id=tick) paused by anna: migration',
        'Job "Tick" (id=tick) enabled by ben',
        'Job "Tick" (id=tick) disabled by anna: the supplier is down',
    ]
    for by, reason in (("", "x"), (None, "x"), ("anna", None), ("anna", "\x00")):
        with pytest.raises(JobError, match=r"names nobody|cannot be kept"):
            one.pause("tick", by=by, reason=reason)
    audit = ask(database, "SELECT enabled, who, reason FROM argus_sched.job_switch ORDER BY id")
    assert audit == [
        (False, "anna", "migration"),
        (True, "ben", "done"),
        (False, "anna", "the supplier is down"),
    ]


def test_a_job_that_fails_three_times_in_a_row_is_switched_off_with_one_alert(
    new: New, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    alerts: list[tuple[str, str]] = []
    scheduler = new(on_auto_disable=lambda job, off: alerts.append((job.id, off.reason)))

    def fail() -> None:
        raise ValueError("no")

    scheduler.add_job(fail, every(seconds=0.2), id="bad", name="Bad job")
    scheduler.start()
    until("the alert", lambda: alerts)
    assert alerts == [("bad", "ValueError: no")]
    assert 'Job "Bad job" (id=bad) auto-disabled after 3 failures in a row: ValueError: no' in caplog.text
    assert ask(database, "SELECT count(*) FROM argus_sched.run WHERE outcome = 'error'")[0][0] >= 3
    assert scheduler.enable("bad", by="anna")
    until("it is switched off again", lambda: len(alerts) == 2)


def test_resigning_lets_another_lead(new: New) -> None:
    one, other = new(), new()
    for scheduler in (one, other):
        counting(scheduler)
    one.start()
    until("a leader", lambda: leads(one))
    other.start()
    until("a standby", lambda: other.status().role in (Role.STANDBY, Role.HEIR))
    one.resign(cooldown=30)
    until("the other leads", lambda: leads(other))
    assert one.status().role is not Role.LEADER


def test_status_and_metrics_tell_what_this_worker_is(new: New) -> None:
    scheduler = new()
    ran = counting(scheduler, name="Tick")
    registry = CollectorRegistry()
    registry.register(scheduler.metrics())
    assert 'argus_scheduler_leader{namespace="test"} 0.0' in generate_latest(registry).decode()
    scheduler.start()
    until("runs", lambda: len(ran) > 2)
    status = scheduler.status()
    assert (status.role, status.epoch, status.problem, status.unguarded) == (Role.LEADER, 1, "", False)
    assert status.trusted_until > time.clock_gettime(time.CLOCK_BOOTTIME)
    (job,) = status.jobs
    assert (job.id, job.name, job.trigger) == ("tick", "Tick", "interval[0:00:00.200000]")
    assert job.next_run is not None
    assert job.next_run > datetime.now(UTC) - timedelta(seconds=1)
    text = generate_latest(registry).decode()
    assert 'argus_scheduler_leader{namespace="test"} 1.0' in text
    assert 'argus_scheduler_leader_changes_total{cause="elected",namespace="test"} 1.0' in text
    assert 'argus_scheduler_promotion_seconds_count{namespace="test"} 1.0' in text
    assert 'argus_scheduler_tick_seconds_count{namespace="test"} 0.0' not in text


@pytest.mark.prometheus
@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_has_no_complaint_about_the_metrics(new: New) -> None:
    registry = CollectorRegistry()
    registry.register(new().metrics())
    text = generate_latest(registry)
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_line_of_a_run_is_apschedulers_and_only_real_runs_print_it(
    new: New, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, RUN_LOGGER)
    one, other = new(), new()
    ran = counting(one, name="Tick → tock"), counting(other, name="Tick → tock")
    one.start()
    other.start()
    until("runs", lambda: len(ran[0]) + len(ran[1]) > 4)
    one.stop()
    other.stop()
    lines = [record.getMessage() for record in caplog.records if record.msg.startswith("Running job")]
    assert len(lines) == len(ran[0]) + len(ran[1])
    head = 'Running job "Tick → tock (trigger: interval[0:00:00.200000], next run at: '
    assert all(line.startswith(head) for line in lines)
    assert len({line.rpartition("(scheduled at ")[2] for line in lines}) == len(lines)


# Trouble, each with its one message; none of it raises out of start().


def problem(scheduler: Scheduler) -> str:
    scheduler.start()
    return str(until("a reason", lambda: scheduler.status().problem))


def test_missing_tables(new: New) -> None:
    scheduler = new(migrate=False)
    counting(scheduler)
    assert "are missing in database" in problem(scheduler)
    assert "argus-sched scheduler migrate" in problem(scheduler)


def test_tables_that_vanish_under_way_are_told_and_nothing_runs_twice(
    new: New, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = new()
    ran = counting(scheduler, catch_up="all")
    scheduler.start()
    until("runs", lambda: len(ran) > 2)
    ask(database, "ALTER TABLE argus_sched.run RENAME TO run_away")
    told = str(until("a reason", lambda: scheduler.status().problem))
    assert 'relation "argus_sched.run" does not exist' in told
    assert "run  argus-sched scheduler migrate" in told
    time.sleep(1)  # five due times
    ask(database, "ALTER TABLE argus_sched.run_away RENAME TO run")
    before = len(ran)
    until("runs again", lambda: len(ran) > before + 8)
    assert scheduler.status().problem == ""
    dues = [fire.due for fire in ran]
    gaps = {later - earlier for earlier, later in itertools.pairwise(sorted(dues))}
    assert gaps == {timedelta(seconds=0.2)}
    assert caplog.text.count("nothing fires:") == 1


def test_tables_that_were_dropped_and_made_anew_are_filled_again(new: New, database: str) -> None:
    scheduler = new()
    ran = counting(scheduler)
    scheduler.start()
    until("runs", lambda: len(ran) > 2)
    ask(database, "DROP SCHEMA argus_sched CASCADE")
    until("a reason", lambda: scheduler.status().problem)
    schema.migrate(database)
    before = len(ran)
    until("runs again", lambda: len(ran) > before + 2)
    assert len({fire.due for fire in ran}) == len(ran)
    assert scheduler.status().problem == ""


def test_it_starts_by_itself_once_the_trouble_is_over(new: New, database: str) -> None:
    scheduler = new(migrate=False)
    ran = counting(scheduler)
    assert problem(scheduler)
    schema.migrate(database)
    until("runs", lambda: ran)
    assert scheduler.status().problem == ""


def test_older_and_newer_tables(new: New, database: str) -> None:
    schema.migrate(database)
    ask(database, "INSERT INTO argus_sched.migration (number, name) VALUES (9999, 'later')")
    scheduler = new(migrate=False)
    counting(scheduler)
    assert "are newer (migration 9999) than this version knows" in problem(scheduler)
    scheduler.stop()
    ask(database, "DELETE FROM argus_sched.migration WHERE number <> 1")
    scheduler = new(migrate=False)
    counting(scheduler)
    assert "migration(s) behind this version" in problem(scheduler)


@pytest.fixture
def plain_role(postgres: EmbeddedPostgres, database: str) -> Iterator[str]:
    """The DSN of a role that owns nothing."""
    name = sql.Identifier("plain_role")
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
        yield database.replace("postgres@", "plain_role@")
        with psycopg.connect(database, autocommit=True) as own:
            own.execute(sql.SQL("DROP OWNED BY {}").format(name))
        connection.execute(sql.SQL("DROP ROLE {}").format(name))


def test_a_role_without_rights(new: New, database: str, plain_role: str) -> None:
    schema.migrate(database)
    scheduler = new(plain_role, migrate=True)
    counting(scheduler)
    assert "role plain_role may not read and write argus_sched" in problem(scheduler).replace('"', "")
    assert "GRANT USAGE ON SCHEMA argus_sched TO" in problem(scheduler)
    scheduler.stop()
    ask(database, "GRANT USAGE ON SCHEMA argus_sched TO plain_role")
    ask(database, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA argus_sched TO plain_role")
    ran = counting(again := new(plain_role, migrate=True))
    again.start()
    until("runs", lambda: ran)
    again.stop()


def test_a_role_that_may_not_create_the_tables(new: New, plain_role: str) -> None:
    scheduler = new(plain_role, migrate=True)
    counting(scheduler)
    assert "role plain_role may not create the tables of argus-sched" in problem(scheduler)


@pytest.mark.pgbouncer
@pytest.mark.parametrize("coordination", ["leader", "every_worker"])
def test_a_pooler_is_refused_and_nothing_of_ours_stays_in_its_session(
    new: New, database: str, postgres: EmbeddedPostgres, coordination: str
) -> None:
    with pgbouncer(postgres.port, "transaction") as port:
        pooled = database.replace(f":{postgres.port}/", f":{port}/")
        with pytest.raises(SchemaError, match="pooler such as pgbouncer"):
            schema.migrate(pooled)
        schema.migrate(database)
        scheduler = new(pooled, coordination=coordination)
        ran = counting(scheduler)
        assert "is reached through a connection pooler such as pgbouncer" in problem(scheduler)
        with psycopg.connect(pooled, autocommit=True) as next_user:
            for setting in ("statement_timeout", "idle_session_timeout"):
                assert next_user.execute(f"SHOW {setting}".encode()).fetchone() == ("0",)
        assert ask(database, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]
        assert ran == []
        scheduler.stop()


def test_another_namespace_on_the_same_key(new: New) -> None:
    one, other = new(), new(namespace="other")
    counting(one)
    counting(other)
    one.start()
    until("a leader", lambda: leads(one))
    assert "advisory key 911000001 belongs to namespace 'test'" in problem(other)


def test_a_claim_store_that_differs_from_the_namespaces(new: New, database: str) -> None:
    schema.migrate(database)
    ask(database, "INSERT INTO argus_sched.namespace (namespace, claim_store) VALUES ('test', 'redis')")
    scheduler = new()
    counting(scheduler)
    assert "namespace 'test' claims in redis, but this worker is configured for postgres" in problem(
        scheduler
    )


def test_a_set_of_jobs_that_differs_between_workers(new: New, caplog: pytest.LogCaptureFixture) -> None:
    one, other = new(), new()
    counting(one)
    counting(other)
    counting(other, "second")
    one.start()
    until("a leader", lambda: leads(one))
    other.start()
    text = "declares another set of jobs"
    until("a warning", lambda: text in caplog.text)
    assert "must run the same code, so finish the deployment" in caplog.text
    assert caplog.text.count(text) <= 2


def test_a_database_that_is_away_and_comes_back(tmp_path: Path, new: New) -> None:
    with EmbeddedPostgres() as server:
        server.stop()
        scheduler = new(server.dsn())
        ran = counting(scheduler)
        assert "cannot be reached" in problem(scheduler)
        assert ran == []
        server.start()
        until("runs", lambda: ran)
        scheduler.stop()


def test_outside_production_jobs_run_unguarded_while_the_store_is_away(
    new: New, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argus_sched.scheduling.fallback.PATIENCE", 0.5)
    with EmbeddedPostgres() as server:
        server.stop()
        scheduler = new(server.dsn(), environment="development")
        ran = counting(scheduler)
        scheduler.start()
        until("an unguarded run", lambda: ran)
        assert scheduler.status().unguarded
        assert ran[0].epoch == 0
        text = "jobs run unguarded and unclaimed here"
        assert caplog.text.count(text) == 1
        server.start()
        until("a guarded run", lambda: ran[-1].epoch == 1)
        assert not scheduler.status().unguarded
        assert caplog.text.count(text) == 1
        scheduler.stop()


def test_a_worker_without_jobs_does_not_lead(new: New) -> None:
    assert "declares neither a job nor a leader service" in problem(new())


def test_declarations_are_refused_where_they_are_written_outside_production(new: New) -> None:
    scheduler = new(environment="development")
    counting(scheduler, "a")
    with pytest.raises(JobError, match="the job id 'a' is used twice"):
        scheduler.job(every(minutes=1), id="a")(lambda: None)


def test_in_production_a_wrong_declaration_costs_that_job_only(
    new: New, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = new()
    ran = counting(scheduler, "a")

    @scheduler.job(every(minutes=1), id="a")
    def twice() -> None: ...

    assert callable(twice)
    assert "a job is left out: the job id 'a' is used twice" in caplog.text
    scheduler.start()
    until("runs of the other", lambda: ran)
    assert scheduler.status().problems == ("the job id 'a' is used twice: give each job its own id=",)


def body() -> None: ...


Declare = Callable[[Scheduler], object]
WRONG_PARTS: list[tuple[Declare, type[Exception], str]] = [
    (lambda s: s.job(every(minutes=0))(body), JobError, "an interval must be longer than zero"),
    (lambda s: s.add_job(body, every(minute=1)), JobError, "unexpected keyword argument 'minute'"),
    (lambda s: s.job(cron("0 0 31 2 *"))(body), JobError, "names a day that never comes"),
    (lambda s: s.job(cron("61 * * * *"))(body), JobError, "61"),
    (lambda s: s.job(cron("* * * * * *"))(body), JobError, "6 fields"),
    (lambda s: s.job(once(datetime(2026, 1, 1)))(body), JobError, "has no zone"),
    (lambda s: s.job(body), JobError, "write @scheduler.job(every(...))"),
    (lambda s: s.add_job(body, every(minutes=1), jittr=5), JobError, "has the option 'jittr', which is none"),
    (
        lambda s: s.leader_service("bot", object()),
        SettingsError,
        "leader service 'bot', a object, has no start()",
    ),
]
WRONG_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"timing": Timing(lease=1.0)}, "unsafe timing: tick + tick_timeout < 0.8 x lease"),
    ({"dsn": None}, "needs a DSN"),
    ({"namespace": ""}, "namespace ''"),
    ({"treads": 5}, "a scheduler has no option 'treads'"),
    ({"key": 2**70}, "use a whole number of 64 bits"),
]


def of(environment: str, **options: Any) -> Scheduler:
    told: dict[str, Any] = {"dsn": "postgresql://127.0.0.1:1/x", "namespace": "x", **options}
    return Scheduler(told.pop("dsn"), environment=environment, **told)


@pytest.mark.parametrize(("declare", "error", "said"), WRONG_PARTS)
def test_a_wrong_part_raises_where_it_is_declared_and_in_production_is_left_out(
    declare: Declare, error: type[Exception], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(error) as caught:
        declare(of("test"))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    scheduler = of("production")
    declare(scheduler)
    assert scheduler.problems == [str(caught.value)]
    assert f"is left out: {caught.value}" in caplog.text
    assert scheduler.jobs == []


@pytest.mark.parametrize(("options", "said"), WRONG_SETTINGS)
def test_wrong_settings_raise_and_in_production_the_application_boots_without_a_scheduler(
    options: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SettingsError) as caught:
        of("test", **options)
    assert said in str(caught.value)
    scheduler = of("production", **options)
    scheduler.job(every(minutes=1))(body)
    scheduler.start()
    assert f"the scheduler is not running: {caught.value}" in caplog.text
    status = scheduler.status()
    assert (status.role, status.problem, status.problems) == (
        Role.STOPPED,
        str(caught.value),
        (str(caught.value),),
    )
    assert [job.id for job in status.jobs] == ["body"]
    registry = CollectorRegistry()
    registry.register(scheduler.metrics())
    assert "argus_scheduler_leader" in generate_latest(registry).decode()
    with pytest.raises(SchedulerError, match="not running in this process"):
        scheduler.run_now("body")
    assert scheduler.stop()


def test_a_service_of_the_leader_needs_an_election() -> None:
    scheduler = of("test", coordination="every_worker")
    with pytest.raises(SettingsError, match="leader service 'bot' needs coordination='leader', not 'every_w"):
        scheduler.leader_service("bot", threading.Thread())


def test_nothing_is_asked_of_a_scheduler_that_is_not_running() -> None:
    scheduler = of("test")
    scheduler.add_job(body, every(minutes=1), id="a")
    with pytest.raises(SchedulerError, match=r"not running in this process: call start\(\) first"):
        scheduler.run_now("a")


def test_without_apscheduler_the_application_boots_and_one_line_says_what_to_install(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(
        "import sys\n"
        "sys.modules['apscheduler'] = None\n"
        "import logging\n"
        "logging.basicConfig()\n"
        "from argus_sched import Scheduler, every\n"
        "scheduler = Scheduler('postgresql://127.0.0.1:1/x', namespace='x')\n"
        "scheduler.job(every(minutes=1), id='a')(lambda: None)\n"
        "scheduler.start()\n"
        "print('booted', scheduler.status().problem)\n"
        "scheduler.stop()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "booted" in done.stdout
    assert (
        "apscheduler is not installed: run  pip install 'argus-sched[scheduler]'" in done.stdout + done.stderr
    )


def test_several_workers_may_migrate_at_once(database: str) -> None:
    applied: list[list[str]] = []
    ready = threading.Barrier(6)

    def migrate() -> None:
        ready.wait()
        applied.append(schema.migrate(database))

    threads = [threading.Thread(target=migrate) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [step.name for step in schema.shipped()]
    assert max(applied, key=len) == names
    assert [found for found in applied if found] == [names]


def test_a_port_where_nobody_listens_is_no_crash(new: New) -> None:
    scheduler = new(f"postgresql://postgres@127.0.0.1:{free_port()}/x")
    counting(scheduler)
    assert "cannot be reached" in problem(scheduler)
