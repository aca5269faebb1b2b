"""Which lines a run has: what can be joined, what is repeated, and how a direct line refuses to go silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from argus_sched.errors import SettingsError
from argus_sched.harness import arena, namespaces
from argus_sched.harness.lines import LINES, ProxyLines
from argus_sched.harness.settings import RunSettings

DSN = "postgresql://postgres@127.0.0.1:5432/x"


def test_direct_lines_lead_to_the_database_itself_and_cannot_be_silenced() -> None:
    way = ProxyLines().open("w1", DSN)
    assert (way.dsn, way.within) == (DSN, ())
    with pytest.raises(SettingsError, match="the workers connect directly"):
        ProxyLines().silence("w1")


def test_the_lines_are_part_of_what_repeats_a_run() -> None:
    settings = RunSettings(lines="namespaces")
    assert "--lines namespaces" in settings.command
    assert RunSettings.from_json(settings.as_json(), None) == settings


def test_a_report_from_before_there_were_other_lines_is_repeated_through_the_proxy() -> None:
    fields = RunSettings().as_json()
    del fields["lines"]
    assert RunSettings.from_json(fields, None).lines == "proxy"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dsn": DSN}, "--lines namespaces cannot be joined with --dsn"),
        ({"docker": True}, "--lines namespaces cannot be joined with --docker"),
        ({"coordination": "redis"}, "--lines namespaces cannot be joined with --coordination redis"),
    ],
)
def test_what_a_namespace_cannot_reach_is_refused(
    options: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces, "obstacle", lambda: "")
    with pytest.raises(SettingsError, match=says):
        arena.check(RunSettings(lines="namespaces", **options))


def test_unknown_lines_are_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=f"there are no lines 'string': use any of {', '.join(LINES)}"):
        arena.check(RunSettings(lines="string"))


def test_missing_rights_are_one_sentence_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "find_program", lambda name: f"/sbin/{name}")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(SettingsError, match=r"run it as root with CAP_NET_ADMIN.*, or use --lines proxy"):
        arena.check(RunSettings(lines="namespaces"))


def test_root_without_the_capabilities_has_not_the_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    # What the root of a container has that was started without further rights.
    monkeypatch.setattr(namespaces, "find_program", lambda name: f"/sbin/{name}")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(Path, "read_text", lambda _: "Name:\tpython\nCapEff:\t00000000a80425fb\n")
    assert "CAP_SYS_ADMIN" in namespaces.obstacle()


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "find_program", lambda _: None)
    with pytest.raises(
        SettingsError, match=r"there is no program `ip`: install it \(Debian package iproute2\)"
    ):
        arena.check(RunSettings(lines="namespaces"))


def test_more_slots_than_addresses_are_refused() -> None:
    with pytest.raises(SettingsError, match="254 slots are more than a run has addresses for: use up to 253"):
        namespaces.NamespaceLines("1", [f"w{number}" for number in range(254)])
