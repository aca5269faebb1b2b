"""Real workers on a real Postgres, and every fault of the catalogue: what must hold, holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus_sched.harness import summary
from argus_sched.harness.arena import possible_faults
from argus_sched.harness.run import run
from argus_sched.harness.scenario import FAULTS
from argus_sched.harness.settings import RunSettings
from tests.integration.docker_host import DockerHost

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

# Without a lease and with a probe of a minute, each fault of this profile takes minutes: one of each kind.
FEW = ("kill", "terminate", "stop")


@pytest.mark.pgbouncer
@pytest.mark.parametrize(("profile", "seed"), [("fast", 11), ("default", 12)])
def test_every_fault_once_loses_and_doubles_nothing(profile: str, seed: int, tmp_path: Path) -> None:
    held(
        RunSettings(faults=possible_faults(None), duration=0, seed=seed, profile=profile),
        tmp_path,
        set(FAULTS),
    )


def test_the_recipe_of_the_specification_loses_and_doubles_nothing(tmp_path: Path) -> None:
    held(RunSettings(faults=FEW, jobs=8, duration=0, seed=13, profile="recipe"), tmp_path, set(FEW))


@pytest.mark.parametrize("seed", [21, 22])
def test_two_workers_under_one_uvicorn(seed: int, tmp_path: Path) -> None:
    faults = ("kill", "terminate", "freeze", "stop")
    held(
        RunSettings(workers=4, faults=faults, duration=0, seed=seed, profile="fast", uvicorn=True),
        tmp_path,
        set(faults),
    )


@pytest.mark.parametrize("coordination", ["claims", pytest.param("redis", marks=pytest.mark.redis)])
def test_claims_alone_keep_workers_apart(coordination: str, tmp_path: Path) -> None:
    settings = RunSettings(
        faults=("kill", "stop", "freeze"), duration=0, seed=31, profile="fast", coordination=coordination
    )
    held(settings, tmp_path, {"kill", "stop", "freeze"})


@pytest.mark.docker
def test_workers_in_containers(
    tmp_path: Path, docker_host: DockerHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_host.host)
    faults = ("kill", "terminate", "freeze")
    held(RunSettings(faults=faults, duration=0, seed=41, profile="fast", docker=True), tmp_path, set(faults))


def held(settings: RunSettings, folder: Path, faults: set[str]) -> None:
    """Carry the run out and ask for a verdict without a violation, in which every fault was done."""
    record = run(settings, folder, print)
    verdict = record.verdict
    assert verdict.held, summary.text(record)
    assert (verdict.lost, verdict.doubled) == (0, 0)
    assert verdict.max_holders <= 1
    assert verdict.expected > 0
    assert set(verdict.faults) == faults
