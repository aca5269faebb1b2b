"""What the agent's services need from the outside; the edges implement these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from argus_sched.agent.logevents import Container, Coverage, Cursor, Record


@dataclass(frozen=True)
class Reading:
    """One read of one container: how far it reached, where to go on, and what was wrong.

    `problem` is empty for a clean read. A read that ended early still counts for what it delivered
    (`coverage` says how far); with `coverage` None nothing usable was read and the container is blind.
    `notes` are things worth telling that do not blind (a damaged record in the middle of a file).
    """

    container: Container
    coverage: Coverage | None
    cursor: Cursor | None
    records: int
    bytes: int
    seconds: float
    problem: str = ""
    notes: tuple[str, ...] = ()


class LogSource(Protocol):
    """Containers of one application, and their records."""

    @property
    def node(self) -> str:
        """The label of this source in the target tree, for example `docker:labs-backend`."""
        ...

    def containers(self) -> Sequence[Container]:
        """Every container that matches, stopped ones too; raises SourceError when there is none."""
        ...

    def read(
        self,
        container: Container,
        cursor: Cursor | None,
        horizon: datetime,
        take: Callable[[Iterable[Record]], None],
    ) -> Reading:
        """Hand every record newer than `cursor` (or than `horizon`, on a first read) to `take`, oldest first.

        `take` may be called several times with consecutive batches, so memory stays bounded whatever the
        log's size. Never raises for a daemon that is away or a log that is damaged: the Reading says it.
        """
        ...

    def close(self) -> None:
        """Give connections back."""
        ...


@dataclass(frozen=True)
class LockRow:
    """One row of pg_locks for the exact key, joined to pg_stat_activity; only rows of this database."""

    pid: int  # 0 for a prepared transaction, which no process owns
    mode: str
    granted: bool
    state: str | None  # None when the role may not see it
    application_name: str | None
    client_addr: str | None
    state_seconds: float | None  # since state_change
    transaction_seconds: float | None
    wait_seconds: float | None  # of a waiter, since waitstart


@dataclass(frozen=True)
class LockSample:
    """One look at the lock: the rows of the key, which server this is, and the server's clock."""

    rows: tuple[LockRow, ...]
    in_recovery: bool
    server_time: datetime
    server: str  # host:port, for messages
    system_identifier: str | None = None  # None without the right to read it
    role: str | None = None  # who looked, for the advice which privilege it lacks
    identity: str | None = None  # equal for two looks at one database of one running server


class LockView(Protocol):
    """The lock as one database shows it."""

    def sample(self, key: int) -> LockSample:
        """One look; raises SourceError with a sentence that names the host and says what to do."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
