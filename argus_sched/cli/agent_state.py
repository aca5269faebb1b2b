"""The state file of the agent, for the commands that steer what it tells."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

    from argus_sched.agent.store.sqlite import Store


def add_config(parser: argparse.ArgumentParser) -> None:
    """The option that says whose state."""
    parser.add_argument(
        "--config", metavar="FILE", help="the agent's settings (else $ARGUS_CONFIG, else /etc)"
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """The option of what only shows: text for people, or JSON for programs."""
    parser.add_argument("--output", choices=("text", "json"), default="text")


@contextlib.contextmanager
def transaction(config: str | None) -> Iterator[sqlite3.Connection]:
    """A connection to the state of these settings, inside a write transaction."""
    with contextlib.closing(_store(config)) as store, store.transaction() as connection:
        yield connection


@contextlib.contextmanager
def snapshot(config: str | None) -> Iterator[sqlite3.Connection]:
    """A connection to what that state holds now, for commands that only show; needs no right to write."""
    with _store(config).snapshot() as connection:
        yield connection


def _store(config: str | None) -> Store:
    from argus_sched.agent.config.secret_sources import Environment
    from argus_sched.agent.config.settings import load_settings
    from argus_sched.agent.store.sqlite import Store

    return Store(load_settings(config, Environment()).state)


def now() -> datetime:
    """The present instant."""
    return datetime.now(UTC)
