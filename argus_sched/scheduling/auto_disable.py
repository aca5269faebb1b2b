"""Switching a job off after it failed too often in a row, and telling people once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from argus_sched.scheduling import log_lines
from argus_sched.scheduling.claims import FAILURES, AutoDisabled, Outcome, Result
from argus_sched.scheduling.job import Job, JobRegistry

AlertHook = Callable[[Job, AutoDisabled], None]

_log = logging.getLogger(__name__)


def failure_streaks(results: Sequence[Result]) -> dict[str, tuple[bool, int, str]]:
    """For each job: whether its count begins afresh (it succeeded), failures since, and the last reason."""
    streaks: dict[str, tuple[bool, int, str]] = {}
    for result in results:
        afresh, failures, reason = streaks.get(result.fire.job_id, (False, 0, ""))
        if result.outcome in FAILURES:
            failures, reason = failures + 1, result.error or str(result.outcome)
        elif result.outcome is Outcome.SUCCESS:
            afresh, failures, reason = True, 0, ""
        streaks[result.fire.job_id] = (afresh, failures, reason)
    return streaks


class AutoDisable:
    """Says that jobs were switched off: one fixed log line and one call of the alert hook for each.

    The store switches a job off in the step that counts its failure, so exactly one worker gets to tell.
    """

    def __init__(self, registry: JobRegistry, alert: AlertHook | None) -> None:
        self._registry = registry
        self._alert = alert

    def tell(self, disabled: Sequence[AutoDisabled]) -> None:
        """Log and alert; an alert hook that fails is logged and harms nothing."""
        for one in disabled:
            job = self._registry[one.job_id]
            log_lines.auto_disabled(job.id, job.name, one.failures, one.reason)
            self._call(job, one)

    def _call(self, job: Job, disabled: AutoDisabled) -> None:
        if self._alert is None:
            return
        try:
            self._alert(job, disabled)
        except Exception:
            _log.exception("the alert hook failed for job %s", job.id)
