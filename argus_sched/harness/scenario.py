"""What is done to the cluster, in which order and when: drawn from a seed, so that a run can be repeated."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from argus_sched.errors import SettingsError
from argus_sched.harness.profiles import Profile

FAULTS = {
    "kill": "kill -9 of the leader",
    "pair": "kill -9 of the leader and the heir together",
    "terminate": "pg_terminate_backend of the session that holds the lock",
    "freeze": "SIGSTOP of the leader, and SIGCONT later",
    "restart": "Postgres restarts (fast): every session ends",
    "crash": "Postgres crashes (immediate) and recovers",
    "partition": "the leader's line to Postgres goes silent, one way or both, without FIN",
    "slow": "every answer of Postgres to the leader comes late",
    "stop": "a clean stop (SIGTERM) of the leader",
    "rolling": "every worker is stopped and started again, one after the other",
    "clock": "the leader's wall clock steps back or ahead",
    "fork": "the leader forks a child that keeps the socket, and is killed",
    "pooler": "every worker reaches Postgres through a pooler that gives all of them one session",
    "standby": "the leader is sent to a hot standby, where the same key is free",
}
NEED_PROXY = ("slow", "pooler", "standby")
NEED_LOCK = ("terminate",)
NEED_SERVER = ("restart", "crash", "standby")
SPARE = 0.5


@dataclass(frozen=True)
class Step:
    """One fault: when it begins (seconds after the first), how long it lasts, and its particulars.

    `amount` is the delay of `slow` each way or the step of `clock`, in seconds; `directions` of `partition`
    is empty for both ways.
    """

    at: float
    fault: str
    seconds: float = 0.0
    amount: float = 0.0
    directions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The particulars as a person reads them."""
        ways = {(): "", ("up",): ", only what it sends", ("down",): ", only what it hears"}[self.directions]
        lasts = f"for {self.seconds:.1f} s{ways}" if self.seconds else ""
        by = f"by {self.amount:+.2f} s " if self.fault in ("slow", "clock") else ""
        return f"{by}{lasts}".strip()


def draw(faults: Sequence[str], seed: int, duration: float, profile: Profile) -> tuple[Step, ...]:
    """The steps of a run: every fault once in a random order, then random ones until `duration` is over.

    Faults follow each other when the cluster has had the time to recover, and a random while more. When the
    named faults need longer than `duration`, the run lasts as long as they need.
    """
    check(faults)
    dice = random.Random(seed)
    order = dice.sample(list(faults), len(faults))
    steps: list[Step] = []
    at = 0.0
    while order or (faults and at < duration):
        step = _step(order.pop(0) if order else dice.choice(list(faults)), at, dice, profile)
        if not order and at + step.seconds > duration and len(steps) >= len(faults):
            break
        steps.append(step)
        at += step.seconds + _recovery(step.fault, profile) + dice.uniform(0.1, SPARE)
    return tuple(steps)


def pauses(steps: Sequence[Step]) -> tuple[float, ...]:
    """How long after the end of the one before each step begins, however long that one really took."""
    between = (later.at - earlier.at - earlier.seconds for earlier, later in pairwise(steps))
    return (0.0, *between)[: len(steps)]


def check(faults: Sequence[str]) -> None:
    """Refuse an unknown fault by name."""
    for name in faults:
        if name not in FAULTS:
            raise SettingsError(f"there is no fault {name!r}: use any of {', '.join(FAULTS)}")


def _step(fault: str, at: float, dice: random.Random, profile: Profile) -> Step:
    silence = profile.silence
    if fault == "freeze":
        return Step(at, fault, seconds=dice.uniform(0.2, 2.5) * silence)
    if fault == "partition":
        directions = dice.choice([(), ("up",), ("down",)])
        return Step(at, fault, seconds=dice.uniform(1.1, 1.8) * silence, directions=directions)
    if fault == "slow":
        return Step(
            at, fault, seconds=dice.uniform(0.5, 1.5) * silence, amount=dice.uniform(0.01, 0.1) * silence
        )
    if fault == "clock":
        step = dice.choice((-1, 1)) * dice.uniform(0.5, 5.0)
        return Step(at, fault, seconds=dice.uniform(0.5, 1.5) * silence, amount=step)
    if fault == "fork":
        return Step(at, fault, seconds=dice.uniform(5.0, 6.0) * silence)
    if fault in ("pooler", "standby"):
        return Step(at, fault, seconds=dice.uniform(0.8, 1.2) * silence)
    return Step(at, fault)


def _recovery(fault: str, profile: Profile) -> float:
    """Seconds until somebody leads and somebody waits again after a fault is over.

    A run waits besides until every worker is there; this is for what cannot be seen from outside.
    """
    return (profile.probe + SPARE) * (2.0 if fault in ("rolling", "restart", "crash") else 1.0)
