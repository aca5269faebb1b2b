"""The check kind `scheduler_lock`: looks at the lock on each database of a pack, again where it may help."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from argus_sched.agent.check import Node, Result
from argus_sched.agent.judging.lock_findings import RESAMPLE_SPAN
from argus_sched.agent.judging.lock_grading import blind_lock, grade_lock, may_pass
from argus_sched.agent.packs import LockCheck
from argus_sched.agent.ports import LockSample, LockView
from argus_sched.agent.status import Phase, Status
from argus_sched.clock import Clock
from argus_sched.errors import SourceError

PAUSE_SECONDS = 0.5


def observe_lock(
    check: LockCheck, app: str, views: Sequence[LockView], clock: Clock
) -> tuple[Result, tuple[Node, ...]]:
    """The verdict on the lock, and one node for each of `views` (at least one).

    Looks again every half second, for about three seconds, while the verdict may pass by itself. A database
    that cannot be read makes the lock blind, unless what the others show is wrong whatever it hides.
    """
    watches = [_Watch(view) for view in views]
    finish = clock.elapsed() + RESAMPLE_SPAN.total_seconds()
    never = threading.Event()
    _look(check, watches)
    while _unsettled(check, watches) and clock.elapsed() + PAUSE_SECONDS <= finish:
        clock.wait(never, PAUSE_SECONDS)
        _look(check, watches)
    nodes = tuple(watch.node(app, number) for number, watch in enumerate(watches, start=1))
    return _verdict(check, app, watches, nodes), nodes


class _Watch:
    """One database under observation: the looks at it, oldest first, and what ended them."""

    def __init__(self, view: LockView) -> None:
        self.view = view
        self.looks: list[LockSample] = []
        self.problem = ""

    def node(self, app: str, number: int) -> Node:
        source = f"database:{app}" if number == 1 else f"database:{app}/{number}"
        return Node(app, source, None, not self.problem, self.problem)


def _look(check: LockCheck, watches: Sequence[_Watch]) -> None:
    for watch in watches:
        try:
            watch.looks.append(watch.view.sample(check.key))
        except SourceError as error:
            watch.problem = str(error)


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
