"""What one pass has to look at: one task for each log and each lock, which knows how to judge what it saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from argus_sched.agent.check import Node, Result
from argus_sched.agent.evidence import Evidence
from argus_sched.agent.kinds.scheduler_jobs import LogLook, blind_jobs, look_at_log
from argus_sched.agent.kinds.scheduler_lock import observe_lock
from argus_sched.agent.lock_grading import blind_lock
from argus_sched.agent.packs import JobsCheck, LockCheck, LogSpec, Pack
from argus_sched.agent.ports import LockView, LogSource
from argus_sched.clock import Clock


@dataclass(frozen=True)
class Edges:
    """What looking needs from the outside; `until` is the instant from which a window counts back."""

    clock: Clock
    open_log: Callable[[LogSpec], LogSource]
    open_locks: Callable[[Pack], Sequence[LockView]]
    until: Callable[[], datetime]


class Verdicts(NamedTuple):
    """The results of one task, and its part of the target tree."""

    results: tuple[Result, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class LogTask:
    """The log of one application, read once for all its jobs."""

    app: str
    spec: LogSpec
    checks: tuple[JobsCheck, ...]

    @property
    def key(self) -> str:
        """Names the task within a pass."""
        return f"{self.app}/{self.source}"

    @property
    def source(self) -> str:
        """The node of the target tree that is read."""
        return self.spec.node

    def look(self, edges: Edges, evidence: Evidence) -> LogLook:
        """Read on from where `evidence` ends."""
        with closing(edges.open_log(self.spec)) as source:
            horizon = edges.until() - self.spec.window
            return look_at_log(source, self.app, self.checks, evidence, edges.clock, horizon)

    def unseen(self, node: Node) -> Verdicts:
        """UNKNOWN for every job, because of `node`."""
        return Verdicts(tuple(r for check in self.checks for r in blind_jobs(check, self.app, node)), (node,))


@dataclass(frozen=True)
class LockTask:
    """One lock of one application, on all its databases."""

    app: str
    pack: Pack
    check: LockCheck

    @property
    def key(self) -> str:
        """Names the task within a pass."""
        return f"{self.app}/{self.check.id}"

    @property
    def source(self) -> str:
        """The node of the target tree that is read."""
        return f"database:{self.app}"

    def look(self, edges: Edges, evidence: Evidence) -> Verdicts:  # noqa: ARG002 - one signature for all tasks
        """Look at the lock; the kind judges while it looks, since it looks again where that may help."""
        views = edges.open_locks(self.pack)
        try:
            result, nodes = observe_lock(self.check, self.app, views, edges.clock)
            return Verdicts((result,), nodes)
        finally:
            for view in views:
                view.close()

    def unseen(self, node: Node) -> Verdicts:
        """UNKNOWN for the lock, because of `node`."""
        return Verdicts((blind_lock(self.check, self.app, node),), (node,))


Task = LogTask | LockTask
Look = LogLook | Verdicts


def tasks_of(packs: Iterable[Pack]) -> Iterator[Task]:
    """The tasks of a pass, in the order of the packs."""
    for pack in packs:
        jobs = tuple(check for check in pack.checks if isinstance(check, JobsCheck))
        if pack.logs is not None and jobs:
            yield LogTask(pack.app, pack.logs, jobs)
        for check in pack.checks:
            if isinstance(check, LockCheck):
                yield LockTask(pack.app, pack, check)
