"""The cells of the lock once more, with real sessions in a real Postgres and the agent's own view of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import psycopg
import pytest

from argus_sched.agent.packs import Pack
from argus_sched.agent.ports import LockSample, LockView
from argus_sched.postgres.embedded import EmbeddedPostgres, free_port, temporary_database
from argus_sched.postgres.lock_view import PostgresLockView
from tests.matrix.plans import PLANS
from tests.matrix.play import Play, act
from tests.matrix.runs import silence
from tests.matrix.table import CELLS
from tests.matrix.world import KEY, World

REAL = (
    "lock held by one",
    "lock held by nobody",
    "lock's key in another database",
    "holder through a pooler",
    "failover in progress",
    "database down",
    "job dead",
)
PATIENCE = 20.0


class RealLock:
    """The lock of the play's world in a real database: sessions come and go as its holders do."""

    def __init__(self, world: World, dsn: str) -> None:
        self._world = world
        self._dsn = dsn
        self._sessions: dict[tuple[int, str], psycopg.Connection] = {}

    def open(self, _: Pack) -> Sequence[LockView]:
        """The views of one pass."""
        self._follow()
        away = f"postgresql://postgres@127.0.0.1:{free_port()}/x"
        return [PostgresLockView(away if self._world.database_problem else self._dsn, PATIENCE)]

    def close(self) -> None:
        """End every session."""
        for session in self._sessions.values():
            session.close()

    def _follow(self) -> None:
        wanted = {(row.pid, row.application_name or "") for row in self._world.holders}
        for holder in self._sessions.keys() - wanted:
            session = self._sessions.pop(holder)
            session.execute("SELECT pg_advisory_unlock(%s)", [KEY])
            session.close()
        for holder in wanted - self._sessions.keys():
            session = psycopg.connect(self._dsn, autocommit=True, application_name=holder[1])
            session.execute("SELECT pg_advisory_lock(%s)", [KEY])
            self._sessions[holder] = session


@pytest.fixture
def elsewhere(postgres: EmbeddedPostgres) -> Iterator[None]:
    """The very same key, held in another database of the same server."""
    with (
        temporary_database(postgres, "matrix_elsewhere") as dsn,
        psycopg.connect(dsn, autocommit=True) as session,
    ):
        session.execute("SELECT pg_advisory_lock(%s)", [KEY])
        yield


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", REAL)
def test_real_sessions_are_told_of_as_the_table_says(name: str, seed: int, database: str) -> None:
    cell = next(cell for cell in CELLS if cell.name == name)
    with ExitStack() as stack, silence():

        def set_up(play: Play) -> None:
            lock = RealLock(play.world, database)
            stack.callback(lock.close)
            play.stage.open_locks = lock.open

        act(cell, seed, PLANS[name], set_up)


def test_a_view_shows_what_the_world_supposes(database: str) -> None:
    with psycopg.connect(database, autocommit=True, application_name="scheduler") as session:
        session.execute("SELECT pg_advisory_lock(%s)", [KEY])
        view = PostgresLockView(database, PATIENCE)
        sample: LockSample = view.sample(KEY)
        view.close()
    (row,) = sample.rows
    assert (row.mode, row.granted, row.state, row.application_name) == (
        "ExclusiveLock",
        True,
        "idle",
        "scheduler",
    )
