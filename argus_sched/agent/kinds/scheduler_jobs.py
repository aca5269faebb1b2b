"""The check kind `scheduler_jobs`: reads an application's log once for all its jobs, then judges each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from argus_sched.agent.check import Node, Result
from argus_sched.agent.fan_out import fan_out
from argus_sched.agent.hosts import host_node
from argus_sched.agent.judging.blindness import LINES_NODE
from argus_sched.agent.judging.evidence import Evidence, combine, cover, first_seen, fold, known_until, prune
from argus_sched.agent.judging.grading import grade_job, grade_strangers
from argus_sched.agent.judging.job_case import Sight
from argus_sched.agent.logevents import Container, Coverage, Event, Record
from argus_sched.agent.packs import JobsCheck
from argus_sched.agent.ports import LogSource, Reading
from argus_sched.agent.reading.loglines import LineParser
from argus_sched.agent.reading.reach import within
from argus_sched.agent.reading.stamps import instant, nanoseconds
from argus_sched.clock import Clock, ShiftedClock
from argus_sched.errors import HostError, SourceError

CLOCK_TOLERANCE = timedelta(seconds=5)
MANY_JOBS = 5000
READERS = 8


@dataclass(frozen=True)
class LogLook:
    """What one pass made of an application's log."""

    app: str
    checks: tuple[JobsCheck, ...]
    evidence: Evidence
    sight: Sight
    nodes: tuple[Node, ...]
    notes: tuple[str, ...] = ()  # of its readings; what they say hides nothing


def look_at_log(
    source: LogSource,
    app: str,
    checks: tuple[JobsCheck, ...],
    evidence: Evidence,
    clock: Clock,
    horizon: datetime,
    host: str | None = None,
) -> LogLook:
    """Read on in every container of `source` and fold what was said into `evidence`.

    `horizon` is how far back a first read goes, `host` the node of the source's host, if it has one. Never
    raises for a source that is away: the nodes say it.
    """
    try:
        containers = tuple(source.containers())
    except SourceError as error:
        node = Node(app, source.node, host, False, str(error))
        away = str(error) if isinstance(error, HostError) else ""
        return blind_look(app, checks, evidence, node, clock.now(), host_node(host, away))
    watched = _watched(checks)
    # Stamps are compared in the time of the host that wrote them.
    clock = ShiftedClock(clock, containers[0].clock_ahead if containers else timedelta(0))
    reads = _read_all(source, containers, evidence, watched, clock, horizon)
    evidence = known_until(evidence, nanoseconds(clock.now() + CLOCK_TOLERANCE))
    for read in reads:
        evidence = read.add_to(evidence)
    nodes = _nodes(source.node, app, host, [read.reading for read in reads])
    sight = _sight(reads, nodes, watched, clock.now())
    if not sight.blind:
        evidence = first_seen(evidence, [job.name for check in checks for job in check.jobs], sight.watermark)
    evidence = prune(evidence, watched, {container.key for container in containers})
    notes = dict.fromkeys(f"{read.container.name}: {note}" for read in reads for note in read.reading.notes)
    return LogLook(app, checks, evidence, sight, (*nodes, *host_node(host)), tuple(notes))


def blind_look(
    app: str,
    checks: tuple[JobsCheck, ...],
    evidence: Evidence,
    node: Node,
    now: datetime,
    host: tuple[Node, ...] = (),
) -> LogLook:
    """What a pass makes of a log of which `node`'s failure let nothing be read; `host` tells of its host."""
    sight = Sight(now, unread=node, blind=True, watched=_watched(checks))
    return LogLook(app, checks, evidence, sight, (node, *host))


def judge_log(look: LogLook) -> tuple[tuple[Result, ...], tuple[Node, ...]]:
    """One result for each job, and the nodes of the target tree.

    One result more for a check whose scheduler deleted jobs that no pack names; one node more that stands for
    the scheduler's lines: it is down when the log can be read and none of its lines would tell of runs.
    """
    judged = (result for check in look.checks for result in _judge(check, look))
    results = tuple(_in_own_time(result, look.sight.clock_ahead) for result in judged)
    if look.sight.blind:
        return results, look.nodes
    silent = next((result.reason for result in results if result.blind_by == LINES_NODE), "")
    return results, (*look.nodes, Node(look.app, LINES_NODE, look.nodes[0].source, not silent, silent))


def _judge(check: JobsCheck, look: LogLook) -> Iterator[Result]:
    for job in check.jobs:
        yield grade_job(job, look.app, look.evidence, look.sight)
    strangers = grade_strangers(check, look.app, look.evidence, look.sight)
    if strangers:
        yield strangers


def _in_own_time(result: Result, ahead: timedelta) -> Result:
    """`result` with its instants by the agent's clock, which metrics and messages go by."""
    if not ahead:
        return result
    last_run, deadline = (moment and moment - ahead for moment in (result.last_run, result.deadline))
    return replace(result, last_run=last_run, deadline=deadline)


def _watched(checks: Iterable[JobsCheck]) -> frozenset[str]:
    return frozenset(key for check in checks for job in check.jobs for key in (job.id, job.name))


@dataclass(frozen=True)
class _Read:
    """One container's read, which ended at `latest_ns`: what was said, how far it reached, and the newest
    stamp of a line that lies in the future."""

    container: Container
    said: Evidence
    reading: Reading
    future_ns: int
    latest_ns: int

    @property
    def coverage(self) -> Coverage | None:
        """What was covered: no further than the clock, whatever stamps a log may carry."""
        found = self.reading.coverage
        return found and replace(found, to_ns=min(found.to_ns, self.latest_ns))

    def add_to(self, evidence: Evidence) -> Evidence:
        """`evidence` after the read; as it was, when nothing usable came."""
        if self.coverage is None:
            return evidence
        # Lines from the future are set aside, not forgotten: with the old cursor the next pass meets them.
        # Of lines that say nothing to us there, one must not make all that is written after it pass for old.
        # What was written while a slow read went on is no future: it would be read again, and as slowly.
        cursor = None if self.future_ns else within(self.reading.cursor, self.latest_ns)
        return cover(combine(evidence, self.said), self.container, self.coverage, cursor)


class _Listener:
    """Understands the records of one container batch after batch, so memory does not grow with the log."""

    def __init__(self, container: Container, watched: frozenset[str], clock: Clock) -> None:
        self.said = Evidence()
        self.future_ns = 0
        self._container = container
        self._watched = watched
        self._clock = clock
        self._parser = LineParser()

    def take(self, records: Iterable[Record]) -> None:
        """Understand one batch."""
        events = (event for record in records for event in self._parser.feed(record))
        latest_ns = nanoseconds(self._clock.now() + CLOCK_TOLERANCE)
        self.said = fold(self.said, self._container.key, self._until(latest_ns, events))
        if len(self.said.jobs) > len(self._watched) + MANY_JOBS:
            self.said = prune(self.said, self._watched)

    def _until(self, latest_ns: int, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if event.stamp_ns <= latest_ns:
                yield event
            else:
                self.future_ns = max(self.future_ns, event.stamp_ns)


def _read_all(
    source: LogSource,
    containers: Sequence[Container],
    evidence: Evidence,
    watched: frozenset[str],
    clock: Clock,
    horizon: datetime,
) -> list[_Read]:
    """The reads of all containers, side by side; each is bounded by the source's own time limit."""

    def read(container: Container) -> _Read:
        listener = _Listener(container, watched, clock)
        reading = source.read(container, evidence.cursor(container), horizon, listener.take)
        latest_ns = nanoseconds(clock.now())
        return _Read(container, listener.said, reading, listener.future_ns, latest_ns)

    work = {number: partial(read, container) for number, container in enumerate(containers)}
    found = fan_out(work, math.inf, READERS)
    reads = [found[number] for number in sorted(found)]
    for failed in (one for one in reads if isinstance(one, Exception)):
        raise failed
    return [one for one in reads if isinstance(one, _Read)]


def _sight(reads: Sequence[_Read], nodes: Sequence[Node], watched: frozenset[str], now: datetime) -> Sight:
    readings = [read.reading for read in reads]
    # The slowest complete read; what a broken one did not reach is a hole in the evidence, and told as one.
    reached = [read.coverage for read in reads if read.coverage and read.coverage.reached_end]
    return Sight(
        watermark=min([now, *(instant(coverage.to_ns) for coverage in reached)]),
        containers=tuple(reading.container for reading in readings),
        unread=next((node for node in nodes if not node.up), None),
        blind=all(reading.coverage is None and reading.problem for reading in readings),
        future_ns=max((read.future_ns for read in reads), default=0) or None,
        watched=watched,
        clock_ahead=reads[0].container.clock_ahead if reads else timedelta(0),
    )


def _nodes(source: str, app: str, host: str | None, readings: Sequence[Reading]) -> tuple[Node, ...]:
    """The source, and each of its containers where there are several."""
    problems = [reading.problem for reading in readings]
    if len(readings) == 1:
        return (Node(app, source, host, not problems[0], problems[0]),)
    lost = next(iter(problems), "no container was found") if all(problems) else ""
    whole = Node(app, source, host, not lost, lost)
    names = [reading.container.name for reading in readings]
    return whole, *(
        Node(app, f"{source}/{name}", source, not problem, problem)
        for name, problem in zip(names, problems, strict=True)
    )
