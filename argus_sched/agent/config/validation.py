"""Checking files without touching anything else: what `argus-sched validate` says of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from argus_sched.agent.config.dsn import dsn_of
from argus_sched.agent.config.pack_files import inspect_packs, pack_paths
from argus_sched.agent.config.problems import Problem, ProblemsError
from argus_sched.agent.config.settings import AgentSettings, load_settings
from argus_sched.agent.packs import DatabaseSpec, JobsCheck, Pack
from argus_sched.errors import SettingsError


@dataclass(frozen=True)
class FileVerdict:
    """One file: its problems and warnings; `jobs` and `locks` are None for a config and for a wrong pack."""

    file: str
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    jobs: int | None = None
    locks: int | None = None
    databases: tuple[DatabaseSpec, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the file can be used."""
        return not self.problems


def validate_files(
    files: Sequence[str], config: str | None, environ: Mapping[str, str]
) -> tuple[FileVerdict, ...]:
    """The verdict on the config, where there is one, and on the packs `files`, else on those it names.

    Raises SettingsError when the config names packs and none is there.
    """
    try:
        settings = load_settings(config, environ)
    except ProblemsError as error:
        # Without a config its defaults are unknown, and packs are judged by it.
        return (FileVerdict(error.problems[0].file, error.problems),)
    first = (FileVerdict(settings.path, _unsendable(settings, environ)),) if settings.path else ()
    if files:
        return first + _packs(tuple(dict.fromkeys(files)), settings, environ)
    # What the config names runs here, so what only this machine has is looked for too.
    verdicts = _packs(pack_paths(settings), settings, environ)
    return first + tuple(_with_missing_dsns(verdict, environ) for verdict in verdicts)


def _unsendable(settings: AgentSettings, environ: Mapping[str, str]) -> tuple[Problem, ...]:
    """What would keep the first alert from going out: a token that is not there."""
    telegram = settings.telegram
    if telegram is None:
        return ()
    try:
        telegram.token_of(environ)
    except SettingsError as error:
        return (Problem(settings.path or "", telegram.line, "telegram", str(error)),)
    return ()


def _packs(
    paths: Sequence[str], settings: AgentSettings, environ: Mapping[str, str]
) -> tuple[FileVerdict, ...]:
    verdicts = []
    for path, pack, found in inspect_packs(paths, environ, settings.defaults):
        problems = sorted(found.errors)
        jobs, locks = _counts(pack) if pack else (None, None)
        warnings = tuple(sorted(found.warnings))
        databases = pack.databases if pack else ()
        verdicts.append(FileVerdict(path, tuple(problems), warnings, jobs, locks, databases))
    return tuple(verdicts)


def _with_missing_dsns(verdict: FileVerdict, environ: Mapping[str, str]) -> FileVerdict:
    """`verdict` with a warning for each database whose DSN is not there: its lock will be UNKNOWN."""
    missing = []
    for database in verdict.databases:
        try:
            dsn_of(database, environ)
        except SettingsError as error:
            missing.append(Problem(verdict.file, 1, "database", str(error)))
    return replace(verdict, warnings=(*verdict.warnings, *missing))


def _counts(pack: Pack) -> tuple[int, int]:
    """How many jobs and locks the pack watches."""
    jobs = [check for check in pack.checks if isinstance(check, JobsCheck)]
    return sum(len(check.jobs) for check in jobs), len(pack.checks) - len(jobs)
