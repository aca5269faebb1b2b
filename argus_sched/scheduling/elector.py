"""The elector: this process's part in the election, in a thread of its own.

Apart from every event loop, since a loop that is busy for 100 ms notices nothing for 100 ms.
"""

from __future__ import annotations

import functools
import math
import os
import random
import threading
from collections.abc import Callable

from argus_sched import advisory_keys
from argus_sched.clock import Clock, SystemClock
from argus_sched.scheduling.announcer import Announcer, Emit
from argus_sched.scheduling.election import Election
from argus_sched.scheduling.leadership import Cause, Role, Step, Term, Timing
from argus_sched.scheduling.ports import LeaderLock


class Elector:
    """Makes this process leader, heir or standby, and says so the moment it changes.

    `on_promote(term)` is called once the epoch is recorded, and must return well within a tick, since none is
    sent meanwhile; when it raises, the lock goes to another worker. `on_demote(term, cause)` is called when
    the term has ended. Both run in the elector's thread and are guarded, as is `emit(event, fields)`.

    `candidate=False` takes no part until `stand`. `watch=False` leaves out the look at the socket, and
    `tick=False` the ownership tick, without which a leader believes for ever: they show what each is for.
    """

    def __init__(
        self,
        lock_factory: Callable[[], LeaderLock],
        timing: Timing,
        *,
        namespace: str,
        instance: str,
        on_promote: Callable[[Term], None],
        on_demote: Callable[[Term, Cause], None],
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        key: int = advisory_keys.LEADER.number,
        emit: Emit = lambda _event, _fields: None,
        candidate: bool = True,
        watch: bool = True,
        tick: bool = True,
    ) -> None:
        timing.check()
        self.namespace = namespace
        self.instance = instance
        self._clock = clock or SystemClock()
        self._new_election = functools.partial(
            Election,
            lock_factory,
            timing,
            announcer=Announcer(key, emit),
            on_promote=on_promote,
            on_demote=on_demote,
            clock=self._clock,
            jitter=jitter,
            eligible_from=0.0 if candidate else math.inf,
            watch=watch,
            tick=tick,
        )
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._thread: threading.Thread | None = None
        self._election = self._new_election()

    @property
    def role(self) -> Role:
        """What this worker is; a forked child has no part in the election and is `stopped`."""
        return self._election.role if self._is_ours() else Role.STOPPED

    @property
    def term(self) -> Term | None:
        """This worker's reign; None while it does not lead."""
        return self._election.term if self._is_ours() else None

    @property
    def trusted_until(self) -> float:
        """Until when the leader may act, in elapsed seconds of the clock; 0 while it does not lead."""
        return self._election.trusted_until if self._is_ours() else 0.0

    def is_trusted(self) -> bool:
        """True while this process leads and its last good tick is young enough to act on."""
        return self.role is Role.LEADER and self._clock.elapsed() < self.trusted_until

    @property
    def timing(self) -> Timing:
        """The figures in force: the recipe's when the server has no lease to give."""
        return self._election.timing

    @property
    def problem(self) -> str | None:
        """Why this worker cannot lead now, as one sentence; None when it leads or could."""
        return self._election.problem

    @property
    def tick_seconds(self) -> float:
        """How long the last tick's answer took."""
        return self._election.tick_seconds

    @property
    def last_turn(self) -> float:
        """When the last round ended, in elapsed seconds; in a healthy elector at most a few seconds ago."""
        return self._election.last_turn

    def is_alive(self) -> bool:
        """True while the elector's thread runs in this process; a fork copies the object, not the thread."""
        return self._is_ours() and self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Join the election. A second call does nothing; in a forked child it starts afresh."""
        if self.is_alive():
            return
        if self._election.lock:
            self._election.lock.close()
        self._begin()
        self._thread = threading.Thread(target=self._run, name="argus-elector", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> bool:
        """Demote, hand the lock over and leave; True when that was done within `timeout` seconds."""
        if not self._is_ours():
            return True
        self._election.stopping = True
        self._election.wake.set()
        if not self.is_alive():
            self.run_once()
        elif self._thread and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return self.role is Role.STOPPED

    def resign(self, cooldown: float = math.inf) -> None:
        """Give up leadership and take no part for `cooldown` seconds; without a figure, until `stand`."""
        self._election.eligible_from = self._clock.elapsed() + cooldown
        self._election.wake.set()

    def stand(self) -> None:
        """Take part again from now on, after `resign` or `candidate=False`."""
        self._election.eligible_from = 0.0
        self._election.wake.set()

    def run_once(self) -> Step:
        """One round of the election, as the thread repeats it; says which step it was. Never raises."""
        return self._election.run_once()

    def _run(self) -> None:
        while self.role is not Role.STOPPED:
            self.run_once()

    def _is_ours(self) -> bool:
        return self._owner == os.getpid()
