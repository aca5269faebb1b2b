"""What one pass has to look at: one task for each log and each lock, which knows how to judge what it saw."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from argus_sched.agent.check import Node, Result
from argus_sched.agent.hosts import host_node
from argus_sched.agent.judging.evidence import Evidence
from argus_sched.agent.judging.lock_grading import blind_lock
from argus_sched.agent.kinds.scheduler_jobs import LogLook, blind_look, look_at_log
from argus_sched.agent.kinds.scheduler_lock import database_label, observe_lock
from argus_sched.agent.packs import DatabaseSpec, JobsCheck, LockCheck, LogSpec, Pack
from argus_sched.agent.ports import LockView, LogSource
from argus_sched.clock import Clock
from argus_sched.errors import ArgusError


@dataclass(frozen=True)
class Edges:
    """What looking needs from the outside.

    `until` is the instant from which a window counts back, `host_of` the node of a database's host, None for
    the agent's own and for one that cannot be told.
    """

    clock: Clock
    # Not shown: they are bound to the environment, which holds secrets.
    open_log: Callable[[LogSpec], LogSource] = field(repr=False)
    open_locks: Callable[[Pack], Sequence[LockView]] = field(repr=False)
    until: Callable[[], datetime] = field(repr=False)
    host_of: Callable[[DatabaseSpec], str | None] = field(default=lambda _: None, repr=False)


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
        return f"{self.app}/{self.spec.node}"

    def hosts(self, edges: Edges) -> tuple[str | None, ...]:  # noqa: ARG002 - as LockTask
        """The nodes of the hosts it looks at."""
        return (self.spec.host_node,)

    def lane(self, edges: Edges) -> Hashable:
        """Equal for tasks that wait for the same host."""
        return self.spec.node.partition(":")[0], self.hosts(edges)

    def look(self, edges: Edges, evidence: Evidence) -> LogLook:
        """Read on from where `evidence` ends."""
        try:
            with closing(edges.open_log(self.spec)) as source:
                horizon = edges.until() - self.spec.window
                host = self.spec.host_node
                return look_at_log(source, self.app, self.checks, evidence, edges.clock, horizon, host)
        except ArgusError as error:
            return self.unseen(str(error), evidence, edges.clock.now())

    def unseen(self, problem: str, evidence: Evidence, now: datetime) -> LogLook:
        """What there is to judge when `problem` kept the log from being read."""
        node = Node(self.app, self.spec.node, self.spec.host_node, False, problem)
        return blind_look(self.app, self.checks, evidence, node, now)

    def away(self, edges: Edges, problem: str, evidence: Evidence) -> LogLook:
        """The same when it is known that nothing on its host can be reached."""
        look = self.unseen(problem, evidence, edges.clock.now())
        return replace(look, nodes=(*look.nodes, *host_node(self.spec.host_node, problem)))


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

    def hosts(self, edges: Edges) -> tuple[str | None, ...]:
        """The nodes of the hosts it looks at, in the order of the databases."""
        return tuple(map(edges.host_of, self.pack.databases))

    def lane(self, edges: Edges) -> Hashable:
        """Equal for tasks that wait for the same hosts."""
        return "database", self.hosts(edges)

    def look(self, edges: Edges, evidence: Evidence) -> Verdicts:
        """Look at the lock; the kind judges while it looks, since it looks again where that may help."""
        views: Sequence[LockView] = ()
        try:
            views = edges.open_locks(self.pack)
            result, nodes = observe_lock(self.check, self.app, views, edges.clock, self.hosts(edges))
            return Verdicts((result,), nodes)
        except ArgusError as error:
            return self.unseen(str(error), evidence, edges.clock.now())
        finally:
            for view in views:
                view.close()

    def unseen(self, problem: str, evidence: Evidence, now: datetime) -> Verdicts:  # noqa: ARG002 - as LogTask
        """What there is to say when `problem` kept the lock from being seen."""
        node = Node(self.app, database_label(self.app), None, False, problem)
        return Verdicts((blind_lock(self.check, self.app, node),), (node,))

    def away(self, edges: Edges, problem: str, evidence: Evidence) -> Verdicts:  # noqa: ARG002 - as LogTask
        """The same when it is known that nothing on its hosts can be reached."""
        hosts = self.hosts(edges)
        nodes = tuple(
            Node(self.app, database_label(self.app, number), host, False, problem)
            for number, host in enumerate(hosts, start=1)
        )
        blind = blind_lock(self.check, self.app, nodes[0])
        return Verdicts((blind,), (*nodes, *(node for host in hosts for node in host_node(host, problem))))


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
