"""False demotions of a busy leader: `python tests/bench/bench_hogs.py [--minutes 30] [--timing default]`.

Two workers on an embedded Postgres of their own, each with ten jobs a second and two threads of pure Python
that never wait, so that the elector must ask the interpreter for its turn each time. Nothing is wrong with
any of them: every demotion is a false one. The target is none in 30 minutes.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from argus_sched import Fire, Scheduler, Timing, every
from argus_sched.postgres import schema
from argus_sched.postgres.embedded import EmbeddedPostgres

WORKERS, JOBS, HOGS = 2, 10, 2


def worker(dsn: str, timing: str, told: Any) -> None:
    """One worker with its hogs; tells its turns, and how late each fire was, in seconds."""
    logging.disable()  # what is told is counted
    scheduler = Scheduler(
        dsn,
        namespace="hogs",
        timing=getattr(Timing, timing)(),
        on_event=lambda event, _: told.put((event, 0.0)),
    )

    def body(fire: Fire) -> None:
        told.put(("fired", (datetime.now(UTC) - fire.due).total_seconds()))

    for number in range(JOBS):
        scheduler.add_job(body, every(seconds=1), id=f"job-{number}")
    scheduler.start()
    for _ in range(HOGS):
        threading.Thread(target=_hog, daemon=True).start()
    threading.Event().wait()


def _hog() -> None:
    while True:
        sum(range(10_000))


def main() -> int:
    """Measure, print, and return 1 after any demotion."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--timing", choices=("default", "fast"), default="default")
    args = parser.parse_args()
    spawning = multiprocessing.get_context("spawn")
    told: Any = spawning.Queue()
    turns: Counter[str] = Counter()
    lateness: list[float] = []
    with EmbeddedPostgres() as server:
        dsn = server.create_database("hogs")
        schema.migrate(dsn)
        before = _busy()
        for _ in range(WORKERS):
            spawning.Process(target=worker, args=(dsn, args.timing, told), daemon=True).start()
        end = time.monotonic() + 60 * args.minutes
        while (left := end - time.monotonic()) > 0:
            _take(told, left, turns, lateness)
        report(turns, lateness, _share(before, _busy()), args.minutes)
        for process in multiprocessing.active_children():
            process.kill()
    return int(turns["demoted"] > 0)


def _take(told: Any, seconds: float, turns: Counter[str], lateness: list[float]) -> None:
    try:
        event, late = told.get(timeout=min(seconds, 1.0))
    except queue.Empty:
        return
    turns[event] += 1
    if event == "fired":
        lateness.append(late)


def report(turns: Mapping[str, int], lateness: list[float], busy: float, minutes: float) -> None:
    """Print the figures."""
    late = sorted(lateness)
    p50, p99 = (late[min(len(late) - 1, int(share * len(late)))] * 1000 for share in (0.5, 0.99))
    print(f"{minutes:g} minutes, {WORKERS} workers with {HOGS} hogs each, the machine {busy:.0%} busy")
    print(f"elected {turns['elected']}, false demotions {turns['demoted']}   target 0")
    print(f"{turns['fired']} fires, late by p50 {p50:.0f} ms, p99 {p99:.0f} ms")


def _busy() -> tuple[int, int]:
    """Ticks that the machine worked, and all its ticks."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def _share(before: tuple[int, int], after: tuple[int, int]) -> float:
    return (after[0] - before[0]) / max(1, after[1] - before[1])


if __name__ == "__main__":
    sys.exit(main())
