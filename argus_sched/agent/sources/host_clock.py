"""How far a host's clock is from the agent's, by the dates its daemon gives with every answer."""

from __future__ import annotations

from datetime import timedelta
from email.utils import parsedate_to_datetime

from argus_sched.agent.instants import about
from argus_sched.clock import Clock

# A date is cut to whole seconds and an answer takes its time, so less than this is no difference.
TOLERANCE = timedelta(seconds=2)


class HostClock:
    """What was learnt of one host's clock. Stamps of a log are the host's, and are compared in its time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = timedelta(0)

    @property
    def ahead(self) -> timedelta:
        """How far it is ahead of the agent's, negative behind; zero within the tolerance."""
        return self._ahead if abs(self._ahead) >= TOLERANCE else timedelta(0)

    def heard(self, date: str | None) -> None:
        """Learn from the `Date` header of an answer that has just come."""
        try:
            there = parsedate_to_datetime(date or "")
        except ValueError:
            return
        if there.tzinfo is not None:
            self._ahead = there - self._clock.now()

    def note(self) -> tuple[str, ...]:
        """What to tell a person of it; nothing for a clock that agrees."""
        if not self.ahead:
            return ()
        word = "ahead of" if self.ahead > timedelta(0) else "behind"
        return (f"the clock of the docker host is {about(abs(self.ahead))} {word} the agent's",)
