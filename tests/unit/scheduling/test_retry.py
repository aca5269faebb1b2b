"""Backoff grows, stays under its ceiling, and spreads."""

from __future__ import annotations

import pytest

from argus_sched.scheduling.retry import Backoff


@pytest.mark.parametrize(
    ("failures", "spread", "seconds"),
    [
        (1, 1.0, 0.1),
        (2, 1.0, 0.2),
        (3, 1.0, 0.4),
        (10, 1.0, 5.0),
        (10_000, 1.0, 5.0),
        (1, 0.0, 0.05),
        (10, 0.0, 2.5),
    ],
)
def test_delay(failures: int, spread: float, seconds: float) -> None:
    assert Backoff(first=0.1, factor=2, ceiling=5.0).delay(failures, spread) == pytest.approx(seconds)
