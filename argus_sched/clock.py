"""Time as a parameter: a clock, and a wait that can be woken."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What a service asks for the time."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""
        ...

    def elapsed(self) -> float:
        """Seconds on a clock that never goes back and counts time spent in suspend."""
        ...

    def wait(self, wake: threading.Event, seconds: float) -> bool:
        """Sleep until `wake` is set or `seconds` have passed; True when it was set."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def elapsed(self) -> float:
        # CLOCK_MONOTONIC stops while a laptop or a VM is suspended, and a lease does not.
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wait(self, wake: threading.Event, seconds: float) -> bool:
        return wake.wait(max(seconds, 0.0))


class ShiftedClock:
    """A clock whose wall clock is `ahead` of another's."""

    def __init__(self, clock: Clock, ahead: timedelta) -> None:
        self._clock = clock
        self._ahead = ahead

    def now(self) -> datetime:
        return self._clock.now() + self._ahead

    def elapsed(self) -> float:
        return self._clock.elapsed()

    def wait(self, wake: threading.Event, seconds: float) -> bool:
        return self._clock.wait(wake, seconds)


class StandingClock(SystemClock):
    """A wall clock that shows one instant, for `--now`; waiting and elapsed time stay real."""

    def __init__(self, instant: datetime) -> None:
        self._instant = instant

    def now(self) -> datetime:
        return self._instant


class ManualClock:
    """A clock that a test sets; `wait` moves it and never sleeps."""

    def __init__(self, start: datetime = datetime(2026, 3, 14, 10, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed = 1000.0

    def now(self) -> datetime:
        return self._now

    def elapsed(self) -> float:
        return self._elapsed

    def advance(self, step: timedelta | float) -> None:
        """Move both clocks on by `step`."""
        seconds = step.total_seconds() if isinstance(step, timedelta) else step
        self._now += timedelta(seconds=seconds)
        self._elapsed += seconds

    def step_wall(self, step: timedelta) -> None:
        """Move only the wall clock, as an NTP step does."""
        self._now += step

    def wait(self, wake: threading.Event, seconds: float) -> bool:
        self.advance(max(seconds, 0.0))
        return wake.is_set()
