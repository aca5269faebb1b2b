"""What one scheduler carries: `python tests/bench/bench_scheduler.py [--schedules 100000] [--seconds 20]`.

On an embedded Postgres of its own, in this process: lateness of 1,500 fires a second out of 100,000
schedules (nominal due time to the start of the body, claim included), promotion with all of them loaded (lock
won to the first fire claimed), and claims through the store alone, one by one and 20,000 at an instant.
"""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from argus_sched import Fire, Scheduler, every
from argus_sched.postgres.claim_store import PostgresStore
from argus_sched.postgres.embedded import EmbeddedPostgres
from argus_sched.scheduling.claims import Batch, Outcome, Result, Verdict, Want
from argus_sched.scheduling.job import Job, declare

PATIENCE = 300.0


def say(name: str, figure: str, target: str, missed: bool) -> None:
    print(f"{name:<62}{figure:>26}   target {target}{'   MISSED' if missed else ''}", flush=True)


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def wait_until(probe: object) -> None:
    deadline = time.monotonic() + PATIENCE
    while not probe():  # type: ignore[operator]  # a callable
        if time.monotonic() > deadline:
            sys.exit("gave up waiting")
        time.sleep(0.02)


class Load:
    """A scheduler with many schedules, spread so that the same number is due each moment."""

    def __init__(self, dsn: str, schedules: int, rate: float) -> None:
        self.lateness: list[float] = []
        interval = timedelta(seconds=schedules / rate)
        self.scheduler = Scheduler(dsn, namespace="bench", migrate=True, threads=64)
        for number in range(schedules):
            phase = (interval * number) / schedules
            trigger = every(seconds=interval.total_seconds(), phase=phase)
            self.scheduler.add_job(self.note, trigger, id=f"job-{number}", catch_up_window=timedelta(hours=1))

    def note(self, fire: Fire) -> None:
        self.lateness.append((datetime.now(UTC) - fire.due).total_seconds())

    def start(self) -> None:
        self.scheduler.start()
        wait_until(lambda: self.scheduler.status().role != "standby" or self.scheduler.status().problem)

    def measure(self, seconds: float) -> tuple[float, list[float]]:
        """Fires a second, and their lateness in seconds, over a steady stretch."""
        self.lateness.clear()
        time.sleep(seconds)
        found = list(self.lateness)
        return len(found) / seconds, found


def steady(load: Load, rate: float, seconds: float) -> None:
    load.start()
    wait_until(lambda: len(load.lateness) > 2 * rate and quantile(load.lateness[-200:], 0.9) < 0.1)
    gc.freeze()
    time.sleep(2)
    found, lateness = load.measure(seconds)
    late = [quantile(lateness, share) * 1000 for share in (0.5, 0.99, 1.0)]
    name = f"{len(load.scheduler.jobs):,} schedules: fires a second"
    say(name, f"{found:,.0f}", f"{rate:,.0f}", found < 0.98 * rate)
    figure = f"{late[0]:.1f} / {late[1]:.1f} / {late[2]:.1f} ms"
    say("    lateness p50 / p99 / max", figure, "- / 25 / - ms", late[1] > 25)


def promotion(load: Load, rounds: int) -> None:
    """Let the scheduler resign and win again: its standby's gate opens with every schedule loaded."""
    taken = []
    metrics = load.scheduler._metrics.promotion_seconds
    for _ in range(rounds):
        before, count = metrics.sum, sum(metrics.counts)
        load.scheduler.resign(cooldown=0.3)
        wait_until(lambda count=count: sum(metrics.counts) > count)  # type: ignore[misc]  # the round's count
        taken.append((metrics.sum - before) * 1000)
        time.sleep(1)
    figure = f"{quantile(taken, 0.5):.0f} / {max(taken):.0f} ms"
    say(
        f"promotion with {len(load.scheduler.jobs):,} schedules p50 / max", figure, "250 ms", max(taken) > 250
    )


def claims(dsn: str, burst: int) -> None:
    jobs = [declare(lambda: None, every(minutes=1), id=f"claim-{number}") for number in range(burst)]
    now = datetime.now(UTC)
    store = PostgresStore(dsn, "claims", str(uuid.uuid4()), silence=60.0, migrate=True)
    store.open(jobs, "bench")
    store.begin_term(0, jobs, "bench", now)
    single(store, jobs[:3000], now)
    for number in range(1, 4):
        at_once(store, jobs, now + timedelta(minutes=10 * number))
    store.close()


def single(store: PostgresStore, jobs: Sequence[Job], now: datetime) -> None:
    taken = []
    began = time.perf_counter()
    for job in jobs:
        start = time.perf_counter()
        want = Want(job.id, now + timedelta(minutes=1), next_due=now + timedelta(minutes=2))
        store.claim(Batch(str(uuid.uuid4()), 0, (want,)))
        taken.append((time.perf_counter() - start) * 1000)
    rate = len(jobs) / (time.perf_counter() - began)
    say("claims, one at a time", f"{rate:,.0f}/s", "1,000/s", rate < 1000)
    say("    p99", f"{quantile(taken, 0.99):.2f} ms", "25 ms", quantile(taken, 0.99) > 25)


def at_once(store: PostgresStore, jobs: Sequence[Job], due: datetime) -> None:
    wants = tuple(Want(job.id, due, next_due=due + timedelta(minutes=1)) for job in jobs)
    start = time.perf_counter()
    verdicts = store.claim(Batch(str(uuid.uuid4()), 0, wants))
    seconds = time.perf_counter() - start
    won = sum(verdict is Verdict.WON for verdict in verdicts)
    say(f"{won:,} due at one instant, all claimed in", f"{seconds:.2f} s", "0.5 s", seconds > 0.5)
    ends = [Result(Fire(due, job.id), Outcome.SUCCESS, due, due) for job in jobs]
    store.finish(ends, {job.id: 3 for job in jobs})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=1500)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--burst", type=int, default=20_000)
    parser.add_argument("--promotions", type=int, default=5)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    with EmbeddedPostgres({"shared_buffers": "256MB"}) as server:
        claims(server.create_database("claims"), arguments.burst)
        load = Load(server.create_database("load"), arguments.schedules, arguments.rate)
        steady(load, arguments.rate, arguments.seconds)
        promotion(load, arguments.promotions)
        load.scheduler.stop()


if __name__ == "__main__":
    main()
