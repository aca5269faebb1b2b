"""What the scheduler's services need from the outside; the edges implement these."""

from __future__ import annotations

from typing import Protocol

from argus_sched.errors import SchedulerError
from argus_sched.scheduling.leadership import Cause, Server
from argus_sched.scheduling.wakeup import WakeUp


class SessionLostError(SchedulerError):
    """The lock's session is gone, silent or not ours any more; nothing may be done on it."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail


class WaitUnsupportedError(SchedulerError):
    """The server does not let this role wait for a lock within a bound; ask repeatedly instead."""


class LeaderLock(Protocol):
    """One dedicated session and the locks it may hold: the leader's, the heir's, and this worker's own.

    Each method is one round trip with a time limit and raises SessionLostError when the session ended, did
    not answer in time or is no longer ours; then only `close` may follow. They are called by one thread.
    """

    @property
    def backend_pid(self) -> int:
        """The process id of the session's server process."""
        ...

    @property
    def supports_lease(self) -> bool:
        """True when the server can end a session that stays silent (PostgreSQL 14 and later)."""
        ...

    @property
    def server(self) -> Server | None:
        """Which server was reached; None where it does not tell."""
        ...

    def try_lead(self) -> bool:
        """Take the leader's lock if it is free; True when it was."""
        ...

    def try_heir(self) -> bool:
        """Take the heir's lock if it is free; True when it was."""
        ...

    def wait_to_lead(self, seconds: float, wake: WakeUp) -> bool:
        """Queue for the leader's lock for at most `seconds`, or until woken; True when it was granted.

        Raises WaitUnsupportedError where the server refuses such a wait.
        """
        ...

    def promote(self) -> int:
        """Record this worker as the leader, give up the heir's lock and say so; the new epoch.

        Raises LeadershipRefused when the record cannot be written or the key belongs to another namespace.
        """
        ...

    def tick(self) -> None:
        """Ask whether this session still holds the leader's lock, on a primary, as itself."""
        ...

    def keep(self) -> None:
        """Ask whether this session is still ours, so that the lease goes on."""
        ...

    def watch(self, seconds: float, wake: WakeUp) -> bool:
        """Look at the socket until `seconds` have passed, `wake` is set, or news came.

        True when another worker announced that it let go of a lock. An end of the session raises within
        milliseconds.
        """
        ...

    def release(self) -> None:
        """Let go of the leader's and heir's locks, and tell the other workers."""
        ...

    def close(self) -> None:
        """End the session; in a forked child only forget it, since the session is the parent's."""
        ...
