"""The leader's lock in Postgres: a session advisory lock on one dedicated connection.

Nobody waits for it without bound. A waiting statement holds back VACUUM and CREATE INDEX CONCURRENTLY for
as long as it waits, so the heir queues for 0.9 s at a time, in an anonymous block that swallows its own
time-out and cancellation, and therefore logs nothing. The name of the session tells who holds the lock; the
server reports each change of it unasked, which is also how the block says that the lock was granted.
"""

from __future__ import annotations

import functools
import os
import uuid
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from argus_sched import advisory_keys
from argus_sched.errors import LeadershipRefused
from argus_sched.postgres import preflight
from argus_sched.postgres.connection import (
    ForeignProcessError,
    NoAnswerError,
    Session,
    SessionEndedError,
    StatementError,
)
from argus_sched.scheduling.identity import Worker
from argus_sched.scheduling.leadership import Cause, Server, Timing
from argus_sched.scheduling.ports import SessionLostError, WaitUnsupportedError
from argus_sched.scheduling.wakeup import WakeUp

PATIENCE = preflight.PATIENCE
_ALREADY_TAKEN = "23505"
# No right to the language of the block, no such language, no such statement: not a Postgres, or a closed one.
_NO_SUCH_WAIT = {"42501", "42704", "42601", "0A000"}
_CAUSES = {
    "57P01": Cause.TERMINATED,
    "57P02": Cause.SERVER_STOPPED,
    "57P03": Cause.SERVER_STOPPED,
    "57P05": Cause.LEASE_EXPIRED,
}

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _tell_losses(call: Callable[_P, _T]) -> Callable[_P, _T]:
    """Turn the end of the session into the port's error, with its cause."""

    @functools.wraps(call)
    def told(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return call(*args, **kwargs)
        except SessionEndedError as error:
            raise SessionLostError(_cause(error), str(error)) from None

    return told


@_tell_losses
def open_leader_lock(
    dsn: str, key: int, timing: Timing, worker: Worker, *, direct: bool = True
) -> PostgresLeaderLock:
    """Connect, set the session up, and check that leading on it would be sound.

    Raises SessionLostError when no session came about, LeadershipRefused for a pooler, a replica, a foreign
    namespace or missing rights, and SchemaError when the tables are missing. `direct=False` leaves the look
    for a pooler out; only a test of what a pooler does wants that.
    """
    session = Session.open(dsn, preflight.client_parameters(timing, f"scheduler-standby:{os.getpid()}"))
    lock = PostgresLeaderLock(session, key, timing, worker, direct=direct)
    try:
        lock.prepare()
    except BaseException:
        session.close()
        raise
    return lock


class PostgresLeaderLock:
    """A LeaderLock; `scheduling/ports.py` says what each method promises."""

    def __init__(self, session: Session, key: int, timing: Timing, worker: Worker, *, direct: bool) -> None:
        self._session = session
        self._key = key
        self._heir_key = advisory_keys.heir_key(key)
        self._worker_key = advisory_keys.worker_key(worker.instance)
        self._worker = worker
        self._timing = timing.on_server(self.supports_lease)
        self._direct = direct
        self._token = str(uuid.uuid4())
        self._held: set[int] = set()
        self._server: Server | None = None

    @property
    def backend_pid(self) -> int:
        return self._session.announced_pid

    @property
    def supports_lease(self) -> bool:
        return self._session.server_version >= preflight.LEASE_SINCE

    @property
    def server(self) -> Server | None:
        return self._server

    def prepare(self) -> None:
        """Refuse an unfit session, set it up, listen for news, and take this worker's own lock."""
        settings = preflight.session_settings(self._timing, self._session.server_version)
        preflight.refuse_unfit(self._session, direct=self._direct)
        preflight.configure(self._session, settings, self._token, direct=self._direct)
        preflight.check_namespace(self._session, self._worker.namespace, self._key)
        self._server = preflight.server_of(self._session)
        self._session.ask(f'LISTEN "{self._channel}"', timeout=PATIENCE)
        self._hold_worker()

    @_tell_losses
    def try_lead(self) -> bool:
        if self._key in self._held:
            return True
        ((won,),) = self._session.ask(_TRY_LEAD, self._key, _name("leader"), timeout=PATIENCE)
        return self._note(self._key, won is not None)

    @_tell_losses
    def try_heir(self) -> bool:
        self._hold_worker()
        return self._try(self._heir_key)

    @_tell_losses
    def wait_to_lead(self, seconds: float, wake: WakeUp) -> bool:
        # The lock counts: taken twice, it would need to be let go twice.
        if self._key in self._held:
            return True
        self._hold_worker()
        block = _WAIT.format(milliseconds=round(seconds * 1000), key=self._key, name=_name("leader"))
        try:
            self._session.ask(block, timeout=seconds + PATIENCE, wake=wake)
        except StatementError as error:
            if error.sqlstate in _NO_SUCH_WAIT:
                raise WaitUnsupportedError(str(error)) from None
            raise
        named = self._session.reported("application_name") == _name("leader")
        # A wait that was cancelled may have been granted just before: the name does not say, the server does.
        return self._note(self._key, named or (wake.is_set() and self._look(PATIENCE)))

    @_tell_losses
    def promote(self) -> int:
        worker, server = self._worker, self._server
        record = (worker.namespace, self._key, worker.instance, worker.host, worker.container, worker.pid)
        place = (server.system_identifier, server.timeline) if server else (None, None)
        heir = self._held & {self._heir_key}
        try:
            # fmt: off
            rows = self._session.ask(_PROMOTE, *record, self.backend_pid, worker.schedule_hash, *place,
                                     _array(heir), self._channel, timeout=PATIENCE)
            # fmt: on
        except StatementError as error:
            if error.sqlstate == _ALREADY_TAKEN:
                preflight.check_namespace(self._session, worker.namespace, self._key)
            raise LeadershipRefused(
                f"the epoch cannot be written to argus_sched.leader on {self._session.address}: {error}"
            ) from None
        if not rows:
            raise LeadershipRefused(
                f"namespace {worker.namespace!r} was recorded under another key meanwhile"
            )
        self._held -= heir
        return int(rows[0][0] or 0)

    @_tell_losses
    def tick(self) -> None:
        if not self._look(self._timing.tick_timeout):
            raise SessionLostError(Cause.LOCK_LOST, "the session lives but does not hold the lock any more")
        self._hold_worker()

    @_tell_losses
    def keep(self) -> None:
        self._look(PATIENCE)
        self._hold_worker()

    @_tell_losses
    def watch(self, seconds: float, wake: WakeUp) -> bool:
        return self._session.watch(seconds, wake)

    @_tell_losses
    def release(self) -> None:
        keys = self._held & {self._key, self._heir_key}
        if not keys:
            return
        ((let_go, *_),) = self._session.ask(
            _RELEASE, _array(keys), _name("standby"), self._channel, timeout=self._timing.tick_timeout
        )
        self._held -= keys
        if let_go == "f":
            raise SessionLostError(Cause.LOCK_LOST, "the session did not hold the lock it was to let go")

    def close(self) -> None:
        self._session.close()

    @property
    def _channel(self) -> str:
        return f"argus_sched_{self._key}"

    def _look(self, timeout: float) -> bool:
        """Whether this session holds the leader's lock; raises SessionLostError when it is not fit to."""
        classid, objid = advisory_keys.halves(self._key)
        ((pid, in_recovery, token, holds),) = self._session.ask(_LOOK, classid, objid, timeout=timeout)
        if self._direct and (pid != str(self.backend_pid) or token != self._token):
            raise SessionLostError(Cause.FOREIGN_SESSION, preflight.pooled(self._session.address))
        if in_recovery == "t":
            raise SessionLostError(Cause.REPLICA, f"{self._session.address} is in recovery: it is no primary")
        return holds == "t"

    def _hold_worker(self) -> None:
        # After a reconnect the server may still have the old session; then the next round asks again.
        if self._worker_key not in self._held:
            self._try(self._worker_key)

    def _try(self, key: int) -> bool:
        ((granted,),) = self._session.ask(_TRY, key, timeout=PATIENCE)
        return self._note(key, granted == "t")

    def _note(self, key: int, granted: bool) -> bool:
        self._held |= {key} if granted else set()
        return granted


def _cause(error: SessionEndedError) -> Cause:
    if isinstance(error, NoAnswerError):
        return Cause.TICK_TIMEOUT
    if isinstance(error, ForeignProcessError):
        return Cause.FORKED
    return _CAUSES.get(error.sqlstate, Cause.CONNECTION_LOST)


def _name(role: str) -> str:
    return f"scheduler-{role}:{os.getpid()}"


def _array(keys: Iterable[int]) -> str:
    return "{" + ",".join(map(str, keys)) + "}"


_TRY = "SELECT pg_try_advisory_lock($1)"
_TRY_LEAD = "SELECT CASE WHEN pg_try_advisory_lock($1) THEN set_config('application_name', $2, false) END"
_WAIT = """
DO $$ BEGIN
  PERFORM set_config('lock_timeout', '{milliseconds}ms', true);
  PERFORM pg_advisory_lock({key});
  PERFORM set_config('application_name', '{name}', false);
EXCEPTION WHEN lock_not_available OR query_canceled THEN NULL;
END $$
"""
_LOOK = """
SELECT pg_backend_pid(), pg_is_in_recovery(), current_setting('argus_sched.session', true),
       EXISTS (SELECT FROM pg_locks
                WHERE locktype = 'advisory'
                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                  AND classid = $1::bigint::oid AND objid = $2::bigint::oid AND objsubid = 1
                  AND granted AND mode = 'ExclusiveLock' AND pid = pg_backend_pid())
"""
_PROMOTE = """
WITH term AS (
  INSERT INTO argus_sched.leader AS known (
         namespace, lock_key, epoch, instance, host, container, pid,
         backend_pid, schedule_hash, system_identifier, timeline, elected_at)
  VALUES ($1, $2::bigint, 1, $3::uuid, $4, $5, $6::integer,
         $7::integer, $8, $9, $10::integer, clock_timestamp())
  ON CONFLICT (namespace) DO UPDATE
     SET epoch = known.epoch + 1, instance = excluded.instance, host = excluded.host,
         container = excluded.container, pid = excluded.pid, backend_pid = excluded.backend_pid,
         schedule_hash = excluded.schedule_hash, system_identifier = excluded.system_identifier,
         timeline = excluded.timeline, elected_at = excluded.elected_at
   WHERE known.lock_key = excluded.lock_key
  RETURNING epoch)
SELECT epoch, (SELECT bool_and(pg_advisory_unlock(k)) FROM unnest($11::bigint[]) AS k), pg_notify($12, '')
  FROM term
"""
_RELEASE = """
SELECT (SELECT bool_and(pg_advisory_unlock(k)) FROM unnest($1::bigint[]) AS k),
       set_config('application_name', $2, false), pg_notify($3, '')
"""
