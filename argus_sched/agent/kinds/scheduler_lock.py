"""The check kind `scheduler_lock`: looks at the lock on each database of a pack, again where it may help."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from functools import partial
from itertools import chain, zip_longest

from argus_sched.agent.check import Node, Result
from argus_sched.agent.fan_out import fan_out
from argus_sched.agent.hosts import host_node
from argus_sched.agent.judging.lock_findings import RESAMPLE_SPAN
from argus_sched.agent.judging.lock_grading import blind_lock, grade_lock, may_pass
from argus_sched.agent.packs import LockCheck
from argus_sched.agent.ports import LockSample, LockView
from argus_sched.agent.status import Phase, Status
from argus_sched.clock import Clock
from argus_sched.errors import HostError, SourceError

PAUSE_SECONDS = 0.5


def observe_lock(
    check: LockCheck, app: str, views: Sequence[LockView], clock: Clock, hosts: Sequence[str | None] = ()
) -> tuple[Result, tuple[Node, ...]]:
    """The verdict on the lock, and one node for each of `views` (at least one), then those of their `hosts`.

    Looks again every half second, for about three seconds, while the verdict may pass by itself. A database
    that cannot be read makes the lock blind, unless what the others show is wrong whatever it hides.
    """
    watches = [_Watch(view, host) for view, host in zip_longest(views, hosts)]
    finish = clock.elapsed() + RESAMPLE_SPAN.total_seconds()
    never = threading.Event()
    _look(check, watches)
    while _unsettled(check, watches) and clock.elapsed() + PAUSE_SECONDS <= finish:
        clock.wait(never, PAUSE_SECONDS)
        _look(check, watches)
    nodes = tuple(watch.node(app, number) for number, watch in enumerate(watches, start=1))
    verdict = _verdict(check, app, watches, nodes)
    return verdict, (*nodes, *chain.from_iterable(host_node(watch.host, watch.away) for watch in watches))


class _Watch:
    """One database under observation: the looks at it, oldest first, and what ended them."""

    def __init__(self, view: LockView, host: str | None) -> None:
        self.host = host
        self.looks: list[LockSample] = []
        self.problem = ""
        self.away = ""
        self._view = view

    def look(self, key: int) -> None:
        try:
            self.looks.append(self._view.sample(key))
        except SourceError as error:
            self.problem = str(error)
            self.away = self.problem if isinstance(error, HostError) else ""

    def node(self, app: str, number: int) -> Node:
        return Node(app, database_label(app, number), self.host, not self.problem, self.problem)


def database_label(app: str, number: int = 1) -> str:
    """The node of an application's database; `number` counts from 1."""
    return f"database:{app}" if number == 1 else f"database:{app}/{number}"


def _look(check: LockCheck, watches: Sequence[_Watch]) -> None:
    """One look at each database, side by side; each is bounded by its view's own time limit."""
    work = {number: partial(watch.look, check.key) for number, watch in enumerate(watches)}
    if len(work) == 1:
        work[0]()
        return
    for failed in (one for one in fan_out(work, math.inf).values() if one is not None):
        raise failed


def _unsettled(check: LockCheck, watches: Sequence[_Watch]) -> bool:
    if any(watch.problem for watch in watches):
        return False
    return may_pass(check, [watch.looks for watch in watches])


def _verdict(check: LockCheck, app: str, watches: Sequence[_Watch], nodes: Sequence[Node]) -> Result:
    down = [node for node in nodes if not node.up]
    seen = [watch.looks for watch in watches if not watch.problem]
    if not seen:
        return blind_lock(check, app, down[0])
    graded = grade_lock(check, app, seen)
    # The lock that nobody holds here may be held on the server that cannot be seen.
    certain = graded.status is Status.CRIT and graded.phase is not Phase.UNHELD
    return graded if certain or not down else blind_lock(check, app, down[0], graded)
