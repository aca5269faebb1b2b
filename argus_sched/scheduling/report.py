"""Turns what happens to fires into events and numbers, in one place."""

from __future__ import annotations

from datetime import datetime

from argus_sched.scheduling.claims import Orphan, Outcome, Result, Verdict, Want
from argus_sched.scheduling.events import Events
from argus_sched.scheduling.job import Fire
from argus_sched.scheduling.metrics import Metrics

CLOCK_TOLERANCE = 2.0  # seconds


class Report:
    """What the firing services tell; nothing in here decides anything."""

    def __init__(self, events: Events, metrics: Metrics) -> None:
        self._events = events
        self._metrics = metrics
        self._clock_differs = False

    def answered(self, want: Want, verdict: Verdict) -> None:
        """The store answered one want."""
        if verdict is Verdict.LOST:
            self._metrics.claim("lost")
            self._events("fire_lost", {"job_id": want.job_id, "due": want.due})
        elif verdict is Verdict.OVERLAP or want.outcome is Outcome.SKIPPED_OVERLAP:
            self._metrics.skipped_overlap += 1
            self._events("fire_skipped_overlap", {"job_id": want.job_id, "due": want.due})
        elif verdict is Verdict.WON and want.outcome is Outcome.RUNNING:
            self._metrics.claim("won")
            self._events("fire_won", {"job_id": want.job_id, "due": want.due, "origin": want.origin})
        if verdict in (Verdict.WON, Verdict.OVERLAP):
            self._missed(want)
        if verdict is Verdict.REFUSED:
            self._miss(want, 1, "refused")

    def _missed(self, want: Want) -> None:
        count = want.missed + (want.outcome is Outcome.MISSED)
        if count:
            self._miss(want, count, want.reason or "expired")

    def _miss(self, want: Want, count: int, reason: str) -> None:
        self._metrics.missed(reason, count)
        fields = {"job_id": want.job_id, "until": want.due, "count": count, "reason": reason}
        self._events("fire_missed", fields)

    def unknown(self, count: int, error: Exception) -> None:
        """The answer to `count` claims never came."""
        self._metrics.claim("unknown", count)
        self._events("claim_unknown", {"count": count, "error": error})

    def clock(self, offset: float) -> None:
        """The store's clock minus ours; jobs run by ours, so a difference that matters is told, once."""
        self._metrics.clock_offset = offset
        differs = abs(offset) > CLOCK_TOLERANCE
        if differs and not self._clock_differs:
            hint = "jobs run by this worker's clock: synchronise it with the store's"
            self._events("clock_differs", {"seconds": round(offset, 3), "hint": hint})
        self._clock_differs = differs

    def store_away(self, error: Exception) -> None:
        """The store of claims cannot be used: nothing fires until it can."""
        self._events("store_away", {"status": "lock_unavailable", "error": error})

    def started(self, fire: Fire, at: datetime) -> None:
        """A body is about to start."""
        self._metrics.lateness((at - fire.due).total_seconds())

    def finished(self, result: Result) -> None:
        """A run ended."""
        seconds = (result.finished_at - result.started_at).total_seconds()
        fire = result.fire
        fields = {"job_id": fire.job_id, "due": fire.due, "outcome": result.outcome, "seconds": seconds}
        self._events("run_finished", fields)

    def given_back(self, fire: Fire) -> None:
        """A claimed fire did not start."""
        self._events("fire_given_back", {"job_id": fire.job_id, "due": fire.due, "attempt": fire.attempt})

    def interrupted(self, orphan: Orphan) -> None:
        """A run died with its worker, and will not run again."""
        self._metrics.interrupted += 1
        self._events("fire_interrupted", self._of(orphan))

    def expired(self, orphan: Orphan) -> None:
        """A fire that was given back found no taker within its window."""
        self._metrics.missed("expired", 1)
        self._events("fire_missed", {**self._of(orphan), "count": 1, "reason": "expired"})

    def again(self, orphan: Orphan, fire: Fire) -> None:
        """An open run that nobody executed was taken over."""
        self._metrics.claim("won")
        self._events("fire_taken_over", {**self._of(orphan), "attempt": fire.attempt, "died": orphan.dead})

    def _of(self, orphan: Orphan) -> dict[str, object]:
        fire = orphan.fire
        return {"job_id": fire.job_id, "due": fire.due, "attempt": fire.attempt, "worker": orphan.worker}
