"""Which faults, in which order, when: from a seed alone."""

from __future__ import annotations

from itertools import pairwise

import pytest

from argus_sched.errors import SettingsError
from argus_sched.harness.profiles import PROFILES, profile
from argus_sched.harness.scenario import FAULTS, SPARE, Step, draw, pauses

FAST = PROFILES["fast"]


def test_one_seed_draws_one_run_and_another_seed_another() -> None:
    assert draw(list(FAULTS), 7, 60, FAST) == draw(list(FAULTS), 7, 60, FAST)
    assert draw(list(FAULTS), 7, 60, FAST) != draw(list(FAULTS), 8, 60, FAST)


@pytest.mark.parametrize("seed", range(20))
def test_every_named_fault_comes_at_least_once_however_short_the_run(seed: int) -> None:
    assert {step.fault for step in draw(list(FAULTS), seed, 1.0, FAST)} == set(FAULTS)


@pytest.mark.parametrize("seed", range(20))
def test_a_fault_waits_until_the_cluster_had_time_to_recover(seed: int) -> None:
    steps = draw(list(FAULTS), seed, 120, FAST)
    assert all(
        later.at - (earlier.at + earlier.seconds) >= FAST.probe + SPARE for earlier, later in pairwise(steps)
    )


def test_the_pause_before_each_fault_is_counted_from_the_end_of_the_one_before() -> None:
    steps = (Step(0, "kill"), Step(2, "freeze", seconds=5), Step(8, "kill"))
    assert pauses(steps) == (0, 2, 1)
    assert pauses(()) == ()


def test_a_long_run_repeats_faults_and_ends_with_its_duration() -> None:
    steps = draw(["kill", "terminate"], 3, 120, FAST)
    assert len(steps) > 10
    assert steps[-1].at <= 120


def test_no_faults_are_no_steps() -> None:
    assert draw([], 3, 120, FAST) == ()


def test_partitions_last_longer_than_the_lease_and_go_all_ways() -> None:
    steps = [step for seed in range(30) for step in draw(["partition"], seed, 1, FAST)]
    assert {step.directions for step in steps} == {(), ("up",), ("down",)}
    assert all(step.seconds > 1.0 for step in steps)


@pytest.mark.parametrize("call", [lambda: draw(["meteor"], 1, 1, FAST), lambda: profile("slowest")])
def test_an_unknown_word_is_refused_with_the_list(call: object) -> None:
    with pytest.raises(SettingsError, match=r"there is no .* use "):
        call()  # type: ignore[operator]  # a table of calls


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Step(0, "kill"), ""),
        (Step(0, "partition", 1.5, directions=("up",)), "for 1.5 s, only what it sends"),
        (Step(0, "clock", 2.0, amount=-3.25), "by -3.25 s for 2.0 s"),
    ],
)
def test_the_particulars_read_well(step: Step, text: str) -> None:
    assert step.text == text


@pytest.mark.parametrize("name", ["default", "fast"])
def test_the_promises_are_those_of_the_timing_of_the_same_name(name: str) -> None:
    from argus_sched.scheduling.leadership import Timing

    timing, promised = getattr(Timing, name)(), PROFILES[name]
    assert (timing.lease, timing.tick, timing.probe, timing.deferral, timing.trust_ratio) == (
        promised.lease,
        promised.tick,
        promised.probe,
        promised.deferral,
        0.8,
    )
