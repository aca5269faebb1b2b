"""End a silence before its time; what it hid and is still wrong is told with the next pass."""

from __future__ import annotations

import argparse

from argus_sched.cli import agent_state


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("which", metavar="NUMBER|MATCH", help="as `argus-sched silences` shows it")
    agent_state.add_config(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """End it; refuses when none is meant."""
    from argus_sched.agent.store.silence_rows import end_silences
    from argus_sched.agent.telling.visible_text import visible
    from argus_sched.errors import SettingsError

    with agent_state.transaction(args.config) as connection:
        ended = end_silences(connection, args.which, agent_state.now())
    if not ended:
        raise SettingsError(f"no silence {args.which!r} holds: `argus-sched silences` lists those that do")
    for silence in ended:
        print(f"silence {silence.number} of {visible(silence.match)} ended")
    return 0
