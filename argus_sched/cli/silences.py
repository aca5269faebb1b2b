"""List the silences that hold, the next to end first."""

from __future__ import annotations

import argparse

from argus_sched.cli import agent_state


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    agent_state.add_config(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one line for each."""
    from argus_sched.agent.instants import clock_text
    from argus_sched.agent.store.silence_rows import active_silences
    from argus_sched.agent.telling.visible_text import visible

    with agent_state.snapshot(args.config) as connection:
        silences = active_silences(connection, agent_state.now())
    for silence in silences:
        by = f" ({visible(silence.by)})" if silence.by else ""
        match, reason = visible(silence.match), visible(silence.reason)
        print(f"{silence.number}  until {clock_text(silence.until)}  {match}  {reason}{by}")
    if not silences:
        print("no silence holds")
    return 0
