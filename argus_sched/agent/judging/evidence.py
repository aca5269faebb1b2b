"""What is known of one application's jobs: facts from its log, gathered over all passes.

Every fact is a set of marks of which the newest few are kept, so folding is set union and a cut. Therefore
any split of a log into batches, passes and containers gives the same evidence, a line that is read twice
counts once, and the size is bounded whatever the log's length. (One exception: of two runs of one due time,
read more than RUNS_KEPT runs apart, the second may not meet the first.) What facts mean is for grading.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from argus_sched.agent.instants import about, rfc3339
from argus_sched.agent.judging.coverage import SPANS_KEPT, Span, extend
from argus_sched.agent.logevents import Container, Coverage, Cursor, Event, EventKind

Key = TypeVar("Key")
Value = TypeVar("Value")

RUNS_KEPT = 16
MARKS_KEPT = 10
DOUBLES_KEPT = 4
STRANGERS_KEPT = 500
CONTAINERS_KEPT = 200
LONGEST_DETAIL = 200
SMALL_STEP = timedelta(hours=1)  # of a clock; what it makes late is late by no more

# Lines below WARNING: one of them proves that the logger's level lets run lines through.
INFORMATIVE = frozenset(
    {
        EventKind.RUNNING,
        EventKind.SUCCEEDED,
        EventKind.TENTATIVE,
        EventKind.ADDED,
        EventKind.REMOVED,
        EventKind.SCHEDULER_STARTED,
        EventKind.SCHEDULER_STOPPED,
        EventKind.SCHEDULER_PAUSED,
        EventKind.SCHEDULER_RESUMED,
        EventKind.DEBUG,
    }
)


class Mark(NamedTuple):
    """One line of a log: when and in which container it was written.

    `fire` is the due time of a run in UTC, empty where the line gives none; `detail` what the line adds.
    """

    stamp_ns: int
    container: str
    fire: str = ""
    detail: str = ""


Marks = tuple[Mark, ...]  # newest first


@dataclass(frozen=True)
class Facts:
    """What the lines that carry one name, or one id, say; `first_ns` is the oldest of them ever read.

    `trigger` is the stamp and the text of the newest trigger seen. `doubles` holds the due times that were
    run more than once, newest first, each with its runs; found while both runs are kept, it outlasts them.
    """

    marks: Mapping[EventKind, Marks] = field(default_factory=dict)
    first_ns: int | None = None
    trigger: tuple[int, str] = (0, "")
    doubles: Mapping[str, Marks] = field(default_factory=dict)

    def of(self, *kinds: EventKind) -> Marks:
        """The marks of these kinds, newest first."""
        if len(kinds) == 1:
            return self.marks.get(kinds[0], ())
        return tuple(sorted((mark for kind in kinds for mark in self.of(kind)), reverse=True))

    @property
    def last_run(self) -> Mark | None:
        """The newest run line."""
        return next(iter(self.of(EventKind.RUNNING)), None)

    @property
    def newest_ns(self) -> int:
        """The stamp of the newest line of any kind; 0 when there is none."""
        return max((marks[0].stamp_ns for marks in self.marks.values() if marks), default=0)


@dataclass(frozen=True)
class Track:
    """How far one container's log was read, over all passes; a recreated container has another `id`.

    `births` are where the logs of recreated containers begin, the newest SPANS_KEPT of them: what their
    predecessors said last is lost.
    """

    id: str
    spans: tuple[Span, ...] = ()
    cursor: Cursor | None = None
    births: tuple[int, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """All that is known of one application.

    `jobs` is keyed by the name or the id that the lines carry, `containers` by the container's stable key,
    `first_sight` by the name in the pack: when the job was first judged with a readable log. `heard_ns` is
    the newest line of the scheduler below WARNING, `ran_ns` the newest run of any job and `ended_ns` the
    newest end of one.
    """

    jobs: Mapping[str, Facts] = field(default_factory=dict)
    scheduler: Facts = Facts()
    containers: Mapping[str, Track] = field(default_factory=dict)
    first_sight: Mapping[str, datetime] = field(default_factory=dict)
    heard_ns: int = 0
    ran_ns: int = 0
    ended_ns: int = 0

    def facts(self, *keys: str) -> Facts:
        """What lines under any of these names or ids say."""
        return _union([self.jobs[key] for key in dict.fromkeys(keys) if key in self.jobs])

    def cursor(self, container: Container) -> Cursor | None:
        """Where the last read of this very container stopped; None for a new or recreated one."""
        track = self.containers.get(container.key)
        return track.cursor if track is not None and track.id == container.id else None


def fold(evidence: Evidence, container: str, events: Iterable[Event]) -> Evidence:
    """`evidence` with the events of one container's log, in any order and however often they came before."""
    lines: dict[str | None, list[Event]] = defaultdict(list)
    newest: dict[EventKind, int] = defaultdict(int)
    for event in events:
        lines[event.job_id if event.name is None else event.name].append(event)
        newest[event.kind] = max(newest[event.kind], event.stamp_ns)
    scheduler = _add(evidence.scheduler, container, lines.pop(None, []))
    known = {
        key: _add(evidence.jobs.get(key, Facts()), container, found)
        for key, found in lines.items()
        if key is not None
    }
    return replace(
        evidence,
        jobs={**evidence.jobs, **known},
        scheduler=scheduler,
        heard_ns=max([evidence.heard_ns, *(newest[kind] for kind in INFORMATIVE & newest.keys())]),
        ran_ns=max(evidence.ran_ns, newest[EventKind.RUNNING]),
        ended_ns=max(evidence.ended_ns, newest[EventKind.SUCCEEDED], newest[EventKind.FAILED]),
    )


def combine(evidence: Evidence, more: Evidence) -> Evidence:
    """The facts of both; what else is known stays as it is in `evidence`."""
    both = {
        key: _union([evidence.jobs[key], facts]) if key in evidence.jobs else facts
        for key, facts in more.jobs.items()
    }
    return replace(
        evidence,
        jobs={**evidence.jobs, **both},
        scheduler=_union([evidence.scheduler, more.scheduler]),
        heard_ns=max(evidence.heard_ns, more.heard_ns),
        ran_ns=max(evidence.ran_ns, more.ran_ns),
        ended_ns=max(evidence.ended_ns, more.ended_ns),
    )


def cover(evidence: Evidence, container: Container, coverage: Coverage, cursor: Cursor | None) -> Evidence:
    """`evidence` after a read of `container` as far as `coverage` says; `cursor` None keeps the old one.

    The log of a recreated container does not join on to its predecessor's, whose last lines are lost.
    """
    before = evidence.containers.get(container.key) or Track(container.id)
    recreated = before.id != container.id
    kept = None if recreated else before.cursor
    coverage = replace(coverage, gap=coverage.gap or recreated)
    births = (*before.births, coverage.from_ns)[-SPANS_KEPT:] if recreated else before.births
    track = Track(container.id, extend(before.spans, coverage), cursor or kept, births)
    return replace(evidence, containers={**evidence.containers, container.key: track})


def known_until(evidence: Evidence, latest_ns: int) -> Evidence:
    """`evidence` without what lies after `latest_ns`: what was read before a clock was set back would outlast
    everything that is written after it, since the newest is kept."""
    if max(evidence.heard_ns, evidence.ran_ns, evidence.ended_ns) <= latest_ns:
        return evidence
    return replace(
        evidence,
        jobs={key: _facts_until(facts, latest_ns) for key, facts in evidence.jobs.items()},
        scheduler=_facts_until(evidence.scheduler, latest_ns),
        heard_ns=min(evidence.heard_ns, latest_ns),
        ran_ns=min(evidence.ran_ns, latest_ns),
        ended_ns=min(evidence.ended_ns, latest_ns),
    )


def first_seen(evidence: Evidence, names: Iterable[str], at: datetime) -> Evidence:
    """`evidence` with `at` as the first sight of those of `names` that had none, and of each whose sight lies
    far ahead: a clock that has been set back wrote it, and until then a job could be dead unnoticed."""
    known = {name: seen for name, seen in evidence.first_sight.items() if seen - at <= SMALL_STEP}
    return replace(evidence, first_sight={**dict.fromkeys([*evidence.first_sight, *names], at), **known})


def prune(evidence: Evidence, watched: Collection[str], present: Collection[str] = ()) -> Evidence:
    """`evidence` in bounded size: all of `watched` (names and ids of the pack), the newest of the strangers.

    `present` are the keys of the containers that exist; others go when there are too many.
    """
    strangers = [(facts.newest_ns, key) for key, facts in evidence.jobs.items() if key not in watched]
    gone = [
        (track.spans[-1].to_ns if track.spans else 0, key)
        for key, track in evidence.containers.items()
        if key not in present
    ]
    return replace(
        evidence,
        jobs=_without(evidence.jobs, strangers, STRANGERS_KEPT),
        containers=_without(evidence.containers, gone, CONTAINERS_KEPT),
        first_sight={name: at for name, at in evidence.first_sight.items() if name in watched},
    )


def _add(facts: Facts, container: str, events: Sequence[Event]) -> Facts:
    if not events:
        return facts
    marks: dict[EventKind, set[Mark]] = defaultdict(set)
    for event in events:
        marks[event.kind].add(_mark(event, container))
    merged = {kind: _newest(kind, {*facts.of(kind), *new}) for kind, new in marks.items()}
    triggers = [(event.stamp_ns, event.trigger) for event in events if event.trigger]
    runs = {*marks[EventKind.RUNNING], *facts.of(EventKind.RUNNING)}
    return Facts(
        marks={**facts.marks, **merged},
        first_ns=_earliest([facts.first_ns, *(event.stamp_ns for event in events)]),
        trigger=max([facts.trigger, *triggers]),
        doubles=_doubles(runs, [facts.doubles]) if EventKind.RUNNING in merged else facts.doubles,
    )


def _facts_until(facts: Facts, latest_ns: int) -> Facts:
    def kept(marks: Mapping[Key, Marks]) -> dict[Key, Marks]:
        found = {
            key: tuple(mark for mark in some if mark.stamp_ns <= latest_ns) for key, some in marks.items()
        }
        return {key: some for key, some in found.items() if some}

    return replace(
        facts,
        marks=kept(facts.marks),
        doubles=kept(facts.doubles),
        trigger=(min(facts.trigger[0], latest_ns), facts.trigger[1]),
    )


def _union(found: Sequence[Facts]) -> Facts:
    if len(found) == 1:
        return found[0]
    kinds = {kind for facts in found for kind in facts.marks}
    return Facts(
        marks={kind: _newest(kind, {mark for facts in found for mark in facts.of(kind)}) for kind in kinds},
        first_ns=_earliest(facts.first_ns for facts in found),
        trigger=max((facts.trigger for facts in found), default=(0, "")),
        doubles=_doubles(
            {mark for facts in found for mark in facts.of(EventKind.RUNNING)},
            [facts.doubles for facts in found],
        ),
    )


def _doubles(runs: Iterable[Mark], known: Iterable[Mapping[str, Marks]]) -> dict[str, Marks]:
    """The due times that more than one of `runs`, or of the runs behind `known` ones, name."""
    by_fire: dict[str, set[Mark]] = defaultdict(set)
    for run in (*runs, *(run for doubles in known for marks in doubles.values() for run in marks)):
        by_fire[run.fire].add(run)
    found = {
        fire: tuple(sorted(marks, reverse=True)) for fire, marks in by_fire.items() if fire and len(marks) > 1
    }
    newest = sorted(found, key=lambda fire: found[fire], reverse=True)[:DOUBLES_KEPT]
    return {fire: found[fire][:MARKS_KEPT] for fire in newest}


def _mark(event: Event, container: str) -> Mark:
    detail = event.detail or ""
    if event.kind is EventKind.MISSED and event.missed_by_seconds is not None:
        detail = about(timedelta(seconds=event.missed_by_seconds))
    if event.kind is EventKind.RUNNING:
        detail = "paused" if event.status == "paused" else ""
    fire = rfc3339(event.scheduled_at_utc) if event.scheduled_at_utc else ""
    return Mark(event.stamp_ns, event.container or container, fire, detail[:LONGEST_DETAIL])


def _newest(kind: EventKind, marks: set[Mark]) -> Marks:
    kept = RUNS_KEPT if kind is EventKind.RUNNING else MARKS_KEPT
    return tuple(sorted(marks, reverse=True)[:kept])


def _earliest(stamps: Iterable[int | None]) -> int | None:
    return min((stamp for stamp in stamps if stamp is not None), default=None)


def _without(known: Mapping[str, Value], removable: list[tuple[int, str]], kept: int) -> Mapping[str, Value]:
    dropped = {key for _, key in sorted(removable, reverse=True)[kept:]}
    return {key: value for key, value in known.items() if key not in dropped} if dropped else known
