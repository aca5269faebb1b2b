"""List the last incidents, newest first, and with --steps every step and why it was taken."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING, Any

from argus_sched.cli import agent_state, tables

if TYPE_CHECKING:
    from argus_sched.agent.store.incident_rows import Transition
    from argus_sched.agent.telling.incidents import Incident


WIDTH = 80
# Below what stands behind the instant.
INDENT = " " * 22


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("match", metavar="MATCH", nargs="?", default="*", help="a target or a pattern")
    parser.add_argument("--limit", type=_count, default=20, help="how many (20)")
    parser.add_argument("--steps", action="store_true", help="show each change of state with its cause")
    agent_state.add_config(parser)
    agent_state.add_output(parser)
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a whole number above zero, got {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Print each with what was told of it."""
    from argus_sched.agent.store.incident_rows import (
        acknowledged,
        recent_incidents,
        recent_transitions,
    )

    with agent_state.snapshot(args.config) as connection:
        acked = acknowledged(connection)
        steps = recent_transitions(connection, args.match, args.limit) if args.steps else ()
        incidents = () if args.steps else recent_incidents(connection, args.match, args.limit)
    if args.output == "json":
        tables.show([*map(_step_row, steps), *(_row(one, acked) for one in incidents)], (), "json")
        return 0
    lines = [*map(_step, steps), *(_line(one, acked) for one in incidents)]
    print("\n".join(lines) if lines else f"no incident on record matches {args.match}")
    return 0


def _line(incident: Incident, acked: frozenset[str]) -> str:
    from argus_sched.agent.instants import clock_text
    from argus_sched.agent.telling.messages import length_text
    from argus_sched.agent.telling.visible_text import visible

    still = "acked" if incident.id in acked else "open"
    lasted = still if incident.duration is None else length_text(incident.duration)
    status, subject = incident.status.name, visible(incident.subject)
    begin = f"{clock_text(incident.opened_at)}  {lasted:>7}  {status:7}  {subject}  #{incident.id}"
    return "\n".join([*_wrapped(begin), *_wrapped(visible(incident.summary), INDENT)])


def _row(incident: Incident, acked: frozenset[str]) -> dict[str, Any]:
    lasted = incident.duration
    return {
        "incident": incident.id,
        "target": incident.subject,
        "name": incident.name,
        "status": incident.status.name,
        "phase": incident.phase.value,
        "summary": incident.summary,
        "reason": incident.reason,
        "opened_at": incident.opened_at,
        "closed_at": incident.closed_at,
        "duration_seconds": None if lasted is None else lasted.total_seconds(),
        "acknowledged": incident.id in acked,
    }


def _step(step: Transition) -> str:
    from argus_sched.agent.instants import clock_text
    from argus_sched.agent.telling.visible_text import visible

    told = f"told as {step.told}" if step.told else "not told"
    muted = f" ({visible(step.muted)})" if step.muted else ""
    moved = f"{step.from_state} → {step.to_state}  {step.to_status.name}"
    line = f"{clock_text(step.at)}  {visible(step.subject)}  {moved}  {step.cause}, {told}{muted}"
    return "\n".join(_wrapped(line))


def _step_row(step: Transition) -> dict[str, Any]:
    return {
        "at": step.at,
        "target": step.subject,
        "incident": step.incident_id,
        "from_state": step.from_state,
        "to_state": step.to_state,
        "from_status": step.from_status.name,
        "to_status": step.to_status.name,
        "cause": step.cause,
        "told": step.told,
        "muted": step.muted,
        "summary": step.summary,
    }


def _wrapped(text: str, first_indent: str = "") -> list[str]:
    """`text` in lines of the table's width; a name that is longer stays in one piece."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first_indent,
        subsequent_indent=INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
