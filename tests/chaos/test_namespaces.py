"""Workers whose packets are lost on the way: the kernel's own timeouts, and what must hold, holds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from argus_sched.harness import arena, namespaces, summary
from argus_sched.harness.faults import Ground
from argus_sched.harness.profiles import profile
from argus_sched.harness.run import run
from argus_sched.harness.settings import RunSettings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.netns,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(namespaces.obstacle()), reason=f"no network namespaces: {namespaces.obstacle()}"),
]

PATIENCE = 120.0
FAST = profile("fast")


def test_partitions_in_namespaces_lose_and_double_nothing(tmp_path: Path) -> None:
    settings = RunSettings(faults=("partition",), duration=20, seed=61, profile="fast", lines="namespaces")
    verdict = (record := run(settings, tmp_path, print)).verdict
    assert verdict.held, summary.text(record)
    assert (verdict.lost, verdict.doubled) == (0, 0)
    assert verdict.max_holders <= 1
    promotion = verdict.faults["partition"].promotion_ms
    assert promotion.count > 0
    assert promotion.max is not None
    assert promotion.max <= FAST.takeover * 1000, summary.text(record)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    settings = RunSettings(jobs=2, faults=("partition",), profile="fast", lines="namespaces")
    with arena.set_up(settings, tmp_path_factory.mktemp("run")) as running:
        running.cluster.start()
        yield running


@pytest.mark.parametrize("directions", [(), ("up",), ("down",)], ids=lambda ways: "-".join(ways) or "both")
def test_another_worker_leads_while_the_line_of_the_old_leader_is_still_silent(
    ground: Ground, directions: tuple[str, ...]
) -> None:
    cluster = ground.cluster
    ready = lambda: cluster.complete() and cluster.in_role("heir") is not None  # noqa: E731 - used once
    cluster.wait_until(ready, PATIENCE, "no leader with an heir")
    old = ground.leader()
    at = time.monotonic()
    ground.lines.silence(old.slot, *directions)

    def replaced() -> bool:
        return any(one.role == "leader" and one.slot != old.slot for one in cluster.live())

    try:
        cluster.wait_until(replaced, FAST.takeover, "nobody took over within the lease and a probe")
        print(f"another leads after {(time.monotonic() - at) * 1000:.0f} ms")
        cluster.wait_until(lambda: old.role != "leader", FAST.takeover, "the old leader still believes")
    finally:
        ground.lines.heal(old.slot)
