"""A check pack as text, written from the jobs that a log shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from argus_sched import due_times
from argus_sched.agent.config.durations import format_duration
from argus_sched.agent.config.yaml_nodes import quoted
from argus_sched.agent.discovery.sightings import Guess, Sighting, guess
from argus_sched.agent.hosts import LOCAL
from argus_sched.agent.packs import DEFAULT_WINDOW, SHORTEST_GRACE, LogSpec

_HEAD = """\
# Written by `argus-sched discover` from {runs}. A trigger with `inferred: true` was taken from the log:
# compare it with the application, then delete the mark. A job behind a # lacks what stands above it.
app: {app}

logs:
  {source}
  window: {window}

# The scheduler's lock, where the application holds one: name its DSN and its key, and take the # away.
#database: {{dsn_env: {variable}}}

checks:
#  - kind: scheduler_lock
#    key: 911000001

  - kind: scheduler_jobs
    jobs:
"""


def write_pack(app: str, logs: LogSpec, jobs: Sequence[Sighting], timezone: str) -> tuple[str, int]:
    """The text of a pack for `app`, and how many of its jobs are certain; with none it is no pack yet."""
    guesses = [guess(sighting, timezone) for sighting in jobs]
    certain = [found for found in guesses if found.trigger and not found.missing]
    ids = job_ids([sighting.name for sighting in jobs])
    runs = sum(sighting.runs for sighting in jobs)
    head = _HEAD.format(
        runs=f"{runs} run{'s' * (runs != 1)}",
        app=app,
        source=_source(logs),
        window=format_duration(max([DEFAULT_WINDOW, *map(_limit, certain)])),
        variable=_variable(app),
    )
    return head + "".join(map(_entry, ids, jobs, guesses)), len(certain)


def app_from(text: str) -> str:
    """An application's name, made of the name of a container or a file."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-._")[:63] or "app"


def job_ids(names: Sequence[str]) -> list[str]:
    """An id for each name, all different: its letters and digits in lower case."""
    ids: list[str] = []
    for name in names:
        base = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:60] or "job"
        numbered = (f"{base}_{number}" for number in range(2, len(names) + 2))
        ids.append(base if base not in ids else next(word for word in numbered if word not in ids))
    return ids


def _variable(app: str) -> str:
    """The name of the variable that holds the application's DSN."""
    name = re.sub(r"[^A-Z0-9]", "_", app.upper()) + "_DATABASE_URL"
    return f"APP_{name}" if name[0].isdigit() else name


def _source(logs: LogSpec) -> str:
    if logs.path is not None:
        return f"file: {{path: {quoted(logs.path)}, format: {logs.format}}}"
    host = "" if logs.host == LOCAL else f", host: {quoted(logs.host)}"
    return f"docker: {{container: {quoted(logs.container or '')}{host}}}"


def _limit(found: Guess) -> timedelta:
    """The age at which the job will be stale, so that the window covers it."""
    if found.trigger is None:
        return timedelta(0)
    interval = due_times.longest_gap(found.trigger.rule, due_times.EPOCH)
    return interval + max(interval, SHORTEST_GRACE)


def _entry(job_id: str, sighting: Sighting, found: Guess) -> str:
    trigger = found.trigger.written if found.trigger else "every: ?"
    line = f"{{id: {quoted(job_id)}, name: {quoted(sighting.name)}, {trigger}"
    said = f"; its trigger says {quoted(sighting.trigger)}" if sighting.trigger else ""
    if found.missing or found.trigger is None:
        return f"      # {found.missing}{said}\n      #- {line}}}\n"
    note = f"      # {found.note}\n" if found.note else ""
    return f"{note}      - {line}, inferred: true}}\n"
