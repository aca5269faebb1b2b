"""The lock itself on a real Postgres: what is granted, what is refused, and with which words."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from argus_sched.advisory_keys import LEADER, heir_key, worker_key
from argus_sched.errors import LeadershipRefused, SchemaError, SettingsError
from argus_sched.postgres.connection import Row, Session
from argus_sched.postgres.embedded import EmbeddedPostgres, find_binaries, free_port
from argus_sched.postgres.leader_lock import PostgresLeaderLock, open_leader_lock
from argus_sched.scheduling.elector import Elector
from argus_sched.scheduling.identity import Worker
from argus_sched.scheduling.leadership import Cause, Role, Timing, retreat
from argus_sched.scheduling.ports import SessionLostError, WaitUnsupportedError
from argus_sched.scheduling.wakeup import WakeUp
from tests.workers.election_cluster import Connection, holders, prepare
from tests.workers.pgbouncer import pgbouncer
from tests.workers.proxy import Proxy

KEY = LEADER.number


@pytest.fixture
def labs(database: str) -> str:
    """The DSN of a database with the leader's table."""
    prepare(database)
    return database


@pytest.fixture
def admin(labs: str) -> Iterator[Connection]:
    with psycopg.connect(labs, autocommit=True) as connection:
        yield connection


@contextlib.contextmanager
def opened(
    dsn: str, namespace: str = "labs", key: int = KEY, timing: Timing | None = None, direct: bool = True
) -> Iterator[PostgresLeaderLock]:
    lock = open_leader_lock(dsn, key, timing or Timing(), Worker(namespace), direct=direct)
    try:
        yield lock
    finally:
        lock.close()


def elector_on(dsn: str, timing: Timing | None = None) -> tuple[Elector, list[tuple[str, object]]]:
    turns: list[tuple[str, object]] = []
    worker, timing = Worker("labs"), timing or Timing()
    elector = Elector(
        lambda: open_leader_lock(dsn, KEY, timing, worker),
        timing,
        namespace="labs",
        instance=worker.instance,
        on_promote=lambda term: turns.append(("promote", term.epoch)),
        on_demote=lambda _term, cause: turns.append(("demote", cause)),
    )
    return elector, turns


def run_until(elector: Elector, role: Role) -> None:
    deadline = time.monotonic() + 60
    while elector.role is not role:
        assert time.monotonic() < deadline, f"still {elector.role}: {elector.problem}"
        elector.run_once()


# What is granted.


def test_a_free_lock_is_granted_and_taken_by_one(labs: str, admin: Connection) -> None:
    with opened(labs) as first, opened(labs) as second:
        assert first.try_lead()
        assert not second.try_lead()
        assert holders(admin) == [first.backend_pid]


def test_a_released_lock_allows_a_new_holder(labs: str) -> None:
    with opened(labs) as first, opened(labs) as second:
        assert first.try_lead()
        first.release()
        assert second.try_lead()
        assert not first.try_lead()


def test_asking_twice_takes_the_lock_once(labs: str) -> None:
    with opened(labs) as first, opened(labs) as second:
        assert first.try_lead()
        assert first.try_lead()
        assert first.wait_to_lead(0.1, WakeUp())
        first.release()
        assert second.try_lead()


def test_a_leader_whose_lock_connection_is_terminated_demotes(labs: str, admin: Connection) -> None:
    elector, turns = elector_on(labs)
    run_until(elector, Role.LEADER)
    assert elector.term is not None
    admin.execute("SELECT pg_terminate_backend(%s, 10000)", (elector.term.backend_pid,))
    elector.run_once()
    assert turns == [("promote", 1), ("demote", Cause.TERMINATED)]
    assert not elector.is_trusted()
    assert holders(admin) == []
    with opened(labs) as fresh:
        assert fresh.try_lead()
    elector.stop()


def test_the_session_is_idle_and_named_after_its_process_and_role(labs: str, admin: Connection) -> None:
    def state(lock: PostgresLeaderLock) -> tuple[str, str]:
        row = admin.execute(
            "SELECT state, application_name FROM pg_stat_activity WHERE pid = %s", (lock.backend_pid,)
        ).fetchone()
        assert row
        return row[0], row[1]

    with opened(labs) as lock:
        assert state(lock) == ("idle", f"scheduler-standby:{os.getpid()}")
        lock.try_lead()
        assert state(lock) == ("idle", f"scheduler-leader:{os.getpid()}")
        lock.release()
        assert state(lock) == ("idle", f"scheduler-standby:{os.getpid()}")


def test_a_worker_holds_a_lock_of_its_own_for_as_long_as_its_session_lives(
    labs: str, admin: Connection
) -> None:
    worker = Worker("labs")
    lock = open_leader_lock(labs, KEY, Timing(), worker)
    assert holders(admin, worker_key(worker.instance)) == [lock.backend_pid]
    lock.close()
    wait_for(lambda: not holders(admin, worker_key(worker.instance)))


def test_a_new_session_takes_the_workers_lock_once_the_old_one_is_gone(labs: str, admin: Connection) -> None:
    worker = Worker("labs")
    key = worker_key(worker.instance)
    old = open_leader_lock(labs, KEY, Timing(), worker)
    new = open_leader_lock(labs, KEY, Timing(), worker)
    assert holders(admin, key) == [old.backend_pid]
    old.close()
    wait_for(lambda: not holders(admin, key))
    new.keep()
    assert holders(admin, key) == [new.backend_pid]
    new.close()


# Waiting.


def test_a_bounded_wait_ends_by_itself_and_leaves_nothing_behind(labs: str, admin: Connection) -> None:
    with opened(labs) as leader, opened(labs) as heir:
        assert leader.try_lead()
        assert not heir.wait_to_lead(0.1, WakeUp())
        waiters = admin.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
        assert waiters == (0,)
        leader.release()
        assert heir.wait_to_lead(0.9, WakeUp())
        assert holders(admin) == [heir.backend_pid]


def test_a_wait_is_granted_while_it_lasts(labs: str) -> None:
    with opened(labs) as leader, opened(labs) as heir:
        assert leader.try_lead()
        timer = threading.Timer(0.2, leader.release)
        timer.start()
        granted = any(heir.wait_to_lead(0.9, WakeUp()) for _ in range(60))
        timer.join()
        assert granted


def test_a_wait_is_ended_by_another_thread(labs: str) -> None:
    with opened(labs) as leader, opened(labs) as heir:
        assert leader.try_lead()
        wake = WakeUp()
        timer = threading.Timer(0.1, wake.set)
        timer.start()
        assert not heir.wait_to_lead(30.0, wake)
        timer.join()
        heir.keep()


def test_a_role_that_may_not_run_blocks_is_told_to_poll(labs: str, admin: Connection) -> None:
    with plain_role(admin, rights=True) as role, opened(labs) as leader:
        admin.execute("REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC")
        assert leader.try_lead()
        with opened(as_role(labs, role)) as heir:
            with pytest.raises(WaitUnsupportedError):
                heir.wait_to_lead(0.1, WakeUp())
            leader.release()
            assert heir.try_lead()


# The record.


def test_each_promotion_records_a_higher_epoch_and_the_process(labs: str, admin: Connection) -> None:
    for epoch in (1, 2, 3):
        with opened(labs) as lock:
            assert lock.try_lead()
            lock.tick()
            assert lock.promote() == epoch
            row = admin.execute(
                "SELECT namespace, lock_key, epoch, pid, backend_pid, timeline FROM argus_sched.leader"
            ).fetchone()
            assert row == ("labs", KEY, epoch, os.getpid(), lock.backend_pid, 1)
        wait_for(lambda: not holders(admin))


def test_promotion_gives_the_heirs_key_up_and_says_so(labs: str, admin: Connection) -> None:
    with opened(labs) as heir, opened(labs) as standby:
        assert heir.try_heir()
        assert heir.wait_to_lead(0.9, WakeUp())
        heir.promote()
        assert holders(admin, heir_key(KEY)) == []
        assert standby.watch(30.0, WakeUp())
        assert standby.try_heir()


def test_a_release_wakes_who_watches(labs: str) -> None:
    with opened(labs) as leader, opened(labs) as standby:
        assert leader.try_lead()
        assert not standby.watch(0.05, WakeUp())
        leader.release()
        assert standby.watch(30.0, WakeUp())
        assert not leader.watch(0.05, WakeUp())


# Losing.


def test_a_watch_sees_a_terminated_session_without_a_question(labs: str, admin: Connection) -> None:
    with opened(labs) as lock:
        threading.Timer(0.1, terminate, (labs, lock.backend_pid)).start()
        with pytest.raises(SessionLostError) as lost:
            lock.watch(60.0, WakeUp())
        assert lost.value.cause is Cause.TERMINATED
        assert "administrator" in lost.value.detail
        with pytest.raises(SessionLostError):
            lock.tick()


def test_a_silent_session_is_ended_by_the_server_after_the_lease(labs: str, admin: Connection) -> None:
    timing = Timing(lease=0.4, tick=0.1, tick_timeout=0.1, probe=0.2)
    with opened(labs, timing=timing) as lock:
        assert lock.try_lead()
        wait_for(lambda: not holders(admin))
        with pytest.raises(SessionLostError) as lost:
            lock.tick()
        assert lost.value.cause is Cause.LEASE_EXPIRED


def test_a_lock_that_was_let_go_behind_our_back_is_noticed_by_the_tick(labs: str) -> None:
    with opened(labs) as lock:
        assert lock.try_lead()
        lock.tick()
        lock._session.ask("SELECT pg_advisory_unlock_all()", timeout=10)
        with pytest.raises(SessionLostError) as lost:
            lock.tick()
        assert lost.value.cause is Cause.LOCK_LOST


@pytest.mark.parametrize("likeness", ["pair", "shared", "other key"])
def test_a_look_alike_is_not_the_leaders_lock(labs: str, likeness: str) -> None:
    takes = {
        "pair": "SELECT pg_advisory_lock(0, 911000001)",
        "shared": "SELECT pg_advisory_lock_shared(911000001)",
        "other key": "SELECT pg_advisory_lock(911000001 + 4294967296)",
    }
    with opened(labs) as lock:
        lock._session.ask(takes[likeness], timeout=10)
        with pytest.raises(SessionLostError) as lost:
            lock.tick()
        assert lost.value.cause is Cause.LOCK_LOST


def test_a_forked_child_cannot_use_the_session_and_does_not_end_it(labs: str) -> None:
    with opened(labs) as lock:
        assert lock.try_lead()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                lock.tick()
            except SessionLostError as lost:
                os.write(writer, lost.cause.encode())
            lock.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reader, 100) == Cause.FORKED.encode()
        os.close(reader)
        os.close(writer)
        lock.tick()


def test_an_elector_started_again_in_a_child_is_a_worker_of_its_own(labs: str, admin: Connection) -> None:
    elector, _turns = elector_on(labs)
    elector.start()
    wait_for(elector.is_trusted)
    child = os.fork()
    if child == 0:
        stopped = elector.role is Role.STOPPED and not elector.is_trusted()
        elector.start()
        wait_for(lambda: elector.role is Role.HEIR)
        os._exit(0 if stopped and elector.stop() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert elector.is_trusted()
    assert elector.stop()


# What is refused.


def test_another_namespace_on_the_same_key_is_refused_by_name(labs: str) -> None:
    with opened(labs) as lock:
        lock.try_lead()
        lock.promote()
    with pytest.raises(
        LeadershipRefused, match=r"911000001 belongs to namespace 'labs' .* namespace 'shop' would never lead"
    ):
        open_leader_lock(labs, KEY, Timing(), Worker("shop"))


def test_two_new_namespaces_that_race_for_a_key_leave_one(labs: str) -> None:
    with opened(labs, namespace="shop") as second, opened(labs) as first:
        first.promote()
        with pytest.raises(LeadershipRefused, match="belongs to namespace 'labs'"):
            second.promote()


def test_one_namespace_with_two_keys_is_refused(labs: str) -> None:
    with opened(labs) as lock:
        lock.try_lead()
        lock.promote()
    with pytest.raises(LeadershipRefused, match=r"leads under advisory key 911000001 .*, not 42: workers"):
        open_leader_lock(labs, 42, Timing(), Worker("labs"))


def test_a_missing_table_names_the_command_that_makes_it(database: str) -> None:
    with pytest.raises(SchemaError, match="argus-sched scheduler migrate"):
        open_leader_lock(database, KEY, Timing(), Worker("labs"))


def test_a_role_without_rights_is_told_the_grants(labs: str, admin: Connection) -> None:
    with (
        plain_role(admin, rights=False) as role,
        pytest.raises(LeadershipRefused, match=rf"GRANT SELECT, INSERT, UPDATE .* TO {role}"),
    ):
        open_leader_lock(as_role(labs, role), KEY, Timing(), Worker("labs"))


def test_a_plain_role_with_rights_may_lead(labs: str, admin: Connection) -> None:
    with plain_role(admin, rights=True) as role, opened(as_role(labs, role)) as lock:
        assert lock.try_lead()
        lock.tick()
        assert lock.promote() == 1


def test_a_read_only_database_is_refused(labs: str) -> None:
    with opened(f"{labs}?options=-cdefault_transaction_read_only%3Don") as lock:
        lock.try_lead()
        with pytest.raises(LeadershipRefused, match=r"epoch cannot be written .* read-only"):
            lock.promote()


def test_settings_that_do_not_hold_are_refused(labs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Session.ask

    def overridden(session: Session, statement: str, *values: object, timeout: float) -> list[Row]:
        rows = ask(session, statement, *values, timeout=timeout)
        if "set_config" in statement:
            ask(session, "SET idle_session_timeout = '10min'", timeout=timeout)
        return rows

    monkeypatch.setattr(Session, "ask", overridden)
    with pytest.raises(LeadershipRefused, match=r"idle_session_timeout reads 10min .* where 3000 ms was set"):
        open_leader_lock(labs, KEY, Timing(), Worker("labs"))


@pytest.mark.parametrize("form", ["url", "socket"])
def test_settings_hold_over_tcp_and_over_a_unix_socket(
    labs: str, postgres: EmbeddedPostgres, form: str
) -> None:
    name = labs.rsplit("/", 1)[1]
    dsn = labs if form == "url" else f"host={postgres.root} port={postgres.port} dbname={name} user=postgres"
    with opened(dsn) as lock:
        ((lease, statement, user_timeout),) = lock._session.ask(
            "SELECT current_setting('idle_session_timeout'), current_setting('statement_timeout'), "
            "current_setting('tcp_user_timeout')",
            timeout=10,
        )
        assert (lease, statement) == ("3s", "2s")
        assert user_timeout == ("3000" if form == "url" else "0")


def test_the_form_of_sqlalchemy_is_a_dsn_too(labs: str) -> None:
    with opened(labs.replace("postgresql://", "postgresql+psycopg://")) as lock:
        assert lock.try_lead()


def test_a_dsn_that_cannot_be_read_is_not_shown() -> None:
    with pytest.raises(SettingsError) as refusal:
        open_leader_lock("postgresql//labs:s3cret@db", KEY, Timing(), Worker("labs"))
    assert "s3cret" not in str(refusal.value)


def test_an_unreachable_server_is_a_lost_session() -> None:
    with pytest.raises(SessionLostError) as lost:
        open_leader_lock(f"postgresql://labs:s3cret@127.0.0.1:{free_port()}/x", KEY, Timing(), Worker("labs"))
    assert lost.value.cause is Cause.CONNECTION_LOST
    assert "s3cret" not in str(lost.value)


def test_a_server_that_says_it_is_13_is_led_without_a_lease(
    labs: str, postgres: EmbeddedPostgres, caplog: pytest.LogCaptureFixture
) -> None:
    with Proxy(postgres.port, as_version_13) as proxy:
        elector, _turns = elector_on(labs.replace(f":{postgres.port}/", f":{proxy.port}/"))
        run_until(elector, Role.LEADER)
        assert elector.timing == Timing.recipe()
        assert elector.stop()
    assert caplog.text.count("Scheduler lease unavailable before PostgreSQL 14") == 1


def test_a_replica_is_refused_until_it_is_promoted() -> None:
    with EmbeddedPostgres() as primary, replica_of(primary) as replica:
        prepare(primary.dsn())
        with (
            opened(primary.dsn(), timing=Timing(lease=None)) as held,
            psycopg.connect(replica.dsn(), autocommit=True) as copy,
        ):
            assert held.try_lead()
            held.promote()
            wait_for(lambda: copy.execute("SELECT to_regclass('argus_sched.leader')").fetchone() != (None,))
            wait_for(lambda: copy.execute("SELECT epoch FROM argus_sched.leader").fetchone() == (1,))
            elector, turns = elector_on(replica.dsn())
            wait_for(lambda: ran_and_refused(elector, "is a replica"))
            both = f"postgresql://postgres@127.0.0.1:{replica.port},127.0.0.1:{primary.port}/postgres"
            with opened(both) as either:
                assert either.server == held.server
                assert not either.try_lead()
            copy.execute("SELECT pg_promote(true, 60)")
            run_until(elector, Role.LEADER)
            # Two holders on two servers: the old primary knows nothing of it, so its DSN must not be used.
            assert turns == [("promote", 2)]
            held.tick()
            with opened(replica.dsn()) as seen:
                assert "old primary" in (retreat(seen.server, held.server) or "")
        assert elector.stop()


@pytest.mark.pgbouncer
@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_pgbouncer_is_refused_by_name(labs: str, postgres: EmbeddedPostgres, mode: str) -> None:
    with pgbouncer(postgres.port, mode) as port:
        pooled = labs.replace(f":{postgres.port}/", f":{port}/")
        with pytest.raises(LeadershipRefused, match=r"pooler such as pgbouncer.* leads to the server itself"):
            open_leader_lock(pooled, KEY, Timing(), Worker("labs"))
        with psycopg.connect(pooled, autocommit=True) as next_user:
            assert next_user.execute("SHOW statement_timeout").fetchone() == ("0",)
            assert next_user.execute("SHOW idle_session_timeout").fetchone() == ("0",)


@pytest.mark.pgbouncer
def test_behind_pgbouncer_two_workers_would_both_be_granted_the_lock(
    labs: str, postgres: EmbeddedPostgres
) -> None:
    with pgbouncer(postgres.port, "transaction") as port:
        pooled = labs.replace(f":{postgres.port}/", f":{port}/")
        with opened(pooled, direct=False) as first, opened(pooled, direct=False) as second:
            assert first.try_lead()
            assert second.try_lead()


# Parts.


def wait_for(condition: object, seconds: float = 60.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def ran_and_refused(elector: Elector, words: str) -> bool:
    elector.run_once()
    return words in (elector.problem or "")


def terminate(dsn: str, pid: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (pid,))


def as_role(dsn: str, role: str) -> str:
    return dsn.replace("postgres@", f"{role}@")


@contextlib.contextmanager
def plain_role(admin: Connection, rights: bool) -> Iterator[str]:
    role = f"plain_{admin.info.dbname}"
    admin.execute(f"CREATE ROLE {role} LOGIN")
    if rights:
        admin.execute(f"GRANT USAGE ON SCHEMA argus_sched TO {role}")
        admin.execute(f"GRANT SELECT, INSERT, UPDATE ON argus_sched.leader TO {role}")
    try:
        yield role
    finally:
        admin.execute(f"DROP OWNED BY {role}")
        admin.execute(f"DROP ROLE {role}")


@contextlib.contextmanager
def replica_of(primary: EmbeddedPostgres) -> Iterator[EmbeddedPostgres]:
    root = Path(tempfile.mkdtemp(prefix="argus-replica-"))
    replica = EmbeddedPostgres(root=root)
    user = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
    if user:
        root.chmod(0o777)
    command = [
        find_binaries() / "pg_basebackup",
        "-d",
        primary.dsn(),
        "-D",
        replica.data,
        "-R",
        "-X",
        "stream",
    ]
    subprocess.run([*command, "-c", "fast"], check=True, cwd="/", **user)  # type: ignore[call-overload]
    try:
        yield replica.start()
    finally:
        replica.destroy()


def as_version_13(data: bytes) -> bytes:
    """The server's greeting with another version of the same length in its place."""
    name = b"server_version\0"
    start = data.find(name)
    if start < 0:
        return data
    value = start + len(name)
    end = data.index(b"\0", value)
    return data[:value] + b"13.1".ljust(end - value, b"1") + data[end:]
