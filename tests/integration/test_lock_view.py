"""The lock as a real Postgres shows it: look-alikes, hidden states, failures with a sentence, a failover."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from argus_sched.advisory_keys import halves
from argus_sched.agent.check import Result
from argus_sched.agent.kinds.scheduler_lock import observe_lock
from argus_sched.agent.packs import LockCheck
from argus_sched.agent.ports import LockSample
from argus_sched.agent.status import Phase, Status
from argus_sched.clock import ManualClock, SystemClock
from argus_sched.errors import SourceError
from argus_sched.postgres.embedded import EmbeddedPostgres, find_binaries, free_port
from argus_sched.postgres.lock_view import APPLICATION_NAME, PostgresLockView

KEY = 911_000_001
CHECK = LockCheck(id="scheduler_lock", key=KEY)
PATIENCE = 60.0

Session = psycopg.Connection[tuple[object, ...]]
Open = Callable[..., Session]
_numbers = itertools.count(1)


@pytest.fixture
def session(database: str) -> Iterator[Open]:
    """Opens sessions that are closed at the end: `session(dsn=…, name=…, autocommit=…)`."""
    with contextlib.ExitStack() as stack:

        def connect(dsn: str = database, name: str = "app", *, autocommit: bool = True) -> Session:
            return stack.enter_context(
                contextlib.closing(psycopg.connect(dsn, autocommit=autocommit, application_name=name))
            )

        yield connect


@pytest.fixture
def view(database: str) -> Iterator[PostgresLockView]:
    """A view of the test's own database."""
    with contextlib.closing(PostgresLockView(database, 10.0)) as opened:
        yield opened


def hold(session: Session, key: int = KEY) -> int:
    """Take `key` in `session`; returns the pid of its backend."""
    assert session.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone() == (True,)
    return session.info.backend_pid


def look(dsn: str, check: LockCheck = CHECK) -> Result:
    """The verdict without waiting: the clock is moved by hand."""
    with contextlib.closing(PostgresLockView(dsn, 10.0)) as view:
        return observe_lock(check, "labs", [view], ManualClock())[0]


def await_waiter(view: PostgresLockView) -> LockSample:
    """The first look that shows a waiter; a blocked statement takes a moment to be seen."""
    finish = time.monotonic() + PATIENCE
    while time.monotonic() < finish:
        sample = view.sample(KEY)
        if any(not row.granted for row in sample.rows):
            return sample
        time.sleep(0.01)
    raise AssertionError("no waiter was seen")


@contextlib.contextmanager
def waiting(dsn: str, name: str, statement: str = "SELECT pg_advisory_lock(%s)") -> Iterator[None]:
    """A session that waits for KEY in a thread of its own."""
    connection = psycopg.connect(dsn, autocommit=True, application_name=name)

    def wait() -> None:
        with contextlib.suppress(psycopg.Error):
            connection.execute(statement, (KEY,))

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        connection.cancel_safe(timeout=PATIENCE)
        thread.join(PATIENCE)
        connection.close()


def test_the_driver_is_loaded_only_when_somebody_looks() -> None:
    program = "import sys, argus_sched.postgres.lock_view; print('psycopg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_holder_is_described(view: PostgresLockView, session: Open) -> None:
    pid = hold(session(name="scheduler-leader:88"))
    sample = view.sample(KEY)
    (row,) = sample.rows
    assert (row.pid, row.mode, row.granted, row.state) == (pid, "ExclusiveLock", True, "idle")
    assert (row.application_name, row.client_addr) == ("scheduler-leader:88", "127.0.0.1")
    assert row.state_seconds is not None
    assert row.state_seconds >= 0
    assert (row.transaction_seconds, row.wait_seconds) == (None, None)
    assert not sample.in_recovery
    assert sample.server.startswith("127.0.0.1:")
    assert abs(sample.server_time - datetime.now(UTC)) < timedelta(seconds=PATIENCE)
    assert sample.role == "postgres"
    assert sample.system_identifier


@pytest.mark.parametrize("key", [KEY, KEY + 2**32, -KEY, -1, 0, 2**63 - 1, -(2**63), 3_000_000_000])
def test_any_bigint_key_is_found_and_no_look_alike_of_it(database: str, session: Open, key: int) -> None:
    others = [other for other in (key - 2**32, key ^ 1, -key) if other != key and -(2**63) <= other < 2**63]
    other = session()
    for lock in others:
        hold(other, lock)
    check = LockCheck(id="lock", key=key)
    assert look(database, check).phase is Phase.UNHELD
    pid = hold(session(), key)
    result = look(database, check)
    assert (result.status, result.details["holder_pid"], result.details["holders"]) == (Status.OK, pid, 1)


def test_the_two_integer_form_is_another_lock(database: str, session: Open) -> None:
    session().execute("SELECT pg_advisory_lock(%s::int, %s::int)", halves(KEY))
    assert look(database).phase is Phase.UNHELD


def test_a_holder_in_another_database_is_another_environment(
    database: str, session: Open, postgres: EmbeddedPostgres
) -> None:
    hold(session(postgres.dsn()))
    assert look(database).phase is Phase.UNHELD
    hold(session())
    assert look(database).details["holders"] == 1


def test_shared_holders_are_named(database: str, session: Open) -> None:
    for name in ("web-1", "web-2"):
        session(name=name).execute("SELECT pg_advisory_lock_shared(%s)", (KEY,))
    result = look(database)
    assert (result.status, result.phase) == (Status.CRIT, Phase.SHARED)
    assert "web-1" in result.summary
    assert "web-2" in result.summary


@pytest.mark.parametrize(
    ("name", "status"),
    [("scheduler-standby:77", Status.OK), ("gunicorn", Status.WARN)],
    ids=["ours", "foreign"],
)
def test_a_waiter_is_counted_and_is_no_holder(
    database: str, view: PostgresLockView, session: Open, name: str, status: Status
) -> None:
    hold(session())
    with waiting(database, name):
        sample = await_waiter(view)
        (waiter,) = [row for row in sample.rows if not row.granted]
        assert waiter.application_name == name
        assert waiter.wait_seconds is not None
        result = look(database)
        assert (result.status, result.details["holders"], result.details["waiters"]) == (status, 1, 1)


def test_a_transaction_left_open_is_told_with_its_age(database: str, session: Open) -> None:
    hold(session(autocommit=False))
    result = look(database)
    assert (result.status, result.phase) == (Status.WARN, Phase.IN_TRANSACTION)
    assert result.details["holder_idle"] is False


def test_an_aborted_transaction_keeps_the_lock_and_is_critical(database: str, session: Open) -> None:
    holder = session(autocommit=False)
    hold(holder)
    with pytest.raises(psycopg.errors.DivisionByZero):
        holder.execute("SELECT 1 / 0")
    assert look(database).phase is Phase.ABORTED
    holder.rollback()
    assert look(database).status is Status.OK


def test_a_holder_at_work_is_busy(database: str, session: Open) -> None:
    holder = session()
    pid = hold(holder)

    def sleep() -> None:
        with contextlib.suppress(psycopg.errors.QueryCanceled):
            holder.execute("SELECT pg_sleep(600)")

    thread = threading.Thread(target=sleep)
    thread.start()
    try:
        with contextlib.closing(PostgresLockView(database, 10.0)) as view:
            finish = time.monotonic() + PATIENCE
            while view.sample(KEY).rows[0].state != "active" and time.monotonic() < finish:
                time.sleep(0.01)
        result = look(database)
    finally:
        holder.cancel_safe(timeout=PATIENCE)
        thread.join(PATIENCE)
    assert (result.status, result.phase, result.details["holder_pid"]) == (Status.WARN, Phase.BUSY, pid)


def test_a_prepared_transaction_has_no_process(own_server: EmbeddedPostgres) -> None:
    with psycopg.connect(own_server.dsn()) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (KEY,))
        connection.execute("PREPARE TRANSACTION 'forgotten'")
    try:
        result = look(own_server.dsn())
    finally:
        with psycopg.connect(own_server.dsn(), autocommit=True) as connection:
            connection.execute("ROLLBACK PREPARED 'forgotten'")
    assert result.status is Status.CRIT
    assert "prepared transaction" in result.summary


@pytest.fixture
def role(postgres: EmbeddedPostgres, database: str) -> Iterator[str]:
    """A login role without any privilege of its own."""
    name = f"monitor_{next(_numbers)}"
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        yield name
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def as_role(dsn: str, role: str) -> str:
    return dsn.replace("//postgres@", f"//{role}@")


def test_without_pg_monitor_the_count_is_known_and_the_state_is_not(
    database: str, session: Open, role: str
) -> None:
    pid = hold(session(name="scheduler-leader:5"))
    result = look(as_role(database, role))
    assert (result.status, result.phase) == (Status.UNKNOWN, Phase.BLIND)
    assert f'grant pg_monitor to "{role}"' in result.reason
    assert (result.details["holders"], result.details["holder_pid"]) == (1, pid)
    assert (result.details["holder_state"], result.details["holder_idle"]) == (None, None)
    assert result.details["holder_application"] == "scheduler-leader:5"


def test_the_advice_to_grant_pg_monitor_helps(database: str, session: Open, role: str) -> None:
    hold(session())
    session().execute(sql.SQL("GRANT pg_monitor TO {}").format(sql.Identifier(role)))
    assert look(as_role(database, role)).status is Status.OK


def test_without_the_right_to_the_system_identifier_the_lock_is_still_read(
    database: str, session: Open, role: str
) -> None:
    session().execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    hold(session(as_role(database, role)))
    with contextlib.closing(PostgresLockView(as_role(database, role), 10.0)) as view:
        sample = view.sample(KEY)
    assert sample.system_identifier is None
    assert len(sample.rows) == 1


def test_two_addresses_of_one_server_show_one_holder(database: str, session: Open) -> None:
    hold(session())
    twin = database.replace("127.0.0.1", "localhost")
    with contextlib.ExitStack() as stack:
        views = [
            stack.enter_context(contextlib.closing(PostgresLockView(dsn, 10.0))) for dsn in (database, twin)
        ]
        result, nodes = observe_lock(CHECK, "labs", views, ManualClock())
    assert (result.status, result.details["holders"], len(nodes)) == (Status.OK, 1, 2)


def test_the_agents_own_session_is_named_idle_and_bounded(
    view: PostgresLockView, session: Open, database: str
) -> None:
    view.sample(KEY)
    sessions = (
        session()
        .execute(
            "SELECT state FROM pg_stat_activity WHERE application_name = %s AND datname = current_database()",
            (APPLICATION_NAME,),
        )
        .fetchall()
    )
    assert sessions == [("idle",)]


def test_a_role_whose_settings_change_how_values_are_printed_is_read_alike(
    database: str, session: Open, role: str
) -> None:
    for setting in ("datestyle = 'German, DMY'", "timezone = 'Asia/Kathmandu'", "extra_float_digits = 0"):
        session().execute(sql.SQL("ALTER ROLE {} SET " + setting).format(sql.Identifier(role)))
    with contextlib.closing(PostgresLockView(as_role(database, role), 10.0)) as view:
        assert abs(view.sample(KEY).server_time - datetime.now(UTC)) < timedelta(seconds=PATIENCE)


# A server of these tests' own, which they may stop, freeze and fill.


@pytest.fixture(scope="module")
def own_server() -> Iterator[EmbeddedPostgres]:
    """A small server that asks `monitor` for a password."""
    options = {"max_connections": "12", "max_prepared_transactions": "2"}
    with EmbeddedPostgres(options) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("CREATE ROLE monitor LOGIN PASSWORD 'right horse'")
            connection.execute("GRANT pg_monitor TO monitor")
            rules = server.data / "pg_hba.conf"
            rules.write_text(f"host all monitor 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
            connection.execute("SELECT pg_reload_conf()")
        yield server


def problem(dsn: str, timeout: float = 10.0) -> str:
    with contextlib.closing(PostgresLockView(dsn, timeout)) as view, pytest.raises(SourceError) as caught:
        view.sample(KEY)
    return str(caught.value)


def with_password(server: EmbeddedPostgres, password: str, database: str = "postgres") -> str:
    return f"postgresql://monitor:{password}@127.0.0.1:{server.port}/{database}"


def test_a_right_password_is_accepted(own_server: EmbeddedPostgres) -> None:
    assert look(with_password(own_server, "right%20horse")).phase is Phase.UNHELD


def test_a_wrong_password_is_told_and_never_printed(own_server: EmbeddedPostgres) -> None:
    told = problem(with_password(own_server, "hunter2"))
    assert told == (
        f"cannot connect to the database at 127.0.0.1:{own_server.port}/postgres: password authentication "
        'failed for user "monitor" (check the password in the DSN)'
    )


def test_a_missing_password_is_told(own_server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    assert "the DSN carries no password" in problem(
        f"postgresql://monitor@127.0.0.1:{own_server.port}/postgres"
    )


def test_a_database_that_does_not_exist_is_told(own_server: EmbeddedPostgres) -> None:
    assert 'database "nope" does not exist' in problem(own_server.dsn("nope"))


def test_a_role_that_does_not_exist_is_told(own_server: EmbeddedPostgres) -> None:
    assert 'role "joe" does not exist (check the user' in problem(as_role(own_server.dsn(), "joe"))


def test_a_port_nobody_listens_on_is_told() -> None:
    port = free_port()
    told = problem(f"postgresql://monitor:hunter2@127.0.0.1:{port}/app")
    assert told.startswith(f"cannot connect to the database at 127.0.0.1:{port}: Connection refused")
    assert "hunter2" not in told


def test_a_host_that_cannot_be_resolved_is_told() -> None:
    assert "check the host's name" in problem("host=no-such-host.invalid password=hunter2 dbname=app")


def test_a_missing_socket_is_told(tmp_path: Path) -> None:
    assert "is the server running on this machine?" in problem(f"host={tmp_path} dbname=app")


@pytest.mark.parametrize(
    "dsn",
    [
        "postgres//u:hunter2@host/app",
        "postgresql://u:hunter2@horse@host/app",
        "postgresql://u:1/hunter2@host/app",
        "postgresql://u:hunter2/horse@host/app",
        "postgresql://u:hunter2%zz@host/app",
        "hunter2",
        "pass word=hunter2",
    ],
)
def test_a_dsn_that_cannot_be_read_is_told_without_quoting_it(dsn: str) -> None:
    told = problem(dsn)
    assert "DSN cannot be read" in told
    assert "hunter2" not in told
    assert "horse" not in told


def test_a_server_without_a_free_connection_is_told(own_server: EmbeddedPostgres) -> None:
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                stack.enter_context(contextlib.closing(psycopg.connect(own_server.dsn())))
        assert "(the server has no free connection)" in problem(own_server.dsn())


def test_a_restart_between_two_looks_goes_unnoticed(own_server: EmbeddedPostgres) -> None:
    with contextlib.closing(PostgresLockView(own_server.dsn(), 10.0)) as view:
        view.sample(KEY)
        own_server.restart()
        assert view.sample(KEY).rows == ()


def test_a_server_that_is_gone_is_told_and_comes_back(own_server: EmbeddedPostgres) -> None:
    with contextlib.closing(PostgresLockView(own_server.dsn(), 10.0)) as view:
        view.sample(KEY)
        own_server.stop()
        try:
            result, nodes = observe_lock(CHECK, "labs", [view], ManualClock())
        finally:
            own_server.start()
        assert (result.status, result.blind_by) == (Status.UNKNOWN, "database:labs")
        assert "Connection refused" in nodes[0].problem
        assert view.sample(KEY).rows == ()


def backend_of(server: EmbeddedPostgres, name: str) -> int:
    with psycopg.connect(server.dsn()) as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = %s", (name,)
        ).fetchone()
    assert found is not None
    return int(found[0])


def test_a_frozen_session_is_left_for_a_fresh_one(own_server: EmbeddedPostgres) -> None:
    with contextlib.closing(PostgresLockView(own_server.dsn(), 0.2)) as view:
        view.sample(KEY)
        frozen = backend_of(own_server, APPLICATION_NAME)
        os.kill(frozen, signal.SIGSTOP)
        try:
            assert view.sample(KEY).rows == ()
        finally:
            os.kill(frozen, signal.SIGCONT)


def test_a_frozen_server_does_not_freeze_the_agent(own_server: EmbeddedPostgres) -> None:
    with contextlib.closing(PostgresLockView(own_server.dsn(), 0.2)) as view:
        view.sample(KEY)
        frozen = [backend_of(own_server, APPLICATION_NAME), own_server.pid]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(SourceError, match="the host does not answer"):
                view.sample(KEY)
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)


# Failover, standby and pooler.


class Interrupted:
    """A real view; `after_first` happens once, right after the first look."""

    def __init__(self, view: PostgresLockView, after_first: Callable[[], object]) -> None:
        self._view = view
        self._after_first: Callable[[], object] | None = after_first

    def sample(self, key: int) -> LockSample:
        seen = self._view.sample(key)
        if self._after_first:
            action, self._after_first = self._after_first, None
            action()
        return seen

    def close(self) -> None:
        self._view.close()


def test_a_failover_in_front_of_our_eyes_is_ok(database: str, session: Open, view: PostgresLockView) -> None:
    leader, standby = session(), session(name="scheduler-leader:2")
    pid = hold(leader)
    session().execute("SELECT pg_terminate_backend(%s, %s)", (pid, int(PATIENCE * 1000)))
    result, _ = observe_lock(CHECK, "labs", [Interrupted(view, lambda: hold(standby))], SystemClock())
    assert (result.status, result.details["holder_pid"]) == (Status.OK, standby.info.backend_pid)
    assert result.details["looks"] == 2


def test_a_leader_killed_without_an_heir_is_critical(database: str, session: Open) -> None:
    pid = hold(session())
    assert look(database).status is Status.OK
    session().execute("SELECT pg_terminate_backend(%s, %s)", (pid, int(PATIENCE * 1000)))
    result = look(database)
    assert (result.status, result.phase, result.details["looks"]) == (Status.CRIT, Phase.UNHELD, 7)


@pytest.fixture(scope="module")
def standby(own_server: EmbeddedPostgres) -> Iterator[EmbeddedPostgres]:
    """A hot standby of `own_server`."""
    program = find_binaries() / "pg_basebackup"
    if not program.exists():
        pytest.skip("pg_basebackup is not shipped beside this Postgres")
    root = Path(tempfile.mkdtemp(prefix="argus-pg-"))
    source = f"postgresql://postgres@127.0.0.1:{own_server.port}"
    command: list[str | Path] = [
        program,
        "-d",
        source,
        "-D",
        root / "data",
        "-R",
        "-X",
        "stream",
        "--checkpoint=fast",
        "--no-sync",
    ]
    subprocess.run(command, check=True, capture_output=True)
    _give_to_owner_of(own_server.data, root)
    with EmbeddedPostgres({"max_connections": "12", "max_prepared_transactions": "2"}, root=root) as server:
        yield server


def _give_to_owner_of(model: Path, root: Path) -> None:
    owner = model.stat()
    if os.geteuid() == 0:
        for path in (root, *root.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def test_a_holder_on_a_hot_standby_is_critical_and_after_promotion_split_brain(
    own_server: EmbeddedPostgres, standby: EmbeddedPostgres
) -> None:
    servers = (own_server, standby)
    with contextlib.ExitStack() as stack:
        views = [
            stack.enter_context(contextlib.closing(PostgresLockView(server.dsn(), 10.0)))
            for server in servers
        ]
        first, second = (
            stack.enter_context(contextlib.closing(psycopg.connect(server.dsn(), autocommit=True)))
            for server in servers
        )
        hold(first)
        assert observe_lock(CHECK, "labs", views, ManualClock())[0].status is Status.OK
        assert look(standby.dsn()).phase is Phase.BLIND
        hold(second)
        result, _ = observe_lock(CHECK, "labs", views, ManualClock())
        assert (result.status, result.phase) == (Status.CRIT, Phase.STANDBY_HOLDER)
        assert f"127.0.0.1:{standby.port}" in result.summary
        assert views[0].sample(KEY).system_identifier == views[1].sample(KEY).system_identifier

        second.execute("SELECT pg_promote(true, %s)", (int(PATIENCE),))
        result, _ = observe_lock(CHECK, "labs", views, ManualClock())
        assert (result.status, result.phase) == (Status.CRIT, Phase.CONTENDED)
        assert result.summary.startswith("split brain: 2 sessions")


@pytest.fixture
def pooler(postgres: EmbeddedPostgres, tmp_path: Path) -> Iterator[int]:
    """The port of a pgbouncer in transaction mode with one server connection."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    port = free_port()
    config = Path(tempfile.mkdtemp(prefix="argus-bouncer-")) / "pgbouncer.ini"
    config.write_text(
        f"[databases]\n* = host=127.0.0.1 port={postgres.port} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 1\n"
    )
    config.parent.chmod(0o755)
    command = [program, "-q", *(["-u", "nobody"] if os.geteuid() == 0 else []), str(config)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(PATIENCE)
        shutil.rmtree(config.parent)


@pytest.mark.pgbouncer
def test_a_transaction_pooler_before_the_agent_does_no_harm(
    database: str, session: Open, pooler: int
) -> None:
    pid = hold(session())
    name = database.rsplit("/", 1)[1]
    pooled = f"postgresql://monitor@127.0.0.1:{pooler}/{name}"
    with contextlib.closing(PostgresLockView(pooled, 7.0)) as view:
        finish = time.monotonic() + PATIENCE
        while True:
            try:
                sample = view.sample(KEY)
                break
            except SourceError:
                # The pooler needs a moment to listen.
                assert time.monotonic() < finish
                time.sleep(0.02)
        assert [row.pid for row in sample.rows] == [pid]
        with contextlib.closing(psycopg.connect(pooled, autocommit=True)) as other:
            assert other.execute("SHOW statement_timeout").fetchone() == ("0",)
            assert other.execute("SHOW lock_timeout").fetchone() == ("0",)
