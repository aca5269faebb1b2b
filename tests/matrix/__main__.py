"""Run the fault matrix: `python -m tests.matrix [--seed N] [--runs N] [--cell NAME] [--jobs N]`.

Run number N acts out cell N (modulo the number of cells) from seed N, so one number repeats it.
"""

from __future__ import annotations

import argparse
import sys

from tests.matrix.runs import play_all


def main() -> int:
    """Returns 1 when any run failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first run's number")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--cell", help="only cells whose name contains this")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--verbose", action="store_true", help="print each run")
    args = parser.parse_args()
    return play_all(args.seed, args.runs, args.cell or "", args.jobs, verbose=args.verbose)


if __name__ == "__main__":
    sys.exit(main())
