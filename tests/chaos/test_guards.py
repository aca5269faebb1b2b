"""The checker bites: with one guard switched off, a scenario that held must go red, and for that reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus_sched.harness import summary
from argus_sched.harness.run import run
from argus_sched.harness.settings import GUARDS, RunSettings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# guards off, fault, duration, and the rules of which at least one must be found broken ("slow": a bound is missed)
CASES = {
    "the reference design": (("claims", "tick", "watch", "lease"), "terminate", 12, {"doubled"}),
    "claims": (("claims",), "freeze", 0, {"lost"}),
    "tick": (("tick",), "partition", 0, {"two_leaders", "two_services"}),
    "watch": (("watch",), "terminate", 35, {"slow"}),
    "lease": (("lease",), "fork", 0, {"leaderless"}),
    "catch-up": (("catch-up",), "freeze", 0, {"lost"}),
    "deferral": (("deferral", "watch"), "terminate", 35, {"two_services"}),
    "jitter-hash": (("jitter-hash",), "", 12, {"slow"}),
}


@pytest.mark.parametrize(("without", "fault", "duration", "broken"), CASES.values(), ids=CASES)
def test_a_missing_guard_turns_its_scenario_red(
    without: tuple[str, ...], fault: str, duration: float, broken: set[str], tmp_path: Path
) -> None:
    faults = (fault,) if fault else ()
    settings = RunSettings(jobs=10, faults=faults, duration=duration, seed=1, profile="fast", without=without)
    record = run(settings, tmp_path, print)
    found = {violation.rule for violation in record.verdict.violations} | (
        {"slow"} if record.verdict.slow else set()
    )
    assert found & broken, summary.text(record)


def test_the_same_scenarios_hold_with_every_guard_on(tmp_path: Path) -> None:
    faults = tuple({fault for _, fault, _, _ in CASES.values() if fault})
    record = run(RunSettings(jobs=10, faults=faults, duration=0, seed=1, profile="fast"), tmp_path, print)
    assert record.verdict.held, summary.text(record)


def test_every_guard_has_a_scenario() -> None:
    assert {guard for guards, *_ in CASES.values() for guard in guards} == set(GUARDS)
