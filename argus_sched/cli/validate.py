"""Check the agent's config and check packs without touching anything: exit 0 when all can be used, else 3."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argus_sched.agent.config.problems import Problem
    from argus_sched.agent.config.validation import FileVerdict


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="check packs; without any, those of the config"
    )
    parser.add_argument(
        "--config", metavar="FILE", help="the agent's settings (else $ARGUS_CONFIG, else /etc)"
    )
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print a line for each good file, and one for each problem and warning."""
    from argus_sched.agent.config.secret_sources import Environment
    from argus_sched.agent.config.validation import validate_files

    verdicts = validate_files(args.files, args.config, Environment())
    if args.output == "json":
        _print_json(verdicts)
    else:
        for verdict in verdicts:
            print("\n".join(_lines(verdict)))
    return 0 if all(verdict.ok for verdict in verdicts) else 3


def _lines(verdict: FileVerdict) -> list[str]:
    warnings = [f"{warning} (warning)" for warning in verdict.warnings]
    if not verdict.ok:
        return [*map(str, verdict.problems), *warnings]
    if verdict.jobs is None or verdict.locks is None:
        return [f"{verdict.file}: ok", *warnings]
    return [f"{verdict.file}: ok ({_count(verdict.jobs, 'job')}, {_count(verdict.locks, 'lock')})", *warnings]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _print_json(verdicts: tuple[FileVerdict, ...]) -> None:
    import json

    from argus_sched.cli import streams

    streams.speak_utf8()
    files = [
        {
            "file": verdict.file,
            "ok": verdict.ok,
            "jobs": verdict.jobs,
            "locks": verdict.locks,
            "problems": list(map(_fields, verdict.problems)),
            "warnings": list(map(_fields, verdict.warnings)),
        }
        for verdict in verdicts
    ]
    print(
        json.dumps(
            {"ok": all(verdict.ok for verdict in verdicts), "files": files}, indent=2, ensure_ascii=False
        )
    )


def _fields(problem: Problem) -> dict[str, Any]:
    return {"line": problem.line, "path": problem.path, "message": problem.message}
