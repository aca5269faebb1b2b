"""One pass as metrics, in Prometheus' text format 0.0.4.

Written by hand: a check runs every minute, and the format is smaller than the library's import is slow. A
test reads it back with that library and with `promtool`.

Instants are exported, never ages, so that a file which outlives its writer turns stale instead of staying
fresh. Every target has all its series in every pass; a value that nobody knows is NaN, which no `<`, `>` or
`==` of a rule matches. Results that share a label set become one series, since node_exporter drops a whole
file for a repeated one; and a HELP text never changes, since of two files that differ in it one loses its
series without an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from argus_sched.agent.check import OwnState, PassReport, Result
from argus_sched.agent.status import Phase
from argus_sched.version import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# name -> (labels, help). No label is called job or instance: those belong to the scrape.
FAMILIES: dict[str, tuple[tuple[str, ...], str]] = {
    "argus_job_last_run_timestamp_seconds": (("app", "job_name"), "When the job last started, Unix time."),
    "argus_job_deadline_timestamp_seconds": (
        ("app", "job_name"),
        "When the job is stale unless it has run again, Unix time; NaN while none applies.",
    ),
    "argus_check_status": (("app", "check", "target"), "Verdict: 0 OK, 1 WARN, 2 CRIT, 3 UNKNOWN."),
    "argus_scheduler_lock_holders": (("app",), "Sessions that hold the scheduler's lock; should be 1."),
    "argus_scheduler_lock_holder_idle": (("app",), "1 if the holder of the lock sits idle, as it should."),
    "argus_scheduler_lock_waiters": (("app",), "Sessions that wait for the scheduler's lock."),
    "argus_source_up": (("app", "source"), "1 if the log or database could be read."),
    "argus_last_pass_timestamp_seconds": ((), "When the agent last finished a pass, Unix time."),
    "argus_pass_duration_seconds": ((), "How long the last pass took."),
    "argus_pass_complete": ((), "1 if the last pass left nothing out."),
    "argus_state_saved": ((), "1 if the last pass could save the agent's state."),
    "argus_unsent_notices": ((), "Messages people are still owed; NaN where nobody is told."),
    "argus_oldest_unsent_notice_timestamp_seconds": (
        (),
        "Since when the oldest unsent notice waits, Unix time; NaN while none does.",
    ),
    "argus_channels_refused": ((), "Channels that take nothing until a person acts."),
    "argus_incomplete_passes_total": ((), "Passes that left something out."),
    "argus_own_gaps_total": ((), "Times the agent itself was away for more than three of its periods."),
    "argus_build_info": (("version",), "Constant 1; the agent's version."),
}
OWN_FAMILIES = (
    "argus_unsent_notices",
    "argus_oldest_unsent_notice_timestamp_seconds",
    "argus_channels_refused",
    "argus_incomplete_passes_total",
    "argus_own_gaps_total",
)

Labels = tuple[str, ...]


def render(report: PassReport) -> bytes:
    """The exposition of `report`: every family of FAMILIES, in that order."""
    lines: list[str] = []
    for name, series in _values(report).items():
        labels, help_text = FAMILIES[name]
        lines += (f"# HELP {name} {help_text}", f"# TYPE {name} {_kind(name)}")
        pattern = name + "{" + ",".join(f'{label}="%s"' for label in labels) + "} " if labels else f"{name} "
        lines += [pattern % values + _number(value) for values, value in series.items()]
    return "\n".join([*lines, ""]).encode()


def _kind(name: str) -> str:
    return "counter" if name.endswith("_total") else "gauge"


def _values(report: PassReport) -> dict[str, Mapping[Labels, float]]:
    jobs, locks, targets = _jobs(report.results), _locks(report.results), _targets(report.results)
    sources = sorted(report.nodes, key=lambda node: node.up, reverse=True)
    return {
        "argus_job_last_run_timestamp_seconds": {at: _instant(job.last_run) for at, job in jobs.items()},
        "argus_job_deadline_timestamp_seconds": {at: _deadline(job) for at, job in jobs.items()},
        "argus_check_status": {at: float(result.status) for at, result in targets.items()},
        "argus_scheduler_lock_holders": _lock_values(locks, "holders"),
        "argus_scheduler_lock_holder_idle": _lock_values(locks, "holder_idle"),
        "argus_scheduler_lock_waiters": _lock_values(locks, "waiters"),
        "argus_source_up": {_labels(node.app, node.source): float(node.up) for node in sources},
        "argus_last_pass_timestamp_seconds": {(): report.at.timestamp()},
        "argus_pass_duration_seconds": {(): report.seconds},
        "argus_pass_complete": {(): float(report.complete)},
        "argus_state_saved": {(): float(report.state_saved)},
        **_own(report.own),
        "argus_build_info": {_labels(__version__): 1.0},
    }


def _own(own: OwnState | None) -> dict[str, Mapping[Labels, float]]:
    """What the agent says of itself; unknown, not nothing, where it tells nobody."""
    values = dict.fromkeys(OWN_FAMILIES, math.nan)
    if own is not None:
        counts = (own.unsent, _instant(own.oldest_unsent), len(own.refused), own.incomplete_passes, own.gaps)
        values = dict(zip(OWN_FAMILIES, map(float, counts), strict=True))
    return {name: {(): value} for name, value in values.items()}


def _jobs(results: Iterable[Result]) -> dict[Labels, Result]:
    """Jobs of one name are told apart by nobody's log: the newest run counts, then the earliest deadline."""
    jobs = (result for result in results if result.check == "scheduler_jobs")
    return _merged(jobs, lambda job: _labels(job.app, _job_name(job)), _newness)


def _locks(results: Iterable[Result]) -> dict[Labels, Result]:
    """Of several locks of one application, the one in the worst state."""
    locks = (result for result in results if result.check == "scheduler_lock")
    return _merged(locks, lambda lock: _labels(lock.app), _severity)


def _targets(results: Iterable[Result]) -> dict[Labels, Result]:
    return _merged(results, lambda result: _labels(result.app, result.check, result.target), _severity)


def _merged(
    results: Iterable[Result], labels: Callable[[Result], Labels], rank: Callable[[Result], Any]
) -> dict[Labels, Result]:
    """The highest-ranking result of each label set."""
    merged: dict[Labels, Result] = {}
    for result in results:
        key = labels(result)
        if key not in merged or rank(result) > rank(merged[key]):
            merged[key] = result
    return merged


def _severity(result: Result) -> int:
    return result.status.severity


def _newness(job: Result) -> tuple[float, float]:
    last_run = job.last_run.timestamp() if job.last_run else -math.inf
    return last_run, -job.deadline.timestamp() if job.deadline else -math.inf


def _job_name(job: Result) -> str:
    return job.name or job.target.removeprefix(f"{job.app}/")


def _deadline(job: Result) -> float:
    return math.nan if job.phase is Phase.DISABLED else _instant(job.deadline)


def _lock_values(locks: Mapping[Labels, Result], detail: str) -> dict[Labels, float]:
    values = ((at, lock.details.get(detail)) for at, lock in locks.items())
    return {at: math.nan if value is None else float(value) for at, value in values}


def _instant(instant: datetime | None) -> float:
    return math.nan if instant is None else instant.timestamp()


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value)


_ESCAPED = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')


def _labels(*values: str) -> Labels:
    # Cleaned before they become a key: two texts that look the same in the file are one series.
    return tuple(_SPECIAL.sub(_escape, value) for value in values)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    # Control characters and halves of surrogate pairs become visible: \x1b is written \\x1b.
    return _ESCAPED.get(character) or "\\" + character.encode("unicode_escape").decode()
