"""A pass's report as the incidents see it: one observation for each subject, and what hides behind what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from argus_sched.agent.check import WAIT_KEY, Node, PassReport, Result
from argus_sched.agent.status import Phase, Status

# A check's own wish: the message waits until the target was wrong for this long (the lock's `takeover`).
HOLD_KEY = "hold_message_seconds"
MOST_NAMES = 5

# Each failed subject, and the failed one it hides behind, None for one that speaks for itself.
Failures = dict[str, str | None]


@dataclass(frozen=True)
class Observation:
    """What one pass saw of one subject.

    `since` is the instant from which it has been so, as far as the evidence tells. `hold` is how long it must
    be wrong before it counts, `waits` whether the check says that it does not count yet. `blind_by` names the
    failed subject that hides this one.
    """

    subject: str
    status: Status
    phase: Phase
    summary: str
    reason: str = ""
    name: str = ""
    since: datetime | None = None
    hold: timedelta = timedelta(0)
    waits: bool = False
    blind_by: str | None = None


def observe(report: PassReport) -> tuple[Observation, ...]:
    """The observations of a pass: nodes first, then targets; each subject once."""
    failures = _failures(report.nodes)
    hidden = Counter(_root(failures, _hiding_node(result, failures)) for result in report.results)
    nodes = [_of_node(node, failures, hidden[_node_subject(node)]) for node in report.nodes]
    targets = [_of_result(result, failures, report.at) for result in report.results]
    return _each_once([*nodes, *targets])


def _failures(nodes: Iterable[Node]) -> Failures:
    """Each failed subject, and the one it hides behind.

    That is its failed parent; else the first of its kind with the very same problem, since a daemon that is
    gone fails for every container that is asked for. A host is shared and speaks for itself.
    """
    failed = {_node_subject(node): node for node in nodes if not node.up}
    first: dict[tuple[str, str], str] = {}
    behind: Failures = {}
    for subject, node in sorted(failed.items()):
        behind[subject] = _failed_name(node.app, node.parent, failed)
        if behind[subject] is None and node.app:
            head = first.setdefault((node.source.partition(":")[0], node.problem), subject)
            behind[subject] = None if head == subject else head
    return behind


def _root(failures: Failures, subject: str | None) -> str | None:
    """The failed subject that speaks for `subject`."""
    while subject is not None and (behind := failures[subject]) is not None:
        subject = behind
    return subject


def _each_once(observations: Iterable[Observation]) -> tuple[Observation, ...]:
    """One for each subject, the worst: several packs may name one shared host."""
    found: dict[str, Observation] = {}
    for seen in observations:
        other = found.get(seen.subject)
        if other is None or seen.status.severity > other.status.severity:
            found[seen.subject] = seen
    return tuple(found.values())


def _node_subject(node: Node) -> str:
    """`app/source`, or the source alone for a node that is no single application's."""
    return _subject(node.app, node.source)


def _subject(app: str, source: str) -> str:
    return f"{app}/{source}" if app else source


def _of_node(node: Node, failures: Failures, hidden: int) -> Observation:
    subject = _node_subject(node)
    if node.up:
        return Observation(subject, Status.OK, Phase.FRESH, "can be read again")
    said = [node.problem or "cannot be read"]
    followers = [name for name, behind in failures.items() if behind == subject]
    if followers:
        more = f" and {len(followers) - MOST_NAMES} more" if len(followers) > MOST_NAMES else ""
        said.append(f"with it {', '.join(followers[:MOST_NAMES])}{more}")
    if hidden:
        said.append(f"hides {hidden} check{'s' * (hidden != 1)}")
    return Observation(subject, Status.UNKNOWN, Phase.BLIND, "; ".join(said), blind_by=failures[subject])


def _hiding_node(result: Result, failures: Failures) -> str | None:
    return _failed_name(result.app, result.blind_by, failures)


def _failed_name(app: str, source: str | None, failed: Container[str]) -> str | None:
    """The failed subject that `source` means to `app`: its own node, else a shared one."""
    if source is None:
        return None
    return next((name for name in (_subject(app, source), source) if name in failed), None)


def _of_result(result: Result, failures: Failures, at: datetime) -> Observation:
    return Observation(
        result.target,
        result.status,
        result.phase,
        result.summary,
        result.reason,
        result.name,
        _since(result, at),
        _hold(result),
        bool(result.details.get(WAIT_KEY)),
        _hiding_node(result, failures),
    )


def _since(result: Result, at: datetime) -> datetime | None:
    """The deadline that passed, for a job that is overdue; its last run, for one that is well again."""
    since = result.last_run if result.status is Status.OK else None
    if result.phase in {Phase.STALE, Phase.NEVER_RAN}:
        since = result.deadline
    return since if since is not None and since <= at else None


def _hold(result: Result) -> timedelta:
    """What the check asks for; and for a job of which no run is known yet, its limit: evidence that merely
    began late (a new job, a new agent, a lost store) pages nobody before the job could have been judged."""
    asked = result.details.get(HOLD_KEY)
    if isinstance(asked, int | float):
        return timedelta(seconds=asked)
    if result.phase is Phase.BLIND and result.last_run is None and result.limit_seconds is not None:
        return timedelta(seconds=result.limit_seconds)
    return timedelta(0)
