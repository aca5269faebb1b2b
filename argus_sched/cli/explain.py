"""Show what stands behind one verdict: lines that count, what was read, arithmetic, the source's health.

Reads anew and writes no state. TARGET is as in the output of `check`, such as labs/booking_reminders; a job's
id or name alone will do.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argus_sched.cli import agent_options

if TYPE_CHECKING:
    from argus_sched.agent.check import PassReport, Result


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `explain`."""
    # As argparse would write it, TARGET came last and was taken for another pack.
    parser.usage = "%(prog)s TARGET [--config FILE] [--pack FILE [FILE ...]] [--now TIME] [--timeout LENGTH]"
    parser.add_argument("target", metavar="TARGET")
    agent_options.add(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the transcript; returns the exit code of the verdict."""
    import sys

    from argus_sched.agent.app import build_agent
    from argus_sched.agent.explain import explain
    from argus_sched.agent.kinds.scheduler_jobs import LogLook
    from argus_sched.agent.runner import observe

    agent_options.log_to_stderr()
    settings, packs, environ = agent_options.load(args)
    with agent_options.hard_limit(settings):
        report, looks = observe(build_agent(settings, packs, environ, now=args.now, tells=False))
    result = _find(report, args.target)
    logs = [look for look in looks.values() if isinstance(look, LogLook) and look.app == result.app]
    is_job = result.check == "scheduler_jobs"
    sys.stdout.write(explain(report, result, logs[0] if logs and is_job else None))
    return int(result.status)


def _find(report: PassReport, wanted: str) -> Result:
    """The one result that `wanted` means; raises SettingsError with the nearest names when there is none."""
    from difflib import get_close_matches

    from argus_sched.errors import SettingsError

    found = [r for r in report.results if wanted in (r.target, r.name, r.target.partition("/")[2])]
    if len(found) == 1:
        return found[0]
    if found:
        raise SettingsError(f"{wanted!r} is in several packs: name {' or '.join(r.target for r in found)}")
    _refuse_source(report, wanted)
    near = get_close_matches(wanted, [r.target for r in report.results], n=3, cutoff=0.4)
    advice = f"did you mean {' or '.join(near)}?" if near else "`argus-sched check` lists them"
    raise SettingsError(f"no target {wanted!r}: {advice}")


def _refuse_source(report: PassReport, wanted: str) -> None:
    """Raise SettingsError with its health when `wanted` is a source, as messages name one that failed."""
    from argus_sched.errors import SettingsError

    for node in report.nodes:
        if wanted not in (node.source, f"{node.app}/{node.source}"):
            continue
        apps = {node.app, *(below.app for below in report.nodes if below.parent == node.source)}
        behind = sorted((r for r in report.results if r.app in apps), key=lambda r: r.blind_by is None)
        state = "can be read" if node.up else f"cannot be read: {node.problem}"
        advice = f": explain a target behind it, such as {behind[0].target}" if behind else ""
        raise SettingsError(f"{wanted} is a source, no target, and {state}{advice}")
