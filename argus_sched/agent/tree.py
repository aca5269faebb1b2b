"""The target tree, folded for people: what a failed node hides is one line, though each keeps its result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from argus_sched.agent.check import Node, PassReport, Result
from argus_sched.agent.status import Phase, Status, worst
from argus_sched.errors import SettingsError


@dataclass(frozen=True)
class Row:
    """One line of a table: a target that was judged, or a failed node with all that it hides."""

    status: Status
    phase: Phase
    label: str
    text: str
    reason: str = ""
    age_seconds: float | None = None
    limit_seconds: float | None = None
    hidden: int = 0


def verdict(report: PassReport) -> Status:
    """The status of a whole pass: the worst target's.

    A failed source, a pass that left something out, a state that was not saved and a channel through which no
    alert gets count as UNKNOWN.
    """
    unseen = any(not node.up for node in report.nodes) or not report.complete or not report.state_saved
    unseen = unseen or bool(report.own and report.own.refused)
    return worst([*(result.status for result in report.results), Status.UNKNOWN if unseen else Status.OK])


def rows(report: PassReport) -> tuple[Row, ...]:
    """The lines to show, worst first, then by label."""
    causes = list(_causes(report.nodes))
    hidden_by = {(node.app, node.source): cause for cause in causes for node in cause.nodes}
    hidden: dict[int, list[Result]] = defaultdict(list)
    shown: list[Row] = []
    for result in report.results:
        cause = hidden_by.get((result.app, result.blind_by or ""))
        if cause is None:
            shown.append(_of_result(result))
        else:
            hidden[id(cause)].append(result)
    shown += [_of_cause(cause, len(hidden[id(cause)])) for cause in causes]
    return tuple(sorted(shown, key=lambda row: (-row.status.severity, row.label)))


@dataclass(frozen=True)
class _Cause:
    """One failure: the failed nodes it is behind, and those of them that nothing else explains."""

    nodes: Sequence[Node]
    roots: Sequence[Node]


def _causes(nodes: Iterable[Node]) -> Iterator[_Cause]:
    """Failed nodes, together where one failure is behind them: one problem, or a failed parent."""
    failed = [node for node in nodes if not node.up]
    known = {(node.app, node.source): node for node in failed}
    groups: dict[tuple[str, str], list[Node]] = defaultdict(list)
    roots: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in failed:
        root = _root(node, known)
        key = (root.source.partition(":")[0] if root.app else root.source, root.problem)
        groups[key].append(node)
        roots[key] += [root] if root is node else []
    for key, members in groups.items():
        yield _Cause(members, roots[key])


def _root(node: Node, failed: Mapping[tuple[str, str], Node]) -> Node:
    """The failed node that explains `node`: its outermost failed ancestor, else itself."""
    while node.parent:
        parent = failed.get((node.app, node.parent)) or failed.get(("", node.parent))
        if parent is None:
            break
        node = parent
    return node


def _of_result(result: Result) -> Row:
    return Row(
        result.status,
        result.phase,
        result.target,
        result.summary,
        result.reason,
        result.age_seconds,
        result.limit_seconds,
    )


def _of_cause(cause: _Cause, hidden: int) -> Row:
    first, more = cause.roots[0], len(cause.roots) - 1
    label = f"{first.source} and {more} more" if more else first.source
    checks = f"hides {hidden} check{'s' * (hidden != 1)}"
    return Row(Status.UNKNOWN, Phase.BLIND, label, first.problem or "cannot be read", checks, hidden=hidden)


def only(report: PassReport, pattern: str) -> PassReport:
    """`report` with the results whose target, id or name match the shell pattern, and what hides them.

    Raises SettingsError when none does: a check of nothing must not say OK.
    """
    results = tuple(result for result in report.results if _matches(result, pattern))
    if not results:
        raise SettingsError(f"no target matches {pattern!r}: the packs have {len(report.results)} targets")
    hiding = {(result.app, result.blind_by) for result in results}
    near = [node for node in report.nodes if (node.app, node.source) in hiding]
    hosts = {node.parent for node in near}
    shared = [node for node in report.nodes if not node.app and node.source in hosts]
    return replace(report, results=results, nodes=(*near, *shared))


def _matches(result: Result, pattern: str) -> bool:
    names = (result.target, result.target.partition("/")[2], result.name)
    return any(fnmatchcase(name, pattern) for name in names)
