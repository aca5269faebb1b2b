"""A FastAPI application with a scheduler, for `uvicorn --workers 2`; what it needs comes from the environment."""

from __future__ import annotations

import json
import logging
import os
import time

from fastapi import FastAPI

from argus_sched import Fire, Scheduler, Timing, every

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(name)s %(levelname)s %(message)s")

_effects = os.open(os.environ["ARGUS_TEST_EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
scheduler = Scheduler(
    os.environ["ARGUS_TEST_DSN"],
    namespace="web",
    environment=os.environ.get("ARGUS_TEST_ENVIRONMENT", "production"),
    timing=getattr(Timing, os.environ.get("ARGUS_TEST_TIMING", "default"))(),
    migrate=True,
)


@scheduler.job(every(seconds=1), id="ticker", name="Count the seconds", catch_up="all")
async def ticker(fire: Fire) -> None:
    line = {"at": time.time(), "pid": os.getpid(), "due": fire.due.timestamp(), "job": fire.job_id}
    os.write(_effects, f"{json.dumps(line)}\n".encode())


app = FastAPI(lifespan=scheduler.lifespan)


@app.get("/status")
def status() -> dict[str, object]:
    """What this worker is."""
    found = scheduler.status()
    return {
        "pid": os.getpid(),
        "role": str(found.role),
        "epoch": found.epoch,
        "problem": found.problem,
        "jobs": [job.name for job in found.jobs],
    }
