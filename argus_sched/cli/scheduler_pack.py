"""The agent's check pack and the scheduler's jobs, kept in step: written from them, or compared with them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta

from argus_sched import due_times
from argus_sched.agent.config.durations import format_duration
from argus_sched.agent.config.pack_files import load_pack
from argus_sched.agent.config.yaml_nodes import quoted
from argus_sched.agent.discovery.pack_text import app_from
from argus_sched.agent.packs import DEFAULT_WINDOW, SHORTEST_GRACE, JobsCheck, JobSpec, LockCheck, Pack
from argus_sched.scheduling.job import Job
from argus_sched.scheduling.scheduler import Scheduler


def text_of(scheduler: Scheduler, container: str | None, dsn_env: str | None) -> str:
    """A pack for every declared job that comes round, and for the lock where a leader is elected."""
    settings = scheduler.settings
    app = app_from(settings.namespace)
    lines = [
        "# Written by `argus-sched scheduler pack` from the declared jobs; compare later with --check.",
        f"app: {app}",
        "logs:",
        f"  docker: {{container: {quoted(container or app)}}}",
        f"  window: {format_duration(_window(scheduler.jobs))}",
    ]
    lock = []
    if settings.leads:
        variable = dsn_env or f"{app.upper().replace('-', '_').replace('.', '_')}_DATABASE_URL"
        lines.append(f"database: {{dsn_env: {variable}}}")
        lock = ["  - kind: scheduler_lock", f"    key: {settings.key}"]
    entries = [_entry(job) for job in scheduler.jobs]
    return "\n".join([*lines, "checks:", *lock, "  - kind: scheduler_jobs", "    jobs:", *entries, ""])


def _window(jobs: list[Job]) -> timedelta:
    limits = [_interval(job) + max(_interval(job), SHORTEST_GRACE) for job in jobs]
    return max([DEFAULT_WINDOW, *limits])


def _interval(job: Job) -> timedelta:
    return due_times.longest_gap(job.trigger, due_times.EPOCH)


def _entry(job: Job) -> str:
    head = f"{{id: {quoted(job.id)}, name: {quoted(job.name)}"
    match job.trigger:
        case due_times.Every(interval=interval):
            return f"      - {head}, every: {format_duration(interval)}}}"
        case due_times.Cron(expression=expression, zone=zone):
            return f"      - {head}, cron: {quoted(expression)}, timezone: {zone}}}"
    return f"      # {job.id}: the agent cannot age the trigger {job.trigger}"


def differences(scheduler: Scheduler, path: str) -> list[str]:
    """What the pack at `path` says otherwise than the declared jobs, a sentence each; none when equal."""
    pack = load_pack(path, os.environ)
    return [*_lock_differences(scheduler, pack), *_job_differences(scheduler.jobs, pack)]


def _lock_differences(scheduler: Scheduler, pack: Pack) -> Iterator[str]:
    keys = [check.key for check in pack.checks if isinstance(check, LockCheck)]
    if scheduler.settings.leads and scheduler.settings.key not in keys:
        yield f"the pack does not watch the lock {scheduler.settings.key} of this scheduler"


def _job_differences(jobs: list[Job], pack: Pack) -> Iterator[str]:
    listed = {spec.id: spec for check in pack.checks if isinstance(check, JobsCheck) for spec in check.jobs}
    aged = [job for job in jobs if not isinstance(job.trigger, due_times.Once)]
    for job in aged:
        spec = listed.pop(job.id, None)
        if spec is None:
            yield f"job {job.id!r} is declared, but not in the pack"
        else:
            yield from _entry_differences(job, spec)
    for job_id in listed:
        yield f"job {job_id!r} is in the pack, but not declared any more"


def _entry_differences(job: Job, spec: JobSpec) -> Iterator[str]:
    if spec.name != job.name:
        yield f"job {job.id!r} is named {job.name!r} in the code, but {spec.name!r} in the pack"
    if _rule(spec.trigger) != _rule(job.trigger):
        yield f"job {job.id!r} has the trigger {job.trigger} in the code, but {spec.trigger} in the pack"


def _rule(trigger: due_times.Trigger) -> object:
    # The agent ages a job by its interval alone: a phase shifts every due time by the same amount.
    return trigger.interval if isinstance(trigger, due_times.Every) else trigger
