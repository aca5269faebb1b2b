"""Runs passes of the teller in processes that die by SIGKILL at a numbered boundary.

Every SQL statement is a boundary, and so is the moment before and after each send. One line of JSON on
standard input is one pass in a forked child; one line on standard output says how many boundaries it passed,
or that it was killed. Started as a program, so that nothing but this process's one thread is ever forked.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import telegram.request  # noqa: F401 loaded once, before the forks

from argus_sched.agent.check import PassReport, Result
from argus_sched.agent.config.channels import TelegramSettings
from argus_sched.agent.config.notify_policy import NotifySettings
from argus_sched.agent.notifiers.telegram import TelegramNotifier
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.store.sqlite import Store
from argus_sched.agent.telling.messages import Message
from argus_sched.agent.telling.notify_ports import Accepted, Route
from argus_sched.agent.telling.teller import IncidentTeller


class Boundaries:
    """Counts, and dies at number `fatal`."""

    def __init__(self, fatal: int) -> None:
        self.passed = 0
        self._fatal = fatal

    def cross(self, *_: object) -> None:
        """One boundary."""
        self.passed += 1
        if self.passed == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


class FragileStore(Store):
    """The real store, with each statement a boundary."""

    def __init__(self, path: Path, boundaries: Boundaries) -> None:
        super().__init__(path)
        self._boundaries = boundaries

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The store's own, watched."""
        with super().transaction() as connection:
            connection.set_trace_callback(self._boundaries.cross)
            yield connection
        self._boundaries.cross()


class FragileNotifier(TelegramNotifier):
    """The real channel, with a boundary before and after each message."""

    boundaries: Boundaries

    def send(self, message: Message, route: Route) -> Accepted:
        """Send between two boundaries."""
        self.boundaries.cross()
        accepted = super().send(message, route)
        self.boundaries.cross()
        return accepted


def run_pass(order: dict[str, Any]) -> int:
    """One pass as ordered; returns how many boundaries it crossed."""
    boundaries = Boundaries(order["fatal"])
    store = FragileStore(Path(order["state"]), boundaries)
    settings = TelegramSettings("-100777", token_env="BOT_TOKEN", api_url=order["api_url"])
    notifier = FragileNotifier(settings, {"BOT_TOKEN": order["token"]})
    notifier.boundaries = boundaries
    teller = IncidentTeller(store, [notifier], NotifySettings(), timedelta(minutes=1))
    at = datetime.fromisoformat(order["at"])
    with store.transaction() as connection:
        teller.decide(connection, report(at, order["statuses"]), at)
    problems = teller.deliver(at)
    if problems:
        raise SystemExit("; ".join(problems))
    return boundaries.passed


def report(at: datetime, statuses: dict[str, str]) -> PassReport:
    """A pass that found these statuses."""
    phases = {"OK": Phase.FRESH, "CRIT": Phase.STALE}
    results = tuple(
        Result("labs", "scheduler_jobs", target, Status[status], phases[status], f"it is {status}")
        for target, status in statuses.items()
    )
    return PassReport(at, results, (), complete=True, seconds=0.1)


def main() -> None:
    """Fork one child for each order."""
    for line in sys.stdin:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, str(run_pass(json.loads(line))).encode())
            os._exit(0)
        os.close(writer)
        answer = os.read(reader, 100).decode()
        os.close(reader)
        _, status = os.waitpid(child, 0)
        print(json.dumps({"passed": int(answer or 0), "status": status}), flush=True)


if __name__ == "__main__":
    main()
