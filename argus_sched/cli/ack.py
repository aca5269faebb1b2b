"""Stop the reminders of an open incident; it is told again when it gets worse, and when it ends."""

from __future__ import annotations

import argparse

from argus_sched.cli import agent_state


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("match", metavar="TAG|MATCH", help="the tag in the message, a target, or a pattern")
    agent_state.add_config(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Acknowledge; refuses when no open incident is meant."""
    from argus_sched.agent.store.incident_rows import acknowledge
    from argus_sched.agent.telling.visible_text import visible
    from argus_sched.errors import SettingsError

    with agent_state.transaction(args.config) as connection:
        acked = acknowledge(connection, args.match)
    if not acked:
        raise SettingsError(f"no open incident matches {args.match!r}: `argus-sched history` lists them")
    for incident in acked:
        print(f"acknowledged #{incident.id}: {incident.status.name} {visible(incident.subject)}")
    return 0
