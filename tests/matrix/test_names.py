"""Ten thousand hostile names; `python -m tests.matrix.names --count 1000000` takes as many as one likes."""

from __future__ import annotations

import pytest

from tests.matrix import names


@pytest.mark.parametrize("seed", range(0, 5000, 1000))
def test_no_name_breaks_a_message_or_a_metric(seed: int) -> None:
    for batch in names.batches(2_000, seed):
        names.check_batch(batch)
