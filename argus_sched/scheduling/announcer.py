"""What is said of the election: the log lines that operators grep, and the structured events beside them.

Events: standby, heir, elected, demoted, reconnecting, refused, recovered, polling (the heir cannot queue),
gap (the process did not run for a while), lease_unavailable, stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from argus_sched.scheduling.leadership import Cause, Term, Timing

logger = logging.getLogger("argus_sched.scheduling")

Emit = Callable[[str, Mapping[str, Any]], None]


class Announcer:
    """Tells each turn once, by log and by event; a listener that fails is logged and never heard of here."""

    def __init__(self, key: int, emit: Emit) -> None:
        self._key = key
        self._emit = emit

    def standby(self, probe: float) -> None:
        logger.info("Scheduler standby: singleton failover probe started (retry every %gs)", probe)
        self.event("standby", probe=probe)

    def elected(self, term: Term, seconds: float, *, failover: bool) -> None:
        """`failover` when this worker had stood by; `seconds` from the grant until all was started."""
        if failover:
            logger.info("Scheduler failover: acquired singleton lock")
        else:
            logger.info("Scheduler singleton lock acquired (key=%d)", self._key)
        self.event(
            "elected", epoch=term.epoch, backend_pid=term.backend_pid, failover=failover, seconds=seconds
        )

    def demoted(self, term: Term, cause: Cause, detail: str, silence: float, seconds: float) -> None:
        """`silence` since the last good tick, `seconds` from the notice until all had stopped."""
        level = logging.INFO if cause.wanted else logging.WARNING
        milliseconds = silence * 1000
        logger.log(
            level, "Scheduler demoted: %s, %.0f ms since the last good tick (%s)", cause, milliseconds, detail
        )
        self.event(
            "demoted", cause=cause, detail=detail, epoch=term.epoch, silence_ms=milliseconds, seconds=seconds
        )

    def trouble(self, event: str, cause: Cause, detail: str, *, told: bool) -> None:
        """`event` is `reconnecting` or `refused`; `told` when a demotion has just given the detail."""
        if not told:
            logger.warning("Scheduler cannot lead for now: %s", detail)
        self.event(event, cause=cause, detail=detail)

    def no_lease(self, timing: Timing) -> None:
        logger.warning(
            "Scheduler lease unavailable before PostgreSQL 14: a frozen leader keeps its lock; "
            "the tick is now %gs and the probe %gs",
            timing.tick,
            timing.probe,
        )
        self.event("lease_unavailable", tick=timing.tick, probe=timing.probe)

    def event(self, name: str, **fields: Any) -> None:
        """Tell one event without a log line of its own."""
        try:
            self._emit(name, fields)
        except Exception:
            logger.exception("the event %s could not be told", name)
