"""How fast leadership moves: `python tests/bench/bench_election.py [--count 20] [--timing default]`.

Real workers on an embedded Postgres of its own. *promotion* is from the fault to the new leader's open
gate, *demotion* from the fault to the old leader's closed one; both by CLOCK_MONOTONIC, which processes of
one machine share. For a restart it begins when the server accepts connections again.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from argus_sched.postgres.embedded import EmbeddedPostgres
from tests.workers.election_cluster import Cluster, Process, prepare


@dataclass
class Figures:
    """Milliseconds of one fault, and the targets for p50, p99 and the largest."""

    name: str
    targets: tuple[float | None, float | None, float | None]
    milliseconds: list[float] = field(default_factory=list)

    def add(self, since: float, until: float) -> None:
        self.milliseconds.append((until - since) * 1000)

    def line(self) -> str:
        figures = [quantile(self.milliseconds, share) for share in (0.5, 0.99, 1.0)]
        cells = [
            f"{figure:8.1f} / {'-' if target is None else format(target, 'g'):>4}"
            for figure, target in zip(figures, self.targets, strict=True)
        ]
        missed = any(t is not None and f > t for f, t in zip(figures, self.targets, strict=True))
        return f"{self.name:<44}" + "  ".join(cells) + f"  n={len(self.milliseconds)}{'  MISSED' * missed}"


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, -int(-share * len(ordered) // 1) - 1))]


class Bench:
    """Three workers at all times: the leader, the heir, and one that will be the next heir."""

    def __init__(self, workers: Cluster) -> None:
        self.workers = workers
        self.leader, self.heir = workers.start_leader_and_heir()
        self.third = workers.start()
        self.third.expect("standby")

    def kill(self, figures: Figures) -> None:
        since = self.leader.send(signal.SIGKILL)
        self._follow(since, figures)
        self._replace()

    def freeze(self, figures: Figures) -> None:
        since = self.leader.send(signal.SIGSTOP)
        self._follow(since, figures)
        self.leader.send(signal.SIGKILL)
        self._replace()

    def kill_both(self, figures: Figures) -> None:
        self.leader.send(signal.SIGKILL)
        since = self.heir.send(signal.SIGKILL)
        figures.add(since, self.third.expect("promote", since)["at"])
        self.leader.end()
        self.heir.end()
        self.leader, self.heir, self.third = self.third, self.workers.start(), self.workers.start()
        self.third.expect("standby")
        self.heir, self.third = self._heir_first(since, (self.heir, self.third))

    def stop(self, figures: Figures) -> None:
        since = self.leader.tell("stop")
        self._follow(since, figures)
        self._replace()

    def terminate(self, demotions: Figures, promotions: Figures) -> None:
        backend = self.leader.said("elected")[-1]["backend_pid"]
        with self.workers.connect() as connection:
            since = time.monotonic()
            connection.execute("SELECT pg_terminate_backend(%s)", (backend,))
        demotions.add(since, self.leader.expect("demote", since)["at"])
        self._follow(since, promotions)
        self.leader.expect("standby", since)
        self.leader, self.heir, self.third = self.heir, self.third, self.leader

    def restart(self, server: EmbeddedPostgres, figures: Figures) -> None:
        since = time.monotonic()
        server.stop("fast")
        server.start()
        accepting = time.monotonic()
        winner = self._winner(since)
        figures.add(accepting, max(winner.expect("promote", since)["at"], accepting))
        others = [each for each in (self.leader, self.heir, self.third) if each is not winner]
        self.leader = winner
        for other in others:
            other.expect("recovered", since)
        self.heir, self.third = self._heir_first(since, others)

    def _follow(self, since: float, figures: Figures) -> None:
        figures.add(since, self.heir.expect("promote", since)["at"])
        self.third.expect("heir", since)

    def _replace(self) -> None:
        self.leader.end()
        self.leader, self.heir, self.third = self.heir, self.third, self.workers.start()
        self.third.expect("standby")

    def _winner(self, since: float) -> Process:
        return self._first("promote", since, (self.leader, self.heir, self.third))

    def _heir_first(self, since: float, pair: Sequence[Process]) -> tuple[Process, Process]:
        heir = self._first("heir", since, pair)
        return heir, next(each for each in pair if each is not heir)

    @staticmethod
    def _first(event: str, since: float, among: Sequence[Process]) -> Process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for worker in among:
                if any(said["at"] >= since for said in worker.said(event)):
                    return worker
            time.sleep(0.002)
        raise TimeoutError(f"no worker said {event!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--timing", choices=("default", "fast"), default="default")
    arguments = parser.parse_args()
    lease = {"default": 3000.0, "fast": 1000.0}[arguments.timing]
    kills = Figures("kill -9: promotion", (10, 50, 250))
    both = Figures("kill -9 of leader and heir: promotion", (None, None, 1000))
    demotions = Figures("terminate: demotion", (1, 30, 100))
    promotions = Figures("terminate: promotion", (10, 50, 250))
    stops = Figures("clean stop: promotion", (5, 20, 100))
    freezes = Figures("SIGSTOP: promotion", (None, None, lease + 100))
    restarts = Figures("restart: promotion after accepting", (100, 500, None))
    with EmbeddedPostgres() as server:
        dsn = server.create_database("labs")
        prepare(dsn)
        with Cluster(dsn, "--timing", arguments.timing) as workers:
            bench = Bench(workers)
            few = max(1, arguments.count // 4)
            plan: list[tuple[int, Callable[[], None]]] = [
                (arguments.count, lambda: bench.kill(kills)),
                (arguments.count, lambda: bench.terminate(demotions, promotions)),
                (arguments.count, lambda: bench.stop(stops)),
                (few, lambda: bench.kill_both(both)),
                (few, lambda: bench.freeze(freezes)),
                (few, lambda: bench.restart(server, restarts)),
            ]
            for times, fault in plan:
                for _ in range(times):
                    fault()
            most = workers.most_holders
    print(f"{'milliseconds, measured / target':<44}{'p50':>15}  {'p99':>15}  {'max':>15}")
    for figures in (kills, both, demotions, promotions, stops, freezes, restarts):
        print(figures.line())
    print(f"most sessions that held the lock at one moment: {most}")


if __name__ == "__main__":
    main()
