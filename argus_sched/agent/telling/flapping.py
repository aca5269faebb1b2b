"""When going up and down is itself the news: the weighted share of changes over the last twenty passes.

Icinga 2's rule (lib/icinga/checkable-flapping.cpp): twenty slots, the newest weighs 1.18 and the oldest 0.80,
and two thresholds, so that the answer does not flap itself. Only confirmed changes count, where Icinga counts
every one: a change that was never told is no reason to stop telling.
"""

from __future__ import annotations

from argus_sched.agent.config.notify_policy import FlappingSettings

SLOTS = 20
_MASK = (1 << SLOTS) - 1
# By age: slot 0 is the newest pass.
_WEIGHTS = tuple(1.18 - 0.02 * age for age in range(SLOTS))


def push(changes: int, changed: bool) -> int:
    """`changes` (one bit for each pass, the newest lowest) with one pass more."""
    return ((changes << 1) | changed) & _MASK


def share(changes: int) -> float:
    """The weighted share of changes, in percent of the passes."""
    return 100 * sum(weight for age, weight in enumerate(_WEIGHTS) if changes >> age & 1) / SLOTS


def is_flapping(changes: int, was_flapping: bool, limits: FlappingSettings) -> bool:
    """Whether it flaps now: from above `high` percent until below `low`; in between what was so stays so."""
    value = share(changes)
    return value >= limits.low if was_flapping else value > limits.high


def count(changes: int) -> int:
    """How many of the last twenty passes changed."""
    return changes.bit_count()
