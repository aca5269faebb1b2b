"""Many plays in a row: which cell a number means, what a failure says, and the figures at the end."""

from __future__ import annotations

import logging
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from tests.matrix.plans import PLANS
from tests.matrix.play import act
from tests.matrix.table import CELLS, Cell


@dataclass(frozen=True)
class Outcome:
    """One run; `problem` is empty when everything was as it must be."""

    seed: int
    cell: str
    passes: int
    seconds: float
    problem: str = ""


def cell_of(seed: int, cells: Sequence[Cell] = CELLS) -> Cell:
    """The cell that run `seed` acts out."""
    return cells[seed % len(cells)]


def run(seed: int, name: str = "", *, exact: bool = False) -> Outcome:
    """One run of a cell whose name contains `name`, or is `name`; never raises for what the agent does wrong."""
    cell = cell_of(seed, [cell for cell in CELLS if (name == cell.name if exact else name in cell.name)])
    began = time.monotonic()
    passes, problem = 0, ""
    with silence():
        try:
            passes = act(cell, seed, PLANS[cell.name])
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            problem = f"{type(error).__name__}: {error} ({where.filename.rsplit('/', 1)[-1]}:{where.lineno})"
    return Outcome(seed, cell.name, passes, time.monotonic() - began, problem)


@contextmanager
def silence() -> Iterator[None]:
    """The agent's log says nothing meanwhile: it would tell of every fault that is played."""
    logger, level = logging.getLogger("argus_sched"), logging.getLogger("argus_sched").level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def play_all(seed: int, runs: int, name: str, jobs: int, *, verbose: bool) -> int:
    """Run them and print the failures and the sum; returns the exit code."""
    began, failures, passes = time.monotonic(), Counter[str](), 0
    for outcome in _outcomes(range(seed, seed + runs), name, jobs):
        passes += outcome.passes
        if outcome.problem:
            failures[outcome.cell] += 1
            print(f"FAILED seed {outcome.seed}, {outcome.cell}: {outcome.problem}", flush=True)
        elif verbose:
            print(f"{outcome.seed:>6} {outcome.seconds:6.2f} s  {outcome.cell}", flush=True)
    wrong = failures.total()
    print(
        f"{runs} runs, {passes} passes, {wrong} failed, {time.monotonic() - began:.0f} s {dict(failures) or ''}"
    )
    return int(wrong > 0)


def _outcomes(seeds: range, name: str, jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from (run(seed, name) for seed in seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, seeds, [name] * len(seeds), chunksize=4)
