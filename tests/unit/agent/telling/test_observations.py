"""A report as the incidents see it: what hides behind what, since when, and what must wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from argus_sched.agent.check import Node, PassReport, Result
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.telling.observations import HOLD_KEY, Observation, observe

AT = datetime(2026, 3, 14, 10, tzinfo=UTC)


def report(*results: Result, nodes: tuple[Node, ...] = ()) -> PassReport:
    """A pass with these."""
    return PassReport(AT, results, nodes, complete=True, seconds=0.1)


def result(status: Status, phase: Phase, **fields: object) -> Result:
    """The result of one job of labs."""
    return Result("labs", "scheduler_jobs", "labs/job", status, phase, "words", **fields)  # type: ignore[arg-type] # fields of Result


def by_subject(observations: tuple[Observation, ...]) -> dict[str, Observation]:
    """The same by name."""
    return {seen.subject: seen for seen in observations}


def test_a_failed_host_is_one_subject_and_hides_everything_below() -> None:
    """Host, daemon and container fail together: only the host speaks, and says how many checks it hides."""
    jobs = tuple(
        Result(
            "labs",
            "scheduler_jobs",
            f"labs/{n}",
            Status.UNKNOWN,
            Phase.BLIND,
            "blind",
            blind_by="docker:web",
        )
        for n in range(40)
    )
    nodes = (
        Node("labs", "host:one", None, up=False, problem="no route to host"),
        Node("labs", "docker:web", "host:one", up=False, problem="cannot be asked"),
    )
    seen = by_subject(observe(report(*jobs, nodes=nodes)))
    assert [name for name, one in seen.items() if one.blind_by is None] == ["labs/host:one"]
    assert seen["labs/docker:web"].blind_by == "labs/host:one"
    assert all(seen[f"labs/{n}"].blind_by == "labs/docker:web" for n in range(40))
    assert seen["labs/host:one"].summary == "no route to host; with it labs/docker:web; hides 40 checks"
    assert seen["labs/docker:web"].summary == "cannot be asked"


def test_a_daemon_that_is_gone_for_every_pack_is_one_subject() -> None:
    """Each pack asks it for a container of its own and gets the same answer."""
    apps = ("labs", "shop", "crm")
    nodes = [Node(app, f"docker:{app}", None, up=False, problem="no daemon") for app in apps]
    other = Node("labs", "database:labs", None, up=False, problem="no daemon")
    jobs = [
        Result(
            app, "scheduler_jobs", f"{app}/job", Status.UNKNOWN, Phase.BLIND, "-", blind_by=f"docker:{app}"
        )
        for app in apps
    ]
    seen = by_subject(observe(report(*jobs, nodes=(*nodes, other))))
    speaking = {name for name, one in seen.items() if one.blind_by is None}
    assert speaking == {"crm/docker:crm", "labs/database:labs"}
    assert (
        seen["crm/docker:crm"].summary
        == "no daemon; with it labs/docker:labs, shop/docker:shop; hides 3 checks"
    )


def test_a_node_of_no_single_application_is_one_subject_for_all() -> None:
    node = Node("", "host:one", None, up=False, problem="no route to host")
    hidden = result(Status.UNKNOWN, Phase.BLIND, blind_by="host:one")
    seen = by_subject(observe(report(hidden, nodes=(node, node))))
    assert set(seen) == {"host:one", "labs/job"}
    assert seen["labs/job"].blind_by == "host:one"


def test_a_target_that_is_blind_without_a_failed_node_speaks_for_itself() -> None:
    up = Node("labs", "docker:web", None, up=True)
    seen = by_subject(
        observe(report(result(Status.UNKNOWN, Phase.BLIND, blind_by="docker:web"), nodes=(up,)))
    )
    assert seen["labs/job"].blind_by is None
    assert seen["labs/docker:web"].status is Status.OK


MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("seen", "since"),
    [
        (result(Status.CRIT, Phase.STALE, deadline=AT - MINUTE), AT - MINUTE),
        (result(Status.CRIT, Phase.NEVER_RAN, deadline=AT - MINUTE), AT - MINUTE),
        (result(Status.CRIT, Phase.FAILING, deadline=AT - MINUTE, last_run=AT - MINUTE), None),
        (result(Status.OK, Phase.FRESH, last_run=AT - MINUTE, deadline=AT + MINUTE), AT - MINUTE),
        (result(Status.OK, Phase.FRESH, last_run=AT + MINUTE), None),
        (result(Status.CRIT, Phase.STALE, deadline=AT + MINUTE), None),
    ],
)
def test_the_evidence_says_since_when(seen: Result, since: datetime | None) -> None:
    assert observe(report(seen))[0].since == since


@pytest.mark.parametrize(
    ("seen", "seconds"),
    [
        (result(Status.CRIT, Phase.UNHELD, details={HOLD_KEY: 75.0}), 75),
        (result(Status.UNKNOWN, Phase.BLIND, limit_seconds=1800.0), 1800),
        (result(Status.UNKNOWN, Phase.BLIND, limit_seconds=1800.0, last_run=AT), 0),
        (result(Status.CRIT, Phase.STALE, limit_seconds=1800.0, last_run=AT), 0),
        (result(Status.CRIT, Phase.NEVER_RAN, limit_seconds=1800.0), 0),
    ],
)
def test_a_message_waits_for_a_takeover_and_for_a_first_limit(seen: Result, seconds: int) -> None:
    assert observe(report(seen))[0].hold == timedelta(seconds=seconds)


def test_two_hosts_that_are_gone_for_one_reason_are_two_subjects() -> None:
    """One may come back before the other."""
    hosts = [Node("", f"host:{name}", None, up=False, problem="no route to host") for name in ("a", "b")]
    below = [
        Node(app, source, f"host:{app}", up=False, problem="-")
        for app in ("a", "b")
        for source in ("docker:web", "database:x")
    ]
    seen = by_subject(observe(report(nodes=(*hosts, *below))))
    assert {name for name, one in seen.items() if one.blind_by is None} == {"host:a", "host:b"}
    assert seen["a/database:x"].blind_by == "host:a"
