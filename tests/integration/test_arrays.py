"""Array literals arrive as the values they were made of."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argus_sched.postgres.arrays import plain_array, quoted_array
from argus_sched.postgres.embedded import EmbeddedPostgres

# Postgres holds no NUL in a text, and lone surrogates are no text at all.
texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))


@pytest.fixture(scope="module")
def connection(postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.dsn(), autocommit=True) as one:
        yield one


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.none() | texts | st.sampled_from(["", "NULL", "{}", 'a"b', "\\", "a,b", " x "])))
def test_texts(connection: psycopg.Connection, values: list[str | None]) -> None:
    assert connection.execute("SELECT %s::text[]", (quoted_array(values),)).fetchone() == (values,)


def test_numbers_and_truth_values(connection: psycopg.Connection) -> None:
    arrays = (plain_array([1, -2, 0]), plain_array([True, False]), plain_array([]))
    found = connection.execute("SELECT %s::int[], %s::bool[], %s::int[]", arrays).fetchone()
    assert found == ([1, -2, 0], [True, False], [])
