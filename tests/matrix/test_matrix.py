"""Every cell of the fault matrix, a few seeds of each; `python -m tests.matrix` plays as many as one likes."""

from __future__ import annotations

import pytest

from tests.matrix.plans import PLANS
from tests.matrix.runs import run
from tests.matrix.table import CELLS, Cell

SEEDS = (1, 2, 3)


def test_every_cell_is_acted_out() -> None:
    assert set(PLANS) == {cell.name for cell in CELLS}
    assert len({cell.name for cell in CELLS}) == len(CELLS)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_nothing_false_is_told_and_nothing_is_missed(cell: Cell) -> None:
    problems = [outcome.problem for seed in SEEDS if (outcome := run(seed, cell.name, exact=True)).problem]
    assert problems == []
