"""Keep targets from being told for a while: they are graded, recorded and counted as ever, and told when the
silence ends while they are still wrong."""

from __future__ import annotations

import argparse

from argus_sched.cli import agent_state


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "match", metavar="MATCH", help="a target such as labs/nightly, or a pattern: 'labs/*'"
    )
    parser.add_argument("--for", dest="length", metavar="LENGTH", required=True, help="such as 2h or 1d")
    parser.add_argument("--reason", required=True, help="a few words for the next person")
    agent_state.add_config(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Make the silence, and say what it covers."""
    from argus_sched.agent.config.durations import parse_duration
    from argus_sched.agent.instants import clock_text
    from argus_sched.agent.store.silence_rows import add_silence
    from argus_sched.agent.telling.silences import matches, new_silence
    from argus_sched.agent.telling.visible_text import visible
    from argus_sched.errors import SettingsError

    try:
        length = parse_duration(args.length)
    except ValueError as error:
        raise SettingsError(f"--for: {error}") from None
    at = agent_state.now()
    silence = new_silence(args.match, length, args.reason, at, _person())
    with agent_state.transaction(args.config) as connection:
        number = add_silence(connection, silence, at)
        targets = [target for (target,) in connection.execute("SELECT target FROM results")]
    covered = sum(matches(args.match, target) for target in targets)
    print(f"silence {number}: {visible(args.match)} until {clock_text(silence.until)}")
    print(f"covers {covered} of the {len(targets)} targets of the last pass")
    return 0


def _person() -> str:
    """Who made it, as far as the machine knows."""
    import getpass
    import os

    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return ""
