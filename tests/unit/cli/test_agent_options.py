"""What the agent's commands share."""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from argus_sched.cli import Parser, agent_options

HANGING = """
import time
from datetime import timedelta
from argus_sched.agent import app
from argus_sched.cli import agent_options
app.hard_limit = lambda settings: timedelta(seconds=0.2)
with agent_options.hard_limit(None):
    time.sleep(100)
"""


def test_a_command_that_hangs_is_ended_with_3_and_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "argus-sched: no verdict within 0.2 s, although the deadline is shorter"
    ]


def parse(*arguments: str) -> argparse.Namespace:
    parser = Parser(prog="argus-sched check")
    agent_options.add(parser)
    return parser.parse_args(arguments)


def test_packs_may_be_named_together_or_one_by_one() -> None:
    assert parse("--pack", "a", "b", "--pack", "c").pack == ["a", "b", "c"]


def test_times_and_lengths_are_read() -> None:
    args = parse("--now", "2026-03-14T10:00:00+01:00", "--timeout", "1m30s")
    assert args.now == datetime(2026, 3, 14, 9, tzinfo=UTC)
    assert args.timeout == timedelta(seconds=90)


def test_colour_is_for_terminals_whose_owner_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert agent_options.wants_colour(Terminal())
    assert not agent_options.wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not agent_options.wants_colour(Terminal())
