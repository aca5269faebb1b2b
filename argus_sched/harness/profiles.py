"""What each timing profile promises, in the harness's own numbers, so that a wrong default is noticed."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from argus_sched.errors import SettingsError
from argus_sched.harness.figures import Bound
from argus_sched.harness.verdict import Rules

TRUST = 0.8
# The database gives a claim up after this long, seconds.
LONGEST_CLAIM = 5.0


@dataclass(frozen=True)
class Profile:
    """The promises of `Timing.default()`, `fast()` or `recipe()`, in seconds; without a lease it is None.

    `silence` is how long a fault must last to be taken for the end, `takeover` the longest wait for a leader
    after any fault is over.
    """

    name: str
    meaning: str
    lease: float | None
    tick: float
    probe: float
    deferral: float

    @property
    def silence(self) -> float:
        """How long a leader may be silent before somebody acts on it."""
        return self.lease or self.tick + 5.0

    @property
    def takeover(self) -> float:
        """The longest that a cluster may need to have a leader again, once nothing is wrong any more."""
        return self.silence + self.probe + 2.0

    @property
    def grace(self) -> float:
        """How late a job may be before the agent shall call it: longer than any fault of ours may last."""
        return 3 * self.silence + self.probe + 5.0

    def rules(self, *, elects: bool = True) -> Rules:
        """What the judge holds a run of this profile to; without an election every worker leads, always."""
        if not elects:
            return Rules(two_leaders=inf, two_services=inf, in_flight=LONGEST_CLAIM)
        patience = self.lease / 2 if self.lease else self.probe + self.tick
        leaderless = 2 * self.silence + self.probe + 2.0
        # A dead leader's claim is refused once another leads, which takes a lease at most.
        in_flight = min(self.lease or LONGEST_CLAIM, LONGEST_CLAIM)
        # A job whose worker died may wait until that is certain, which takes two leases.
        quiet_after = 3 * self.silence + 2.0
        return Rules(
            two_leaders=patience,
            leaderless=leaderless,
            quiet_after=quiet_after,
            in_flight=in_flight,
            bounds=self.bounds(),
        )

    def bounds(self) -> dict[str, Bound]:
        """The longest demotion and promotion per fault; without a lease only the probe counts."""
        if self.lease is None:
            waits = Bound(promotion_ms=(self.probe + self.tick) * 1000.0)
            return dict.fromkeys(("kill", "pair", "terminate", "restart", "crash", "stop", "rolling"), waits)
        lease = self.lease * 1000.0
        return {
            "kill": Bound(promotion_ms=250),
            "pair": Bound(promotion_ms=self.probe * 1000.0 + 100),
            "terminate": Bound(demotion_ms=100, promotion_ms=250),
            "restart": Bound(demotion_ms=100, promotion_ms=500),
            "crash": Bound(demotion_ms=100, promotion_ms=500),
            "freeze": Bound(demotion_ms=100, promotion_ms=lease + 100),
            "partition": Bound(demotion_ms=lease * (TRUST + 0.1), promotion_ms=lease + 100),
            "fork": Bound(promotion_ms=lease + 100),
            "stop": Bound(promotion_ms=100),
            "rolling": Bound(promotion_ms=100),
        }


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            "default",
            "lease 3 s, tick 0.5 s: a frozen leader is replaced within 3 s",
            lease=3.0,
            tick=0.5,
            probe=1.0,
            deferral=0.5,
        ),
        Profile(
            "fast",
            "lease 1 s, tick 0.25 s: a frozen leader is replaced within 1 s",
            lease=1.0,
            tick=0.25,
            probe=0.5,
            deferral=0.25,
        ),
        Profile(
            "recipe",
            "no lease, tick 15 s, probe 60 s: the specification's figures",
            lease=None,
            tick=15.0,
            probe=60.0,
            deferral=15.0,
        ),
    )
}


def profile(name: str) -> Profile:
    """The profile called `name`; raises SettingsError that lists them."""
    try:
        return PROFILES[name]
    except KeyError:
        raise SettingsError(f"there is no profile {name!r}: use one of {', '.join(PROFILES)}") from None
