"""List the silences that hold, the next to end first."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from argus_sched.cli import agent_state, tables

if TYPE_CHECKING:
    from argus_sched.agent.telling.silences import Silence


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    agent_state.add_config(parser)
    agent_state.add_output(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one line for each, or all of them as JSON."""
    from argus_sched.agent.instants import clock_text
    from argus_sched.agent.store.silence_rows import active_silences
    from argus_sched.agent.telling.visible_text import visible

    with agent_state.snapshot(args.config) as connection:
        silences = active_silences(connection, agent_state.now())
    if args.output == "json":
        tables.show([_row(silence) for silence in silences], (), "json")
        return 0
    for silence in silences:
        by = f" ({visible(silence.by)})" if silence.by else ""
        match, reason = visible(silence.match), visible(silence.reason)
        print(f"{silence.number}  until {clock_text(silence.until)}  {match}  {reason}{by}")
    if not silences:
        print("no silence holds")
    return 0


def _row(silence: Silence) -> dict[str, Any]:
    return {
        "number": silence.number,
        "match": silence.match,
        "until": silence.until,
        "reason": silence.reason,
        "by": silence.by,
        "made_at": silence.made_at,
    }
