"""What a failed node hides is one line; every target keeps its result."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from argus_sched.agent.check import Node, PassReport, Result
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.tree import only, rows, verdict
from argus_sched.errors import SettingsError

AT = datetime(2026, 3, 14, 10, tzinfo=UTC)
SOCKET_GONE = "cannot reach the Docker daemon"


def result(target: str, status: Status = Status.OK, blind_by: str | None = None, name: str = "") -> Result:
    phase = Phase.BLIND if blind_by else Phase.FRESH if status is Status.OK else Phase.STALE
    return Result(
        target.partition("/")[0],
        "scheduler_jobs",
        target,
        status,
        phase,
        "said",
        name=name,
        blind_by=blind_by,
    )


def report(results: list[Result], nodes: list[Node], complete: bool = True, saved: bool = True) -> PassReport:
    return PassReport(AT, tuple(results), tuple(nodes), complete, 0.1, saved)


def blind(app: str, count: int, node: str) -> list[Result]:
    return [result(f"{app}/job{n}", Status.UNKNOWN, node) for n in range(count)]


def test_a_failed_source_with_forty_checks_is_one_line() -> None:
    node = Node("labs", "docker:web", None, False, SOCKET_GONE)
    lines = rows(report([*blind("labs", 40, "docker:web"), result("labs/scheduler_lock")], [node]))
    assert [(line.label, line.status, line.hidden) for line in lines] == [
        ("docker:web", Status.UNKNOWN, 40),
        ("labs/scheduler_lock", Status.OK, 0),
    ]
    assert (lines[0].text, lines[0].reason) == (SOCKET_GONE, "hides 40 checks")


def test_one_daemon_that_hides_three_applications_is_one_line() -> None:
    apps = ("a", "b", "c")
    nodes = [Node(app, f"docker:{app}", None, False, SOCKET_GONE) for app in apps]
    nodes.append(Node("c", "database:c", None, False, "no route to the host"))
    results = [one for app in apps for one in blind(app, 2, f"docker:{app}")]
    lines = rows(report([*results, result("c/scheduler_lock", Status.UNKNOWN, "database:c")], nodes))
    assert [(line.label, line.hidden) for line in lines] == [("database:c", 1), ("docker:a and 2 more", 6)]


def test_children_of_a_failed_node_are_told_with_it() -> None:
    nodes = [
        Node("a", "docker:web", None, False, "none could be read"),
        Node("a", "docker:web/web-1", "docker:web", False, "driver none"),
        Node("a", "docker:web/web-2", "docker:web", False, "timed out"),
    ]
    assert [line.hidden for line in rows(report(blind("a", 3, "docker:web"), nodes))] == [3]


def test_a_blindness_that_no_failed_node_explains_stays_a_line_of_its_own() -> None:
    nodes = [Node("a", "docker:web", None, True), Node("b", "docker:web", None, False, "gone")]
    lines = rows(report([*blind("a", 2, "docker:web"), *blind("b", 2, "docker:web")], nodes))
    assert [line.label for line in lines] == ["a/job0", "a/job1", "docker:web"]


def test_rows_are_sorted_worst_first() -> None:
    statuses = {
        "a/1": Status.OK,
        "a/2": Status.CRIT,
        "a/3": Status.WARN,
        "a/4": Status.UNKNOWN,
        "a/0": Status.CRIT,
    }
    lines = rows(report([result(target, status) for target, status in statuses.items()], []))
    assert [line.label for line in lines] == ["a/0", "a/2", "a/4", "a/3", "a/1"]


@pytest.mark.parametrize(
    ("statuses", "up", "complete", "saved", "expected"),
    [
        ([Status.OK], True, True, True, Status.OK),
        ([Status.OK, Status.WARN], True, True, True, Status.WARN),
        ([Status.WARN, Status.UNKNOWN], True, True, True, Status.UNKNOWN),
        ([Status.CRIT, Status.UNKNOWN], True, True, True, Status.CRIT),
        ([Status.OK], False, True, True, Status.UNKNOWN),
        ([Status.OK], True, False, True, Status.UNKNOWN),
        ([Status.WARN], True, True, False, Status.UNKNOWN),
        ([Status.CRIT], False, False, False, Status.CRIT),
    ],
)
def test_the_verdict_is_the_worst_and_never_ok_when_something_was_not_seen_or_kept(
    statuses: list[Status], up: bool, complete: bool, saved: bool, expected: Status
) -> None:
    results = [result(f"a/{number}", status) for number, status in enumerate(statuses)]
    assert verdict(report(results, [Node("a", "docker:web", None, up)], complete, saved)) is expected


def test_a_selection_keeps_what_matches_by_target_id_or_name_and_what_hides_it() -> None:
    nodes = [Node("a", "docker:web", None, False, "gone"), Node("b", "docker:web", None, False, "gone")]
    whole = report([*blind("a", 2, "docker:web"), result("b/mail", name="Send mail")], nodes)
    assert [one.target for one in only(whole, "a/*").results] == ["a/job0", "a/job1"]
    assert only(whole, "a/*").nodes == (nodes[0],)
    assert [one.target for one in only(whole, "mail").results] == ["b/mail"]
    assert only(whole, "Send*").nodes == ()
    with pytest.raises(SettingsError, match="no target matches 'nobody'"):
        only(whole, "nobody")


ALPHA = Node("", "host:alpha", None, False, "no route to host")


def on_alpha(app: str, source: str, problem: str = "cannot be asked") -> Node:
    return Node(app, source, "host:alpha", False, problem)


def test_a_host_that_is_gone_is_one_line_for_all_applications_and_their_databases() -> None:
    nodes = [
        on_alpha("a", "docker:web"),
        on_alpha("b", "docker:web"),
        on_alpha("b", "database:b", "refused"),
        ALPHA,
    ]
    results = [*blind("a", 20, "docker:web"), *blind("b", 19, "docker:web"), *blind("b", 1, "database:b")]
    (line,) = rows(report(results, nodes))
    assert (line.label, line.text, line.reason) == ("host:alpha", "no route to host", "hides 40 checks")


def test_two_hosts_that_are_gone_are_two_lines_and_one_that_answers_is_none() -> None:
    beta = Node("", "host:beta", None, False, "no route to host")
    gamma = Node("", "host:gamma", None, True)
    broken = Node("c", "docker:web", "host:gamma", False, "no such container")
    lines = rows(report([], [ALPHA, beta, gamma, broken]))
    assert [line.label for line in lines] == ["docker:web", "host:alpha", "host:beta"]


def test_a_selection_keeps_the_host_that_hides_it() -> None:
    nodes = [
        on_alpha("a", "docker:web"),
        on_alpha("b", "docker:web"),
        ALPHA,
        Node("", "host:beta", None, True),
    ]
    kept = only(report([*blind("a", 1, "docker:web"), *blind("b", 1, "docker:web")], nodes), "a/*")
    assert kept.nodes == (nodes[0], ALPHA)
