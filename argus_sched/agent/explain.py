"""Everything behind one verdict: what was read, which lines count, and the arithmetic."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime

from argus_sched.agent.check import Node, PassReport, Result
from argus_sched.agent.config.durations import format_duration
from argus_sched.agent.instants import about, clock_text, rfc3339
from argus_sched.agent.judging.coverage import holes
from argus_sched.agent.judging.evidence import Evidence
from argus_sched.agent.judging.job_case import JobCase
from argus_sched.agent.judging.lateness import needed_since
from argus_sched.agent.kinds.scheduler_jobs import LogLook
from argus_sched.agent.packs import JobSpec
from argus_sched.agent.reading.stamps import format_stamp, instant, nanoseconds
from argus_sched.agent.render import WIDTH
from argus_sched.agent.telling.visible_text import visible


def explain(report: PassReport, result: Result, look: LogLook | None) -> str:
    """The transcript of one target; `look` is what was read of its log, None for a lock."""
    lines = [f"{result.target}: {result.status.name}, {result.phase.value}", f"  {result.summary}"]
    lines += [f"  {result.reason}"] if result.reason else []
    lines += _heading("source", _sources(report.nodes, result.app))
    lines += [f"  note: {note}" for note in (look.notes if look else ())]
    spec = _spec(result, look)
    if look is not None and spec is not None:
        case = JobCase(spec, look.evidence, look.sight)
        lines += ["", "what was read", *_windows(case)]
        lines += ["", f"lines that name {spec.name!r} or {spec.id!r}, newest first", *_marks(case)]
        lines += ["", "arithmetic", *_arithmetic(case)]
    else:
        lines += ["", "what was seen", *(f"  {key}: {_word(value)}" for key, value in result.details.items())]
    return "\n".join(row for line in lines for row in _fitted(visible(line))) + "\n"


def _fitted(line: str) -> list[str]:
    """`line` as rows of the table's width, the further ones indented more; a path stays in one piece."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    rows = textwrap.wrap(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return rows or [""]


def _sources(nodes: Sequence[Node], app: str) -> list[Node]:
    """The sources of one application, and the hosts they are on."""
    own = [node for node in nodes if node.app == app]
    hosts = {node.parent for node in own}
    return [*(node for node in nodes if not node.app and node.source in hosts), *own]


def _heading(title: str, nodes: list[Node]) -> list[str]:
    health = [f"  {node.source}: {'up' if node.up else f'down, {node.problem}'}" for node in nodes]
    return ["", title, *health]


def _spec(result: Result, look: LogLook | None) -> JobSpec | None:
    jobs = [job for check in look.checks for job in check.jobs] if look else []
    return next((job for job in jobs if f"{result.app}/{job.id}" == result.target), None)


def _windows(case: JobCase) -> Iterator[str]:
    yield f"  judged at {clock_text(case.now)}, the end of the slowest complete read"
    for container in case.sight.containers:
        state = "running since" if container.running else "not running, last started"
        yield f"  {container.name}: {state} {_clock(container.started_at)}"
        yield from _spans(case.evidence, container.key, case.now)
    yield f"  last line of the scheduler below WARNING: {_stamp(case.evidence.heard_ns)}"


def _spans(evidence: Evidence, key: str, until: datetime) -> Iterator[str]:
    track = evidence.containers.get(key)
    if track is None or not track.spans:
        yield "    nothing was read"
        return
    for span in track.spans:
        yield f"    read from {_stamp(span.from_ns)} to {_stamp(span.to_ns)}"
    for hole in holes(track.spans, track.spans[0].from_ns, nanoseconds(until)):
        yield f"    not read: {_stamp(hole.from_ns)} to {_stamp(hole.to_ns)}"


def _marks(case: JobCase) -> Iterator[str]:
    marks = [(mark, kind) for kind, found in case.facts.marks.items() for mark in found]
    # The one container has been named above.
    several = len({one.key for one in case.sight.containers} | {mark.container for mark, _ in marks}) > 1
    for mark, kind in sorted(marks, reverse=True):
        fire = f", due {mark.fire}" if mark.fire else ""
        detail = f", {mark.detail}" if mark.detail else ""
        place = f" {mark.container}:" if several else ""
        yield f"  {format_stamp(mark.stamp_ns)}{place} {kind.value}{fire}{detail}"
    if not marks:
        yield "  none"


def _arithmetic(case: JobCase) -> Iterator[str]:
    spec = case.spec
    yield f"  trigger   {spec.trigger}"
    yield f"  interval  {format_duration(spec.interval)}"
    yield f"  grace     {format_duration(spec.grace)}"
    yield f"  limit     {format_duration(spec.limit)} (interval + grace)"
    yield f"  first judged {clock_text(case.first_sight)}; newest start known: {_moment(case.start)}"
    if case.last_run is None or case.age is None:
        yield f"  no run known; one since {clock_text(needed_since(spec, case.now))} would do"
        return
    yield f"  last run  {clock_text(case.last_run)}, age {about(case.age)}"
    if case.due is None:
        yield "  no further due time"
        return
    yield f"  due       {clock_text(case.due.at)}"
    left = case.due.deadline - case.now
    passed = "passed" if left.total_seconds() < 0 else "ahead"
    yield f"  deadline  {clock_text(case.due.deadline)}, {passed} by {about(abs(left))}"


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _stamp(stamp_ns: int) -> str:
    return clock_text(instant(stamp_ns)) if stamp_ns else "none"


def _clock(moment: datetime | None) -> str:
    return clock_text(moment) if moment else "at an unknown time"


def _moment(moment: datetime | None) -> str:
    return rfc3339(moment) if moment else "none"
