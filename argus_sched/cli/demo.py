"""The whole story in under a minute: one leader, two failovers, a job that silently stopped, and its alert.

Needs no root, no Docker, no network and no running Postgres; leaves nothing behind but its report.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--report", metavar="DIR", type=Path, help="where the report goes (else a new temporary folder)"
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="go on after the story, with a page on 127.0.0.1 to watch, until Ctrl-C",
    )
    parser.add_argument(
        "--port", metavar="N", type=int, default=0, help="the port of --serve's page (else any free one)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Play the demo; 0 when everything came as it should."""
    import contextlib

    from argus_sched.harness import archive
    from argus_sched.harness.console import ending_cleanly, narrate
    from argus_sched.harness.demo import play
    from argus_sched.harness.live import Pages

    # A port that is taken and a folder that cannot be written to are told before the story begins.
    with (
        ending_cleanly(),
        archive.place(args.report, "argus-demo-report-") as report,
        Pages(args.port) if args.serve else contextlib.nullcontext() as pages,
    ):
        return play(narrate, report, pages)
