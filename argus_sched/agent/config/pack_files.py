"""Check packs as files: one application's YAML becomes the values of `packs`, or all that is wrong in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from glob import glob, has_magic

from argus_sched.agent.config.pack_sections import PackReader
from argus_sched.agent.config.problems import Problem, Problems, ProblemsError
from argus_sched.agent.config.sections import read_section
from argus_sched.agent.config.settings import AgentSettings
from argus_sched.agent.packs import Pack, PackDefaults, PackFile
from argus_sched.errors import SettingsError

BUILT_IN = PackDefaults()
MOST_TOLD = 3


def load_pack(path: str, environ: Mapping[str, str], defaults: PackDefaults = BUILT_IN) -> Pack:
    """The pack in the file at `path`; raises ProblemsError with everything that is wrong in it."""
    pack, found = inspect_pack(path, environ, defaults)
    if pack is None:
        raise ProblemsError(found.errors)
    return pack


def load_packs(settings: AgentSettings, environ: Mapping[str, str]) -> tuple[Pack, ...]:
    """The packs that `settings` name, by path; raises ProblemsError with what is wrong in any of them.

    No pack at all is an error: a check of nothing must not say OK.
    """
    inspected = inspect_packs(pack_paths(settings), environ, settings.defaults)
    wrong = [problem for _, _, found in inspected for problem in found.errors]
    if wrong:
        raise ProblemsError(wrong)
    return tuple(pack for _, pack, _ in inspected if pack)


def read_packs(settings: AgentSettings, environ: Mapping[str, str]) -> tuple[PackFile, ...]:
    """The files that `settings` name, each with its pack or with what is wrong in it.

    For passes that nobody watches: one wrong file must not leave the others' jobs unwatched.
    """
    inspected = inspect_packs(pack_paths(settings), environ, settings.defaults)
    return tuple(_pack_file(path, pack, found.errors) for path, pack, found in inspected)


def _pack_file(path: str, pack: Pack | None, wrong: Sequence[Problem]) -> PackFile:
    if not wrong:
        return PackFile(path, pack)
    lines = [f"line {problem.line}: {problem.words}" for problem in sorted(wrong)]
    more = [f"{len(lines) - MOST_TOLD} more"] if len(lines) > MOST_TOLD else []
    return PackFile(path, None, "nothing of it is watched: " + "; ".join(lines[:MOST_TOLD] + more))


def pack_paths(settings: AgentSettings) -> tuple[str, ...]:
    """The files that `settings.packs` name, each once; a plain path counts whether or not it exists."""
    found = [
        path
        for pattern in settings.packs
        for path in (sorted(glob(pattern)) if has_magic(pattern) else [pattern])  # noqa: PTH207 - any root
    ]
    if not found:
        raise SettingsError(f"no check pack matches {', '.join(settings.packs)}: name packs in the config")
    return tuple(dict.fromkeys(found))


def problems(path: str, environ: Mapping[str, str], defaults: PackDefaults = BUILT_IN) -> list[Problem]:
    """Everything that is wrong in the file at `path`, by line; empty for a good pack."""
    return sorted(inspect_pack(path, environ, defaults)[1].errors)


def inspect_pack(
    path: str, environ: Mapping[str, str], defaults: PackDefaults, now: datetime | None = None
) -> tuple[Pack | None, Problems]:
    """The pack at `path`, None when there are errors, and its errors and warnings.

    `now` is where the due times begin from which a cron job's interval is taken.
    """
    found = Problems(path)
    section = read_section(path, environ, found)
    if section is None:
        return None, found
    pack = PackReader(path, defaults, now or datetime.now(UTC)).pack(section)
    pack = replace(pack, warnings=tuple(map(str, found.warnings)))
    return (None if found.errors else pack), found


def inspect_packs(
    paths: Iterable[str], environ: Mapping[str, str], defaults: PackDefaults
) -> list[tuple[str, Pack | None, Problems]]:
    """Each path with what `inspect_pack` says of it; a second pack of one application is an error too."""
    inspected = [(path, *inspect_pack(path, environ, defaults)) for path in paths]
    repeated = _repeated_apps([pack for _, pack, _ in inspected if pack])
    for path, _, found in inspected:
        found.errors += [problem for problem in repeated if problem.file == path]
    return inspected


def _repeated_apps(packs: Sequence[Pack]) -> list[Problem]:
    """One problem for each pack whose application an earlier pack watches already."""
    first: dict[str, str] = {}
    return [
        Problem(pack.path, 1, "app", f"the application {pack.app!r} has a pack already: {first[pack.app]}")
        for pack in packs
        if first.setdefault(pack.app, pack.path) != pack.path
    ]
