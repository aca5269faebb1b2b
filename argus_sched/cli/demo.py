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
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Play the demo; 0 when everything came as it should."""
    import shutil
    import tempfile

    from argus_sched.harness.console import ending_cleanly, narrate
    from argus_sched.harness.demo import play

    report = args.report or Path(tempfile.mkdtemp(prefix="argus-demo-report-"))
    try:
        with ending_cleanly():
            return play(narrate, report)
    except BaseException:
        if args.report is None:
            shutil.rmtree(report, ignore_errors=True)
        raise
