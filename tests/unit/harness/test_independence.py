"""The judge shares nothing with what it judges."""

from __future__ import annotations

import subprocess
import sys

import pytest

FOREIGN = ("argus_sched.scheduling", "argus_sched.agent", "argus_sched.due_times", "argus_sched.cron_fields")


@pytest.mark.parametrize("module", ["invariants", "agent_verdict", "expected", "scenario"])
def test_judging_loads_neither_scheduler_nor_agent_nor_their_arithmetic(module: str) -> None:
    code = f"import sys, argus_sched.harness.{module}; print('\\n'.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert f"argus_sched.harness.{module}" in loaded
    assert [
        name
        for name in loaded
        if name.startswith((*FOREIGN, "argus_sched.postgres", "psycopg", "apscheduler"))
    ] == []
