"""The agent beside workers under faults: it calls nothing critical without cause, and tells a real stop once."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus_sched.harness import summary
from argus_sched.harness.run import run
from argus_sched.harness.settings import RunSettings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_the_agent_tells_a_real_stop_once_and_nothing_else(tmp_path: Path) -> None:
    faults = ("kill", "terminate", "freeze", "restart", "partition")
    settings = RunSettings(jobs=8, faults=faults, duration=0, seed=51, profile="fast", agent=True)
    record = run(settings, tmp_path, print)
    assert record.verdict.held, summary.text(record)
    assert record.verdict.agent is not None
    assert record.verdict.agent["stops"] == 1
    assert len(record.verdict.agent["told_after_seconds"]) == 1  # type: ignore[arg-type]  # JSON-ready values
