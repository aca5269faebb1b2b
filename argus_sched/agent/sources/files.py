"""A log that is a file: the text of `docker logs -t`, or a json-file, by its path."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from argus_sched.agent.logevents import Container, Cursor, Record
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.ports import Reading
from argus_sched.agent.reading.reach import within
from argus_sched.agent.reading.stamps import nanoseconds
from argus_sched.agent.sources.answer import Deadline
from argus_sched.agent.sources.facts import LogFacts
from argus_sched.agent.sources.intake import Intake
from argus_sched.agent.sources.json_file import JsonFileReading, rotated
from argus_sched.agent.sources.text_file import TextFileReading
from argus_sched.clock import Clock
from argus_sched.errors import SourceError

# A writer that has been still for longer will not finish its last line.
STILL_AFTER = timedelta(seconds=2)


class FileSource:
    """One file as a LogSource; it is its own only container."""

    def __init__(self, spec: LogSpec, *, clock: Clock, timeout: float) -> None:
        if spec.path is None:
            raise ValueError("a file source needs a path")
        self.node = spec.node
        self._path = Path(spec.path)
        self._format = spec.format
        self._clock = clock
        self._timeout = timeout

    def containers(self) -> Sequence[Container]:
        """The file; SourceError when it is not there or may not be read."""
        try:
            with self._path.open("rb"):
                pass
        except OSError as error:
            raise SourceError(f"cannot read the log {self._path}: {error.strerror}") from error
        name = str(self._path)
        return (Container(key=name, id=name, name=name, started_at=None, running=True, driver=self._format),)

    def read(
        self,
        container: Container,
        cursor: Cursor | None,
        horizon: datetime,
        take: Callable[[Iterable[Record]], None],
    ) -> Reading:
        """Hand on what is new; see `ports.LogSource.read`."""
        started, now = time.monotonic(), self._clock.now()
        cursor = within(cursor, nanoseconds(now))
        intake = Intake(cursor, nanoseconds(horizon), take)
        reading = self._reading(intake, cursor, nanoseconds(horizon), now)
        try:
            reading.run()
        except OSError as error:
            reading.problem = f"cannot read the log {self._path}: {error.strerror or error}"
        return Reading(
            container=container,
            coverage=reading.coverage(nanoseconds(now)),
            cursor=intake.cursor,
            records=intake.records,
            bytes=reading.bytes,
            seconds=time.monotonic() - started,
            problem=reading.problem,
            notes=tuple(reading.notes),
        )

    def close(self) -> None:
        """Nothing is held open between reads."""

    def _reading(
        self, intake: Intake, cursor: Cursor | None, horizon_ns: int, now: datetime
    ) -> JsonFileReading | TextFileReading:
        deadline = Deadline(self._timeout)
        if self._format == "json-file":
            # A file without older siblings begins where its log did.
            facts = LogFacts(begins_ns=None, rotates=bool(rotated(self._path)), ended=False)
            return JsonFileReading(self._path, intake, cursor, horizon_ns, facts=facts, deadline=deadline)
        return TextFileReading(
            self._path, intake, cursor, horizon_ns, still=self._is_still(now), deadline=deadline
        )

    def _is_still(self, now: datetime) -> bool:
        try:
            return now.timestamp() - self._path.stat().st_mtime > STILL_AFTER.total_seconds()
        except OSError:
            return False
