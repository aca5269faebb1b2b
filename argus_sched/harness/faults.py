"""What can be done to a cluster: each fault is one function of its name that carries out a step.

Each aims at the leader of the moment, records what it did and when, and leaves nothing broken behind.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from argus_sched.errors import SettingsError, SourceError
from argus_sched.harness import side_servers
from argus_sched.harness.aftermath import afterwards
from argus_sched.harness.cluster import Cluster, Worker
from argus_sched.harness.history import Fault, Skewed
from argus_sched.harness.lines import Lines, ProxyLines
from argus_sched.harness.profiles import Profile
from argus_sched.harness.proxy import Proxy
from argus_sched.harness.scenario import Step
from argus_sched.postgres.embedded import EmbeddedPostgres
from argus_sched.postgres.witness import Witness

PATIENCE = 60.0
BREATH = 0.3  # a dead worker's place stays empty this long, as with any supervisor


@dataclass
class Ground:
    """What the faults act on: the cluster, its database, and the lines between them."""

    cluster: Cluster
    witness: Witness
    profile: Profile
    server: EmbeddedPostgres | None = None
    lines: Lines = field(default_factory=ProxyLines)
    proxy: Proxy | None = None

    @property
    def database(self) -> EmbeddedPostgres:
        """The server, which a fault may stop; SettingsError when it is not ours."""
        if self.server is None:
            raise SettingsError(
                "this database was not started by the harness: leave out restart, crash and standby"
            )
        return self.server

    @property
    def relay(self) -> Proxy:
        """The proxy between workers and database; SettingsError when there is none."""
        if self.proxy is None:
            raise SettingsError("there is no proxy in this run: name slow, pooler or standby in --faults")
        return self.proxy

    def leader(self) -> Worker:
        """The leader, waited for."""
        self.cluster.wait_until(
            lambda: self.cluster.in_role("leader") is not None, PATIENCE, "no leader appeared"
        )
        leader = self.cluster.in_role("leader")
        if leader is None:
            raise SourceError("the leader went away at once")
        return leader

    def record(self, step: Step, worker: Worker, at: float, promote_from: float | None = None) -> None:
        """Put the fault on record, from `at` until now."""
        detail = f"{step.text} on {worker.name}".strip()
        since = at if promote_from is None else promote_from
        self.cluster.record(Fault(at, time.time(), step.fault, worker.name, True, since, detail))

    def put_right(self) -> None:
        """Wake what is frozen and heal every line: for the end of a run."""
        for worker in self.cluster.live():
            if worker.frozen_at is not None:
                self.cluster.thaw(worker)
        for slot in self.cluster.slots:
            self.lines.heal(slot)


def kill(ground: Ground, step: Step) -> None:
    """kill -9 of the leader."""
    leader = ground.leader()
    ground.record(step, leader, ground.cluster.kill(leader))
    _replace(ground, leader)


def pair(ground: Ground, step: Step) -> None:
    """kill -9 of the leader and of the heir, if there is one."""
    leader, heir = ground.leader(), ground.cluster.in_role("heir")
    # The heir first: it would be quick enough to take over in between.
    if heir is not None:
        ground.cluster.kill(heir)
    ground.record(step, leader, ground.cluster.kill(leader))
    for worker in filter(None, (leader, heir)):
        _replace(ground, worker)


def terminate(ground: Ground, step: Step) -> None:
    """pg_terminate_backend of every session that holds the lock."""
    leader = ground.leader()
    # The first answer after a restart may be none, as the witness's own connection has ended with the server.
    held = ground.witness.holders() or ground.witness.holders()
    if not held:
        return  # with guards off everyone may lead without the lock
    at = time.time()
    for pid in held:
        ground.witness.terminate(pid)
    ground.record(step, leader, at)


def freeze(ground: Ground, step: Step) -> None:
    """SIGSTOP of the leader, SIGCONT after a while."""
    leader = ground.leader()
    at = ground.cluster.freeze(leader)
    ground.cluster.rest(step.seconds)
    ground.cluster.thaw(leader)
    ground.record(step, leader, at)


def restart(ground: Ground, step: Step) -> None:
    """A fast restart of Postgres: it tells every session."""
    _bounce(ground, step, "fast")


def crash(ground: Ground, step: Step) -> None:
    """An immediate stop of Postgres, and its recovery."""
    _bounce(ground, step, "immediate")


def partition(ground: Ground, step: Step) -> None:
    """The leader's line is silent, without FIN."""
    leader, at = ground.leader(), time.time()
    ground.lines.silence(leader.slot, *step.directions)
    ground.cluster.rest(step.seconds)
    ground.lines.heal(leader.slot)
    ground.record(step, leader, at)


def slow(ground: Ground, step: Step) -> None:
    """Everything on the leader's line takes longer."""
    leader, at = ground.leader(), time.time()
    ground.relay.delay(leader.slot, step.amount)
    ground.cluster.rest(step.seconds)
    ground.relay.heal(leader.slot)
    ground.record(step, leader, at)


def stop(ground: Ground, step: Step) -> None:
    """A clean stop of the leader."""
    leader = ground.leader()
    ground.record(step, leader, ground.cluster.ask_to_stop(leader))
    _replace(ground, leader)


def rolling(ground: Ground, step: Step) -> None:
    """Every slot is stopped and started again, one after the other."""
    deploy(ground, lambda worker, at: ground.record(step, worker, at))


def deploy(ground: Ground, on_leader: Callable[[Worker, float], None] = lambda *_: None) -> None:
    """Stop and start every slot in turn; `on_leader` hears of each leader that was stopped, and when."""
    for name in ground.cluster.slots:
        worker = next((one for one in ground.cluster.live() if one.slot == name), None)
        if worker is None:
            continue
        led = ground.cluster.in_role("leader") is worker
        at = ground.cluster.ask_to_stop(worker)
        if led:
            on_leader(worker, at)
        _replace(ground, worker)
        ground.cluster.wait_until(ground.cluster.complete, PATIENCE, f"{name} did not come back")


def clock(ground: Ground, step: Step) -> None:
    """The leader's wall clock is wrong for a while."""
    leader, at = ground.leader(), time.time()
    for amount, seconds in ((step.amount, step.seconds), (0.0, 0.0)):
        (ground.cluster.folder / f"{leader.name}.skew").write_text(f"{amount}")
        ground.cluster.record(Skewed(time.time(), leader.name, amount))
        with suppress(ProcessLookupError):
            os.kill(leader.pid, signal.SIGUSR2)
        ground.cluster.rest(seconds)
    ground.record(step, leader, at)


def fork(ground: Ground, step: Step) -> None:
    """The leader forks a child, which inherits its sockets, and is killed; the child lives on for a while."""
    leader = ground.leader()
    path = ground.cluster.folder / f"{leader.name}.child"
    os.kill(leader.pid, signal.SIGUSR1)
    ground.cluster.wait_until(
        lambda: path.exists() and bool(path.read_text()), PATIENCE, f"{leader.name} forked nothing"
    )
    with afterwards("kill", "-KILL", path.read_text()):
        at = ground.cluster.kill(leader)
        _replace(ground, leader)
        ground.cluster.rest(step.seconds - (time.time() - at))
        ground.record(step, leader, at)


def pooler(ground: Ground, step: Step) -> None:
    """Every worker reaches Postgres through a pooler that hands one session to all of them."""
    here = ground.witness.address
    with side_servers.pooler(here, *ground.witness.login) as there:
        _detour(ground, step, ground.leader(), list(ground.cluster.slots), there, here)


def standby(ground: Ground, step: Step) -> None:
    """The leader reaches a hot standby of the same cluster, where nobody holds the key."""
    here = ground.witness.address
    with side_servers.hot_standby(ground.database) as there:
        leader = ground.leader()
        _detour(ground, step, leader, [leader.slot], there, here)


def _detour(
    ground: Ground,
    step: Step,
    leader: Worker,
    slots: list[str],
    there: tuple[str, int],
    here: tuple[str, int],
) -> None:
    at = time.time()
    for slot in slots:
        ground.relay.point(slot, *there)
    ground.cluster.rest(step.seconds)
    back = time.time()
    for slot in slots:
        ground.relay.point(slot, *here)
    # With every worker on the detour nobody can lead before the way back is open.
    ground.record(step, leader, at, at if len(slots) < len(ground.cluster.slots) else back)


def _bounce(ground: Ground, step: Step, mode: str) -> None:
    leader, at = ground.leader(), time.time()
    ground.database.stop(mode)
    ground.database.start()
    ground.record(step, leader, at, time.time())


def _replace(ground: Ground, worker: Worker) -> None:
    ground.cluster.rest(BREATH)
    ground.cluster.refill(worker.slot)


Inject = Callable[[Ground, Step], None]
_ALL: tuple[Inject, ...] = (kill, pair, terminate, freeze, restart, crash, partition)
_ALL += (slow, stop, rolling, clock, fork, pooler, standby)
INJECT = {inject.__name__: inject for inject in _ALL}
