"""Tell what would be graded when, with nothing touched: reads the logs once, then judges at each TIME.

An instant before the read is judged by what was written until then (of each job the newest runs are known),
one after it as if nothing more were written. Writes no state, sends nothing, looks at no lock; exits 0, or 3
when the logs cannot be read.
"""

from __future__ import annotations

import argparse

from argus_sched.cli import agent_options

UNKNOWN = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `simulate`."""
    # As argparse would write it, PACK came last and was taken for another TIME.
    parser.usage = (
        "%(prog)s PACK --at TIME [TIME ...] [--config FILE] [--timeout LENGTH] [--output {table,json}]"
    )
    parser.add_argument("pack", metavar="PACK", nargs=1, help="the pack whose jobs are judged")
    agent_options.add_config(parser)
    parser.add_argument(
        "--at", metavar="TIME", nargs="+", required=True, type=agent_options.instant, help="RFC 3339"
    )
    agent_options.add_timeout(parser)
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the grades."""
    import json
    import sys
    from contextlib import closing

    from argus_sched.agent import supposition
    from argus_sched.agent.app import build_agent
    from argus_sched.agent.kinds.scheduler_jobs import LogLook
    from argus_sched.agent.packs import without_locks
    from argus_sched.agent.runner import observe

    agent_options.log_to_stderr()
    settings, packs, environ = agent_options.load(args)
    agent = build_agent(settings, without_locks(packs), environ, tells=False)
    with agent_options.hard_limit(settings), closing(agent):
        report, looks = observe(agent)
    found = supposition.grades((look for look in looks.values() if isinstance(look, LogLook)), args.at)
    if args.output == "json":
        sys.stdout.write(json.dumps(supposition.as_document(found), ensure_ascii=False, indent=1) + "\n")
    else:
        sys.stdout.write(supposition.table(found))
    for node in report.nodes:
        if not node.up:
            print(f"argus-sched: {node.source}: {node.problem}", file=sys.stderr)
    return UNKNOWN if any(not node.up for node in report.nodes) or not report.complete else 0
