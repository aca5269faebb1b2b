"""Random faults for as long as asked: ARGUS_SOAK_SECONDS, one minute unless set; CI asks for ten."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from argus_sched.harness import summary
from argus_sched.harness.run import run
from argus_sched.harness.settings import RunSettings

FAULTS = ("kill", "terminate", "freeze", "restart", "crash", "partition", "slow", "stop", "rolling", "fork")
SECONDS = float(os.environ.get("ARGUS_SOAK_SECONDS", "60"))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 900)
def test_faults_in_random_order_lose_and_double_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("ARGUS_SOAK_SEED", random.randrange(10**6)))
    record = run(RunSettings(faults=FAULTS, duration=SECONDS, seed=seed, profile="fast"), tmp_path, print)
    verdict = record.verdict
    assert verdict.held, f"ARGUS_SOAK_SEED={seed} repeats it\n{summary.text(record)}"
    assert (verdict.lost, verdict.doubled) == (0, 0)
    assert verdict.max_holders <= 1
    assert sum(fault.count for fault in verdict.faults.values()) >= SECONDS / 60
