"""Look at every job and lock once: prints the verdicts, keeps the state, tells who must be told.

Exit codes: 0 OK, 1 WARN, 2 CRIT, 3 UNKNOWN; of several the worst, CRIT over UNKNOWN over WARN. Usage errors,
crashes and time-outs are 3.
"""

from __future__ import annotations

import argparse

from argus_sched.cli import agent_options


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
    import sys
    from contextlib import closing

    from argus_sched.agent.app import build_agent
    from argus_sched.agent.metrics import render
    from argus_sched.agent.render import as_json, nagios, table
    from argus_sched.agent.runner import run_pass
    from argus_sched.agent.textfile import write_textfile
    from argus_sched.agent.tree import only, verdict

    agent_options.log_to_stderr()
    settings, packs, environ = agent_options.load(args)
    agent = build_agent(settings, packs, environ, now=args.now, tells=not args.no_notify)
    with agent_options.hard_limit(settings), closing(agent):
        report = run_pass(agent)
    shown = only(report, args.only) if args.only else report
    textfile = args.textfile or (None if args.now else settings.textfile)
    forms = {
        "table": lambda: table(shown, colour=agent_options.wants_colour(sys.stdout)),
        "json": lambda: as_json(shown),
        "nagios": lambda: nagios(shown),
    }
    sys.stdout.write(forms[args.output]())
    sys.stdout.flush()
    if textfile:
        write_textfile(textfile, render(report))
    return int(verdict(shown))
