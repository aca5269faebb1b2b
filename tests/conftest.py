"""Fixtures every test may use: a real Postgres per run, a database per test, and the handed field cases."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from argus_sched.postgres.embedded import EmbeddedPostgres, temporary_database

FIELD = Path(__file__).parent / "field"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """One embedded server for the whole run; never stop it in a test, start your own for that."""
    with EmbeddedPostgres() as server:
        yield server


@pytest.fixture
def database(postgres: EmbeddedPostgres) -> Iterator[str]:
    """The DSN of an empty database of this test's own."""
    with temporary_database(postgres, f"test_{next(_numbers)}") as dsn:
        yield dsn


@pytest.fixture(scope="session")
def field_cases() -> Callable[[str], Any]:
    """The handed cases of one part, for example `field_cases("grading")`."""
    return lambda part: json.loads((FIELD / part / "cases.json").read_text())


def pytest_configure() -> None:
    """Set no example a time limit, and have Ctrl-C reach programs where the run was started to ignore it."""
    hypothesis.settings.register_profile("patient", deadline=None)
    hypothesis.settings.load_profile("patient")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that promises every real part (ARGUS_ALL_PARTS=1) when a test was skipped for want of one."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if os.environ.get("ARGUS_ALL_PARTS") and skipped and exitstatus == 0:
        reporter.write_line(
            f"{len(skipped)} tests were skipped, but ARGUS_ALL_PARTS promises every part", red=True
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
