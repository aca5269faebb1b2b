"""A worker process for the scheduler's tests: its job bodies append what they did to a file outside the database.

    python scheduler_worker.py CONFIG.json

Each side effect is one line of JSON in one `write` to a file opened with O_APPEND, so it survives kill -9 and
is never torn. SIGTERM stops the scheduler cleanly, SIGUSR1 forks a child that keeps the parent's sockets.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from argus_sched.due_times import every
from argus_sched.scheduling.job import Fire
from argus_sched.scheduling.leadership import Timing
from argus_sched.scheduling.scheduler import Scheduler

PROFILES = {"default": Timing.default, "fast": Timing.fast, "recipe": Timing.recipe}


class Effects:
    """Lines in a file that every worker appends to."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, **fields: Any) -> None:
        line = json.dumps({"at": time.time(), "pid": os.getpid(), **fields})
        os.write(self._file, f"{line}\n".encode())


def declare(scheduler: Scheduler, jobs: list[dict[str, Any]], effects: Effects) -> None:
    """Jobs that write down that they ran, and sleep for as long as they are told in between."""
    for job in jobs:
        options = dict(job)
        job_id, seconds, slow = options.pop("id"), options.pop("every"), options.pop("slow", 0)
        window = options.pop("window", None)
        if window:
            options["catch_up_window"] = timedelta(seconds=window)

        def body(fire: Fire, job_id: str = job_id, slow: float = slow) -> None:
            effects.write(
                what="run", job=job_id, due=fire.due.timestamp(), epoch=fire.epoch, attempt=fire.attempt,
                origin=fire.origin,
            )  # fmt: skip
            if slow:
                time.sleep(slow)
                effects.write(what="end", job=job_id, due=fire.due.timestamp(), attempt=fire.attempt)

        phase = timedelta(seconds=options.pop("phase", 0))
        scheduler.add_job(body, every(seconds=seconds, phase=phase), id=job_id, **options)


def main() -> None:
    config = json.loads(Path(sys.argv[1]).read_text())
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(process)d %(name)s %(levelname)s %(message)s",
        stream=sys.stdout,
    )
    effects = Effects(config["effects"])
    options = dict(config.get("options", {}))
    options["timing"] = PROFILES[options.pop("timing", "fast")]()

    def heard(event: str, fields: Any) -> None:
        if event in ("elected", "demoted", "fire_missed", "fire_interrupted", "fire_skipped_overlap"):
            effects.write(what=event, **{name: str(value) for name, value in fields.items()})

    scheduler = Scheduler(
        config.get("dsn"), namespace=config.get("namespace", "test"), on_event=heard, **options
    )
    declare(scheduler, config["jobs"], effects)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGUSR1, lambda *_: keep_sockets())
    scheduler.start()
    effects.write(what="started")
    while not stop.wait(0.2):
        pass
    finished = scheduler.stop()
    effects.write(what="stopped", finished=finished)


def keep_sockets() -> None:
    """Fork a child that does nothing but hold what it inherited."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(30)
        os._exit(0)


if __name__ == "__main__":
    main()
