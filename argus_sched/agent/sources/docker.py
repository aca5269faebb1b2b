"""Containers of one application on one Docker daemon, and their logs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from argus_sched.agent.hosts import HostSpec
from argus_sched.agent.logevents import Container, Cursor, Record
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.ports import Reading
from argus_sched.agent.reading.reach import within
from argus_sched.agent.reading.stamps import nanoseconds
from argus_sched.agent.sources.answer import Answer, Deadline
from argus_sched.agent.sources.daemon import Daemon, Inspected
from argus_sched.agent.sources.facts import LogFacts
from argus_sched.agent.sources.host_clock import HostClock
from argus_sched.agent.sources.intake import Intake
from argus_sched.agent.sources.json_file import JsonFileReading
from argus_sched.agent.sources.pieces import JOURNALD_PATIENCE_NS
from argus_sched.agent.sources.tail import TailReading
from argus_sched.clock import Clock, StandingClock
from argus_sched.errors import SourceError


class DockerSource:
    """The containers that a pack's selector matches, as a LogSource.

    Where the daemon is this machine's and its json-file may be read, that is read; else the daemon is asked.
    """

    def __init__(self, spec: LogSpec, *, clock: Clock, timeout: float, host: HostSpec) -> None:
        self.node = spec.node
        self._spec = spec
        self._clock = clock
        self._timeout = timeout
        # A clock that stands cannot be compared with one that goes.
        self._host_clock = None if isinstance(clock, StandingClock) else HostClock(clock)
        self._daemon = Daemon(host, timeout, self._host_clock.heard if self._host_clock else None)
        self._inspected: dict[str, Inspected] = {}

    def containers(self) -> Sequence[Container]:
        """Every container that matches, stopped ones too; SourceError says why there is none."""
        found = self._daemon.matching(self._spec)
        self._inspected = {one.id: one for one in found}
        ahead = self._host_clock.ahead if self._host_clock else timedelta(0)
        return tuple(
            Container(one.key, one.id, one.name, one.started, one.running, one.driver, ahead) for one in found
        )

    def read(
        self,
        container: Container,
        cursor: Cursor | None,
        horizon: datetime,
        take: Callable[[Iterable[Record]], None],
    ) -> Reading:
        """Hand on what is new; see `ports.LogSource.read`."""
        started, asked_ns = time.monotonic(), nanoseconds(self._clock.now() + container.clock_ahead)
        cursor = within(cursor, asked_ns)
        intake = Intake(cursor, nanoseconds(horizon), take)
        reading = self._reading(self._inspected[container.id], intake, cursor, nanoseconds(horizon))
        refusal = _run(reading)
        return Reading(
            container=container,
            coverage=reading.coverage(asked_ns),
            cursor=intake.cursor,
            records=intake.records,
            bytes=reading.bytes,
            seconds=time.monotonic() - started,
            problem=refusal or reading.problem,
            notes=(*reading.notes, *(self._host_clock.note() if self._host_clock else ())),
        )

    def close(self) -> None:
        """Give the connections back."""
        self._daemon.close()

    def _reading(
        self, one: Inspected, intake: Intake, cursor: Cursor | None, horizon_ns: int
    ) -> JsonFileReading | TailReading:
        deadline = Deadline(self._timeout)
        begins_ns = nanoseconds(one.created) if one.created else None
        patience_ns = JOURNALD_PATIENCE_NS if one.driver == "journald" else 0
        facts = LogFacts(begins_ns, one.rotates, ended=not one.running, patience_ns=patience_ns)
        if self._may_read_file(one):
            path = Path(one.log_path)
            return JsonFileReading(path, intake, cursor, horizon_ns, facts=facts, deadline=deadline)

        def open_log(tail: int) -> Answer:
            return self._daemon.open_log(one, tail, deadline)

        return TailReading(open_log, intake, cursor, horizon_ns, facts=facts, seconds=self._timeout)

    def _may_read_file(self, one: Inspected) -> bool:
        path = one.log_path
        return self._daemon.is_local and one.driver == "json-file" and bool(path) and os.access(path, os.R_OK)


def _run(reading: JsonFileReading | TailReading) -> str:
    """Read; what refused to be read, as a sentence."""
    try:
        reading.run()
    except SourceError as error:
        return str(error)
    except OSError as error:
        return f"cannot read the log: {error}"
    return ""
