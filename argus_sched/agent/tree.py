"""The target tree, folded for people: what a failed node hides is one line, though each keeps its result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
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

    A failed source, a pass that left something out and a state that was not saved count as UNKNOWN.
    """
    unseen = any(not node.up for node in report.nodes) or not report.complete or not report.state_saved
    return worst([*(result.status for result in report.results), Status.UNKNOWN if unseen else Status.OK])


def rows(report: PassReport) -> tuple[Row, ...]:
    """The lines to show, worst first, then by label."""
    causes = list(_causes(report.nodes))
    hidden_by = {(node.app, node.source): cause for cause in causes for node in cause}
    hidden: dict[int, list[Result]] = defaultdict(list)
    shown: list[Row] = []
    for result in report.results:
        cause = hidden_by.get((result.app, result.blind_by or ""))
        if cause is None:
            shown.append(_of_result(result))
        else:
            hidden[id(cause)].append(result)
    shown += [_of_cause(cause, hidden[id(cause)]) for cause in causes]
    return tuple(sorted(shown, key=lambda row: (-row.status.severity, row.label)))


def _causes(nodes: Iterable[Node]) -> Iterator[Sequence[Node]]:
    """Failed nodes, together where one failure is behind them: one problem, or a failed parent."""
    failed = [node for node in nodes if not node.up]
    known = {(node.app, node.source): node for node in failed}
    groups: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in failed:
        root = node
        while root.parent and (parent := known.get((root.app, root.parent))):
            root = parent
        groups[root.source.partition(":")[0], root.problem].append(node)
    yield from groups.values()


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


def _of_cause(nodes: Sequence[Node], hidden: Sequence[Result]) -> Row:
    first = nodes[0]
    label = first.source if len(nodes) == 1 else f"{first.source} and {len(nodes) - 1} more"
    checks = f"hides {len(hidden)} check{'s' * (len(hidden) != 1)}"
    return Row(
        Status.UNKNOWN, Phase.BLIND, label, first.problem or "cannot be read", checks, hidden=len(hidden)
    )


def only(report: PassReport, pattern: str) -> PassReport:
    """`report` with the results whose target, id or name match the shell pattern, and what hides them.

    Raises SettingsError when none does: a check of nothing must not say OK.
    """
    results = tuple(result for result in report.results if _matches(result, pattern))
    if not results:
        raise SettingsError(f"no target matches {pattern!r}: the packs have {len(report.results)} targets")
    hiding = {(result.app, result.blind_by) for result in results}
    nodes = tuple(node for node in report.nodes if (node.app, node.source) in hiding)
    return replace(report, results=results, nodes=nodes)


def _matches(result: Result, pattern: str) -> bool:
    names = (result.target, result.target.partition("/")[2], result.name)
    return any(fnmatchcase(name, pattern) for name in names)
