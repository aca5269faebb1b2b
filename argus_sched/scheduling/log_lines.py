"""The fixed lines about a job that is switched off or on: the agent reads them, so they are an interface."""

from __future__ import annotations

import logging

LOGGER = "argus_sched.scheduling.jobs"
_log = logging.getLogger(LOGGER)


def disabled(job_id: str, name: str, who: str, reason: str) -> None:
    """A person switched the job off."""
    _log.warning('Job "%s" (id=%s) disabled by %s: %s', name, job_id, _line(who), _line(reason))


def paused(job_id: str, name: str, who: str, reason: str) -> None:
    """A person paused the job."""
    _log.warning('Job "%s" (id=%s) paused by %s: %s', name, job_id, _line(who), _line(reason))


def auto_disabled(job_id: str, name: str, failures: int, reason: str) -> None:
    """The scheduler switched the job off after `failures` failures in a row."""
    _log.error(
        'Job "%s" (id=%s) auto-disabled after %d failures in a row: %s', name, job_id, failures, _line(reason)
    )


def enabled(job_id: str, name: str, who: str) -> None:
    """The job was switched on again."""
    _log.warning('Job "%s" (id=%s) enabled by %s', name, job_id, _line(who))


def _line(text: str) -> str:
    # One event is one line: a reason may quote an exception of several.
    return " ".join(text.split())
