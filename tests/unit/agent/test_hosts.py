"""How machines are named in the target tree, and what a pass knows of one from several looks."""

from __future__ import annotations

import pytest

from argus_sched.agent.check import Node
from argus_sched.agent.hosts import LOCAL, HostSpec, Roll, agreed, host_label, host_node, machine_label

HOSTS = {
    LOCAL: HostSpec(),
    "alpha": HostSpec("alpha", "ssh://root@alpha.example"),
    "beta": HostSpec("beta", "tcp://10.0.0.5:2376"),
    "gamma": HostSpec("gamma", context="gamma"),
}


@pytest.mark.parametrize(
    ("machine", "label"),
    [
        ("", None),
        ("localhost", None),
        ("127.0.0.1", None),
        ("::1", None),
        ("/var/run/postgresql", None),
        ("@abstract", None),
        ("alpha.example", "host:alpha"),
        ("10.0.0.5", "host:beta"),
        ("db.example", "host:db.example"),
    ],
)
def test_a_database_is_on_the_host_that_its_machine_is_named_by(machine: str, label: str | None) -> None:
    assert machine_label(machine, HOSTS) == label


def test_the_agents_own_machine_has_no_node() -> None:
    assert host_label(LOCAL) is None
    assert host_node(None, "away") == ()
    assert host_label("alpha") == "host:alpha"


def test_a_host_is_down_only_when_nobody_reached_it() -> None:
    down, up = host_node("host:a", "timed out"), host_node("host:a")
    assert agreed([*down, *up]) == up
    assert agreed([*up, *down]) == up
    assert agreed([*down, *host_node("host:a", "refused")]) == down


def test_what_is_said_of_an_applications_own_sources_is_kept_to_the_word() -> None:
    nodes = (
        Node("labs", "database:labs", None, True),
        Node("labs", "database:labs", None, False, "no answer"),
    )
    assert agreed([*nodes, *nodes]) == nodes


def test_a_silent_host_is_asked_again_once_it_answered_anybody() -> None:
    roll = Roll()
    assert roll.absent("host:a") == ""
    roll.note(host_node("host:a", "timed out"))
    assert roll.absent("host:a") == "timed out"
    assert (roll.absent("host:b"), roll.absent(None)) == ("", "")
    roll.note([Node("labs", "docker:web", "host:a", False, "no such container"), *host_node("host:a")])
    assert roll.absent("host:a") == ""
