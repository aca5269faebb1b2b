"""The rules of leadership as tables: figures, trust, retreat, pauses, and the one thing to do next."""

from __future__ import annotations

import math
from typing import Any

import pytest

from argus_sched.errors import SettingsError
from argus_sched.scheduling.leadership import (
    Cause,
    Role,
    Server,
    Situation,
    Step,
    Timing,
    next_step,
    refusal_pause,
    retreat,
    retry_pause,
)


@pytest.mark.parametrize("profile", [Timing.default(), Timing.fast(), Timing.recipe()])
def test_every_profile_asks_again_before_its_trust_runs_out(profile: Timing) -> None:
    assert profile.tick + profile.tick_timeout < profile.trust < profile.horizon


def test_a_leader_stops_at_least_a_tenth_of_the_lease_before_the_server_lets_go() -> None:
    for profile in (Timing.default(), Timing.fast()):
        assert profile.lease is not None
        assert profile.lease - profile.trust >= 0.1 * profile.lease


def test_the_recipe_has_the_specifications_figures() -> None:
    recipe = Timing.recipe()
    assert (recipe.tick, recipe.probe, recipe.deferral) == (15.0, 60.0, 15.0)
    assert recipe.lease is None
    assert recipe.heir_wait is None


@pytest.mark.parametrize(
    ("figures", "sentence"),
    [
        ({"tick": 1.7}, "deferral >= tick does not hold (0.5 s, 1.7 s)"),
        ({"tick": 1.7, "deferral": 2}, "tick + tick_timeout < 0.8 x lease does not hold (2.45 s, 0.8 x 3 s)"),
        ({"tick_timeout": 1.95}, "tick + tick_timeout < 0.8 x lease does not hold (2.45 s, 0.8 x 3 s)"),
        ({"lease": 1.0}, "tick + tick_timeout < 0.8 x lease does not hold (1.25 s, 0.8 x 1 s)"),
        ({"probe": 2.5}, "probe <= 0.8 x lease does not hold (2.5 s, 0.8 x 3 s)"),
        ({"heir_wait": 1.0}, "heir_wait <= 0.9 s does not hold (1 s)"),
        ({"trust_ratio": 0.95}, "trust_ratio <= 0.9 does not hold (0.95)"),
        ({"lease": 0.0}, "lease > 0 does not hold (0.0)"),
        ({"tick": -1.0}, "tick > 0 does not hold (-1.0)"),
        ({"probe": math.nan}, "probe > 0 does not hold (nan)"),
        ({"deferral": math.inf}, "deferral > 0 does not hold (inf)"),
        ({"tick": None}, "tick > 0 does not hold (None)"),
        ({"probe": "1"}, "probe > 0 does not hold ('1')"),
    ],
)
def test_an_unsafe_timing_is_refused_with_the_inequality_it_breaks(
    figures: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SettingsError) as refusal:
        Timing(**figures).check()
    assert str(refusal.value) == f"unsafe timing: {sentence}"


def test_without_a_lease_any_tick_is_safe() -> None:
    timing = Timing(lease=None, tick=20, tick_timeout=10, probe=60, deferral=20)
    assert timing.trust == pytest.approx(0.8 * 60)


@pytest.mark.parametrize(
    ("wanted", "supports_lease", "expected"),
    [
        (Timing.fast(), True, Timing.fast()),
        (Timing.fast(), False, Timing.recipe()),
        (Timing(lease=None), False, Timing(lease=None)),
        (Timing.recipe(), True, Timing.recipe()),
    ],
)
def test_a_server_without_leases_gets_the_recipes_figures(
    wanted: Timing, supports_lease: bool, expected: Timing
) -> None:
    assert wanted.on_server(supports_lease) == expected


@pytest.mark.parametrize(
    ("seen", "found", "refused"),
    [
        (None, Server("7", 1), False),
        (Server("7", 1), None, False),
        (Server("7", 2), Server("7", 2), False),
        (Server("7", 2), Server("7", 3), False),
        (Server("7", 2), Server("8", 1), False),
        (Server("7", 2), Server("7", 1), True),
    ],
)
def test_only_the_same_cluster_before_its_promotion_is_a_retreat(
    seen: Server | None, found: Server | None, refused: bool
) -> None:
    assert (retreat(seen, found) is not None) is refused


def test_a_retreat_names_both_timelines() -> None:
    reason = retreat(Server("7", 3), Server("7", 2))
    assert reason is not None
    assert "timeline 2" in reason
    assert "timeline 3" in reason


@pytest.mark.parametrize(
    ("outage", "least", "most"), [(0.0, 0.025, 0.05), (2.0, 0.1, 0.2), (30.0, 0.2, 0.4), (3600.0, 1.0, 2.0)]
)
def test_reconnecting_is_quick_at_first_and_slow_in_a_long_outage(
    outage: float, least: float, most: float
) -> None:
    assert retry_pause(outage, 0.0) == pytest.approx(least)
    assert retry_pause(outage, 1.0) == pytest.approx(most)


@pytest.mark.parametrize(("outage", "most"), [(0.0, 1.0), (20.0, 5.0), (3600.0, 10.0)])
def test_a_refusal_is_looked_at_again_within_ten_seconds(outage: float, most: float) -> None:
    assert refusal_pause(outage, 1.0) == pytest.approx(most)
    assert refusal_pause(outage, 0.0) == pytest.approx(most / 2)


NOW = 100.0
DUE, LATER = 100.0, 100.1


@pytest.mark.parametrize(
    ("situation", "step"),
    [
        (Situation(Role.STANDBY, connected=False, due_at=DUE), Step.CONNECT),
        (Situation(Role.STANDBY, connected=False, due_at=LATER), Step.REST),
        (Situation(Role.STANDBY, connected=False, due_at=DUE, eligible_from=math.inf), Step.CONNECT),
        (Situation(Role.STANDBY, connected=True, due_at=DUE), Step.PROBE),
        (Situation(Role.STANDBY, connected=True, due_at=LATER), Step.WATCH),
        (Situation(Role.STANDBY, connected=True, due_at=DUE, eligible_from=LATER), Step.KEEP),
        (Situation(Role.STANDBY, connected=True, due_at=LATER, eligible_from=LATER), Step.WATCH),
        (Situation(Role.HEIR, connected=True, due_at=DUE), Step.WAIT),
        (Situation(Role.HEIR, connected=True, due_at=LATER), Step.WATCH),
        (Situation(Role.HEIR, connected=True, due_at=DUE, eligible_from=LATER), Step.STEP_DOWN),
        (Situation(Role.LEADER, connected=True, due_at=DUE), Step.TICK),
        (Situation(Role.LEADER, connected=True, due_at=LATER), Step.WATCH),
        (Situation(Role.LEADER, connected=True, due_at=LATER, eligible_from=LATER), Step.STEP_DOWN),
        (Situation(Role.LEADER, connected=True, due_at=DUE, stopping=True), Step.STOP),
        (Situation(Role.HEIR, connected=True, due_at=DUE, stopping=True), Step.STOP),
        (Situation(Role.STANDBY, connected=False, due_at=LATER, stopping=True), Step.STOP),
    ],
)
def test_the_next_step_follows_from_the_situation(situation: Situation, step: Step) -> None:
    assert next_step(situation, NOW) is step


def test_only_stopping_and_resigning_are_wanted() -> None:
    assert {cause for cause in Cause if cause.wanted} == {Cause.STOPPED, Cause.RESIGNED}
