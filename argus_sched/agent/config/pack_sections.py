"""The sections of a pack file, one function each; checks/README.md is the same for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from argus_sched import due_times
from argus_sched.agent.config.durations import format_duration
from argus_sched.agent.config.fields import (
    app_name,
    duration,
    job_name,
    lock_key,
    one_line,
    one_of,
    path_from,
    switch,
    text,
    timezone,
    unit_name,
    variable_name,
)
from argus_sched.agent.config.problems import WrongValueError
from argus_sched.agent.config.sections import Section, Unique, suggestion
from argus_sched.agent.config.yaml_nodes import Value
from argus_sched.agent.hosts import LOCAL
from argus_sched.agent.packs import (
    SHORTEST_GRACE,
    DatabaseSpec,
    JobsCheck,
    JobSpec,
    LockCheck,
    LogSpec,
    Pack,
    PackDefaults,
)

NO_DSN = "a DSN must not stand in YAML: name its variable with dsn_env, or its file with dsn_file"


@dataclass
class PackReader:
    """Reads one pack; `now` is where the due times begin from which a cron job's interval is taken."""

    path: str
    defaults: PackDefaults
    now: datetime
    _targets: Unique = field(default_factory=lambda: Unique("id"))
    _names: Unique = field(default_factory=lambda: Unique("name"))
    _checks: Unique = field(default_factory=lambda: Unique("id"))

    def pack(self, section: Section) -> Pack:
        """The pack, with blanks wherever the section's problems say so."""
        app = section.need("app", app_name, "")
        logs = self._logs(section)
        databases = self._databases(section)
        entries = section.need_subs("checks", "check")
        checks = tuple(check for entry in entries if (check := self._check(entry, logs)))
        _require_sources(section, checks)
        section.finish()
        return Pack(app, self.path, logs, databases, checks)

    def _logs(self, section: Section) -> LogSpec | None:
        logs = section.sub("logs")
        if logs is None:
            return None
        logs.only_one_of("docker", "file", "journal")
        docker, file, journal = (logs.sub(key) for key in ("docker", "file", "journal"))
        window = logs.get("window", duration, self.defaults.window)
        logs.finish()
        if docker:
            return self._docker(docker, window)
        if journal:
            return self._journal(journal, window)
        return self._file(file, window) if file else LogSpec(window=window)

    def _file(self, section: Section, window: timedelta) -> LogSpec:
        spec = LogSpec(
            path=section.need("path", path_from(self._folder), ""),
            format=section.get("format", one_of("docker", "json-file"), "docker"),
            window=window,
        )
        section.finish()
        return spec

    def _journal(self, section: Section, window: timedelta) -> LogSpec:
        spec = LogSpec(
            unit=section.need("unit", unit_name, ""),
            directory=section.get("directory", path_from(self._folder), None),
            window=window,
        )
        section.finish()
        return spec

    def _docker(self, section: Section, window: timedelta) -> LogSpec:
        section.only_one_of(
            "container", "label", "compose_project", required=not section.has("compose_service")
        )
        if section.has("compose_service") and not section.has("compose_project"):
            section.add("compose_service", "needs compose_project beside it")
        spec = LogSpec(
            container=section.get("container", one_line, None),
            compose_project=section.get("compose_project", one_line, None),
            compose_service=section.get("compose_service", one_line, None),
            label=section.get("label", one_line, None),
            host=section.get("host", self._host, LOCAL),
            window=window,
        )
        section.finish()
        return spec

    def _host(self, value: Value) -> str:
        """One of the hosts of the config."""
        name = text(value)
        if name not in self.defaults.hosts:
            raise WrongValueError(f"{value} is no host of the config{suggestion(name, self.defaults.hosts)}")
        return name

    def _databases(self, section: Section) -> tuple[DatabaseSpec, ...]:
        section.only_one_of("database", "databases", required=False)
        single = section.sub("database")
        return tuple(
            self._database(entry) for entry in [*([single] if single else []), *section.subs("databases")]
        )

    def _database(self, section: Section) -> DatabaseSpec:
        section.refuse("dsn", NO_DSN)
        section.refuse("password", NO_DSN)
        section.only_one_of("dsn_env", "dsn_file", required=not section.has("dsn"))
        spec = DatabaseSpec(
            dsn_env=section.get("dsn_env", variable_name, None),
            dsn_file=section.get("dsn_file", path_from(self._folder), None),
        )
        section.finish()
        return spec

    def _check(self, section: Section, logs: LogSpec | None) -> JobsCheck | LockCheck | None:
        kind = section.need("kind", one_of("scheduler_jobs", "scheduler_lock"), "")
        if kind == "scheduler_lock":
            return self._lock(section)
        return self._jobs(section, logs) if kind else None

    def _lock(self, section: Section) -> LockCheck:
        check = LockCheck(
            id=section.get("id", one_line, "scheduler_lock"),
            key=section.need("key", lock_key, 0),
            takeover=section.get("takeover", duration, self.defaults.takeover),
            tick=section.get("tick", duration, None),
            holder_name=section.get("holder_name", one_line, None),
        )
        self._targets.claim(check.id, section, "id")
        section.finish()
        return check

    def _jobs(self, section: Section, logs: LogSpec | None) -> JobsCheck:
        check_id = section.get("id", one_line, "scheduler_jobs")
        self._checks.claim(check_id, section, "id")
        entries = section.need_subs("jobs", "job")
        jobs = tuple(job for entry in entries if (job := self._job(entry, logs)))
        section.finish()
        return JobsCheck(check_id, jobs)

    def _job(self, section: Section, logs: LogSpec | None) -> JobSpec | None:
        job_id, name = section.need("id", one_line, ""), section.need("name", job_name, "")
        self._targets.claim(job_id, section, "id")
        self._names.claim(name, section, "name")
        trigger = self._trigger(section)
        grace = section.get("grace", duration, self.defaults.grace)
        max_run = section.get("max_run", duration, None)
        enabled, inferred = section.get("enabled", switch, True), section.get("inferred", switch, False)
        section.finish()
        if trigger is None:
            return None
        interval = due_times.longest_gap(trigger, self.now)
        grace = grace or max(interval, SHORTEST_GRACE)
        job = JobSpec(job_id, name, trigger, grace, interval, max_run, enabled, inferred, section.line)
        if logs and job.limit > logs.window:
            _warn_of_window(section, job, logs.window)
        return job

    def _trigger(self, section: Section) -> due_times.Trigger | None:
        section.only_one_of("every", "cron")
        zone = section.get("timezone", timezone, self.defaults.timezone)
        if section.has("timezone") and not section.has("cron"):
            section.warn("timezone", "has no effect without cron")
        interval = section.get("every", lambda value: due_times.Every(duration(value)), None)
        cron = section.get("cron", lambda value: due_times.cron(text(value), zone), None)
        return interval or cron

    @property
    def _folder(self) -> Path:
        return Path(self.path).absolute().parent


def _require_sources(section: Section, checks: tuple[JobsCheck | LockCheck, ...]) -> None:
    kinds = {check.kind for check in checks}
    if "scheduler_jobs" in kinds and not section.has("logs"):
        section.add("logs", "is missing: scheduler_jobs reads the application's log")
    if "scheduler_lock" in kinds and not (section.has("database") or section.has("databases")):
        section.add("database", "is missing: scheduler_lock looks into the application's database")


def _warn_of_window(section: Section, job: JobSpec, window: timedelta) -> None:
    limit = format_duration(job.limit)
    section.warn(
        "", f"logs.window {format_duration(window)} is shorter than the limit of {job.id}: make it {limit}"
    )
