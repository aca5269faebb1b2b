"""Look at every job and lock once: prints the verdicts, keeps the state, tells who must be told.

Exit codes: 0 OK, 1 WARN, 2 CRIT, 3 UNKNOWN; of several the worst, CRIT over UNKNOWN over WARN. Usage errors,
crashes and time-outs are 3.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from argus_sched.agent.status import Status, worst
from argus_sched.cli import agent_options, streams

if TYPE_CHECKING:
    from pathlib import Path

    from argus_sched.agent.check import PassReport


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `check`."""
    agent_options.add(parser)
    parser.add_argument("--only", metavar="PATTERN", help="show and count only targets or names like this")
    parser.add_argument("--output", choices=("table", "json", "nagios"), default="table")
    parser.add_argument("--textfile", metavar="PATH", help="write metrics for node_exporter to this file")
    parser.add_argument("--no-notify", action="store_true", help="send nothing, neither alerts nor heartbeat")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """One pass; returns its exit code."""
    from contextlib import closing

    from argus_sched.agent.app import build_agent
    from argus_sched.agent.runner import run_pass
    from argus_sched.agent.tree import only, verdict

    agent_options.log_to_stderr()
    settings, files, environ = agent_options.load_what_is_right(args)
    packs = tuple(file.pack for file in files if file.pack)
    agent = build_agent(settings, packs, environ, files=files, now=args.now, tells=not args.no_notify)
    with agent_options.hard_limit(settings), closing(agent):
        report = run_pass(agent)
    textfile = args.textfile or (None if args.now else settings.textfile)
    # Before anything is printed: a reader that goes away must not cost the metrics of this pass.
    exported = _export(textfile, report) if textfile else Status.OK
    shown = only(report, args.only) if args.only else report
    _show(shown, args.output)
    return int(worst((verdict(shown), exported)))


def _export(path: str | Path, report: PassReport) -> Status:
    """Write the metrics; UNKNOWN, and told, when that failed, which makes no verdict wrong."""
    from argus_sched.agent.metrics import render
    from argus_sched.agent.textfile import TextfileError, write_textfile

    try:
        write_textfile(path, render(report))
    except TextfileError as error:
        print(f"argus-sched: {error}", file=sys.stderr)
        return Status.UNKNOWN
    return Status.OK


def _show(report: PassReport, output: str) -> None:
    from argus_sched.agent.render import as_json, nagios, table

    if output == "json":
        streams.speak_utf8()
    forms = {
        "table": lambda: table(report, colour=agent_options.wants_colour(sys.stdout)),
        "json": lambda: as_json(report),
        "nagios": lambda: nagios(report),
    }
    sys.stdout.write(forms[output]())
    sys.stdout.flush()
