"""The rules of the scheduler's lock as tables: the handed rows of pg_locks, and rows of our own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argus_sched.advisory_keys import halves
from argus_sched.agent.check import Node, Result
from argus_sched.agent.judging.lock_grading import blind_lock, grade_lock, may_pass
from argus_sched.agent.packs import LockCheck
from argus_sched.agent.ports import LockRow, LockSample
from argus_sched.agent.status import Phase, Status

KEY = 911_000_001
NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
CHECK = LockCheck(id="scheduler_lock", key=KEY)


def row(
    pid: int = 100,
    state: str | None = "idle",
    *,
    name: str | None = "app",
    mode: str = "ExclusiveLock",
    granted: bool = True,
    seconds: float | None = 0.2,
    transaction: float | None = None,
) -> LockRow:
    return LockRow(
        pid, mode, granted, state, name, "10.0.0.7", seconds, transaction, None if granted else 4.0
    )


def sample(*rows: LockRow, server: str = "db:5432", recovery: bool = False, **more: Any) -> LockSample:
    return LockSample(rows, recovery, NOON, server, **more)


def grade(*looks: LockSample, check: LockCheck = CHECK) -> Result:
    return grade_lock(check, "labs", [looks])


# What the handed cases expect, in the words of this project.
FIELD_VERDICTS = {
    "no-holder": (Status.CRIT, Phase.UNHELD),
    "one-idle-holder": (Status.OK, Phase.HELD),
    "other-database": (Status.OK, Phase.HELD),
    "other-key": (Status.OK, Phase.HELD),
    "waiter": (Status.WARN, Phase.HELD),
    "shared-mode": (Status.CRIT, Phase.SHARED),
    "two-servers": (Status.CRIT, Phase.CONTENDED),
    "standby-holder": (Status.CRIT, Phase.STANDBY_HOLDER),
    "unlock-elsewhere": (Status.OK, Phase.HELD),
    "idle-in-tx": (Status.WARN, Phase.IN_TRANSACTION),
    "idle-in-tx-aborted": (Status.CRIT, Phase.ABORTED),
    "active-holder": (Status.WARN, Phase.BUSY),
    "no-privilege": (Status.UNKNOWN, Phase.BLIND),
}


def field_sample(rows: Sequence[dict[str, Any]], host: str = "db", recovery: bool = False) -> LockSample:
    classid, objid = halves(KEY)
    exact = [
        entry
        for entry in rows
        if (entry["datname"], entry["classid"], entry["objid"], entry["objsubid"])
        == ("app", classid, objid, 1)
    ]
    return sample(
        *(
            row(
                entry["pid"],
                entry["state"],
                mode=entry["mode"],
                granted=entry["granted"],
                seconds=entry.get("query_seconds", 0.2 if entry["state"] else None),
            )
            for entry in exact
        ),
        server=host,
        recovery=recovery,
    )


def test_every_handed_case_gets_its_verdict(field_cases: Callable[[str], Any]) -> None:
    cases = field_cases("pg_locks")["cases"]
    assert {case["id"] for case in cases} == FIELD_VERDICTS.keys()
    for case in cases:
        servers = case.get("servers") or [{"host": "db", "in_recovery": False, "rows": case["rows"]}]
        looks = [[field_sample(each["rows"], each["host"], each["in_recovery"])] for each in servers]
        result = grade_lock(CHECK, "labs", looks)
        assert (result.status, result.phase) == FIELD_VERDICTS[case["id"]], case["id"]
        for detail in ("holders", "waiters", "holder_idle"):
            if detail in case:
                assert result.details[detail] == case[detail], (case["id"], detail)


def test_one_idle_holder_is_ok_and_described() -> None:
    result = grade(sample(row(4711, name="scheduler-leader:88")))
    assert (result.status, result.phase) == (Status.OK, Phase.HELD)
    assert result.target == "labs/scheduler_lock"
    assert result.check == "scheduler_lock"
    assert result.summary == "held by pid 4711 (scheduler-leader:88), idle"
    assert result.details == {
        "key": KEY,
        "halves": [0, KEY],
        "holders": 1,
        "holder_pid": 4711,
        "holder_state": "idle",
        "holder_application": "scheduler-leader:88",
        "holder_idle": True,
        "holder_servers": ["db:5432"],
        "shared_holders": 0,
        "waiters": 0,
        "looks": 1,
        "hold_message_seconds": 0.0,
    }


def test_an_unheld_lock_is_critical_at_once_and_holds_the_message_for_the_takeover() -> None:
    check = LockCheck(id="lock", key=KEY, takeover=timedelta(seconds=90))
    result = grade(sample(), check=check)
    assert (result.status, result.phase) == (Status.CRIT, Phase.UNHELD)
    assert result.details["hold_message_seconds"] == 90
    assert result.details["holder_idle"] is False
    assert may_pass(check, [[sample()]])


def test_the_newest_look_decides() -> None:
    assert grade(sample(), sample(), sample(row(5))).status is Status.OK
    assert grade(sample(row(5)), sample()).phase is Phase.UNHELD


@pytest.mark.parametrize(
    ("age", "status"), [(0.5, Status.WARN), (60.0, Status.WARN), (60.1, Status.CRIT), (86_400.0, Status.CRIT)]
)
def test_a_transaction_left_open_warns_then_is_critical(age: float, status: Status) -> None:
    result = grade(sample(row(state="idle in transaction", transaction=age)))
    assert (result.status, result.phase) == (status, Phase.IN_TRANSACTION)


def test_the_age_of_a_transaction_is_told_in_words() -> None:
    result = grade(sample(row(state="idle in transaction", transaction=3_784.4)))
    assert "for 1h3m4s" in result.summary


def test_an_aborted_transaction_is_critical_and_names_the_pid_to_end() -> None:
    result = grade(sample(row(77, "idle in transaction (aborted)")))
    assert (result.status, result.phase) == (Status.CRIT, Phase.ABORTED)
    assert "pg_terminate_backend(77)" in result.reason


@pytest.mark.parametrize(
    ("states", "status", "phase"),
    [
        (["active"], Status.OK, Phase.HELD),
        (["active", "active"], Status.OK, Phase.HELD),
        (["active", "active", "active"], Status.WARN, Phase.BUSY),
        (["active", "active", "idle"], Status.OK, Phase.HELD),
        (["active", "active", "idle", "active"], Status.OK, Phase.HELD),
        (["fastpath function call"] * 3, Status.WARN, Phase.BUSY),
    ],
)
def test_a_holder_at_work_warns_only_after_several_looks(
    states: list[str], status: Status, phase: Phase
) -> None:
    result = grade(*(sample(row(state=state)) for state in states))
    assert (result.status, result.phase) == (status, phase)


def test_another_holder_at_work_starts_the_count_again() -> None:
    assert grade(*(sample(row(pid, "active")) for pid in (1, 1, 2))).status is Status.OK


@pytest.mark.parametrize(
    ("state", "advice"), [(None, 'grant pg_monitor to "mon"'), ("disabled", "track_activities")]
)
def test_a_hidden_state_is_unknown_while_the_count_stands(state: str | None, advice: str) -> None:
    result = grade(sample(row(state=state, seconds=None), role="mon"))
    assert (result.status, result.phase) == (Status.UNKNOWN, Phase.BLIND)
    assert advice in result.reason
    assert result.details["holders"] == 1
    assert result.blind_by is None


def test_a_role_name_is_quoted_in_the_advice() -> None:
    assert 'pg_monitor to "a""b"' in grade(sample(row(state=None), role='a"b')).reason


@pytest.mark.parametrize(
    ("seconds", "phase"), [(1.5, Phase.HELD), (1.6, Phase.SILENT_HOLDER), (7200.0, Phase.SILENT_HOLDER)]
)
def test_a_holder_silent_for_more_than_three_ticks_is_critical(seconds: float, phase: Phase) -> None:
    check = LockCheck(id="lock", key=KEY, tick=timedelta(seconds=0.5))
    result = grade(sample(row(31, seconds=seconds)), check=check)
    assert result.phase is phase
    if phase is Phase.SILENT_HOLDER:
        assert result.status is Status.CRIT
        assert "select pg_terminate_backend(31)" in result.reason
        assert "db:5432" in result.reason


def test_without_a_tick_a_long_idle_holder_is_well() -> None:
    assert grade(sample(row(seconds=1e6))).status is Status.OK


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("scheduler-leader", Phase.HELD),
        ("scheduler-leader:4711", Phase.HELD),
        ("scheduler-leaders", Phase.FOREIGN_HOLDER),
        ("psql", Phase.FOREIGN_HOLDER),
        ("", Phase.FOREIGN_HOLDER),
        (None, Phase.FOREIGN_HOLDER),
    ],
)
def test_a_foreign_holder_is_critical_where_a_name_is_promised(name: str | None, phase: Phase) -> None:
    check = LockCheck(id="lock", key=KEY, holder_name="scheduler-leader")
    result = grade(sample(row(name=name)), check=check)
    assert result.phase is phase
    assert result.status is (Status.OK if phase is Phase.HELD else Status.CRIT)


def test_a_winner_that_has_not_renamed_itself_yet_is_looked_at_again() -> None:
    check = LockCheck(id="lock", key=KEY, holder_name="scheduler-leader")
    assert may_pass(check, [[sample(row(name="scheduler-standby:9"))]])
    assert not may_pass(check, [[sample(row(name="psql"))]])


def test_a_foreign_name_outweighs_a_hidden_state_and_both_are_told() -> None:
    check = LockCheck(id="lock", key=KEY, holder_name="scheduler-leader")
    result = grade(sample(row(state=None, name="psql")), check=check)
    assert result.phase is Phase.FOREIGN_HOLDER
    assert "cannot be seen" in result.reason


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (["scheduler-standby:1"], Status.OK),
        (["scheduler-standby:1", "scheduler-standby:2"], Status.OK),
        (["scheduler-standby:1", "gunicorn"], Status.WARN),
        ([None], Status.WARN),
    ],
)
def test_waiters_are_counted_and_warn_unless_they_are_our_standbys(
    names: list[str | None], status: Status
) -> None:
    waiting = [row(200 + n, "active", name=name, granted=False) for n, name in enumerate(names)]
    result = grade(sample(row(100), *waiting))
    assert result.status is status
    assert result.details["waiters"] == len(names)
    assert result.details["holders"] == 1


def test_shared_holders_are_named_and_are_no_holders() -> None:
    shared = [row(pid, mode="ShareLock", name=f"w{pid}") for pid in range(1, 8)]
    result = grade(sample(*shared))
    assert (result.status, result.phase) == (Status.CRIT, Phase.SHARED)
    assert result.summary == (
        f"key {KEY} is held in shared mode by pid 1 (w1), pid 2 (w2), pid 3 (w3), pid 4 (w4), pid 5 (w5) and 2 more"
    )
    assert (result.details["holders"], result.details["shared_holders"]) == (0, 7)


def test_a_prepared_transaction_is_named_as_such() -> None:
    result = grade(sample(row(0, None, name=None)))
    assert result.status is Status.CRIT
    assert "pg_prepared_xacts" in result.reason


def test_one_holder_on_each_of_two_writable_servers_is_split_brain() -> None:
    result = grade_lock(
        CHECK, "labs", [[sample(row(1), server="old:5432")], [sample(row(2), server="new:5432")]]
    )
    assert (result.status, result.phase) == (Status.CRIT, Phase.CONTENDED)
    assert result.summary.startswith("split brain: 2 sessions")
    assert "old:5432" in result.summary
    assert "new:5432" in result.summary
    assert result.details["hold_message_seconds"] == 0


def test_two_addresses_of_one_database_are_one_server() -> None:
    looks = [
        [sample(row(1), server=name, identity="1773482400.25/app")] for name in ("db:5432", "10.0.0.2:5432")
    ]
    result = grade_lock(CHECK, "labs", looks)
    assert (result.status, result.details["holders"]) == (Status.OK, 1)


def test_a_quiet_standby_beside_a_held_primary_is_well() -> None:
    result = grade_lock(CHECK, "labs", [[sample(row(1))], [sample(server="replica:5432", recovery=True)]])
    assert result.status is Status.OK


def test_a_holder_on_the_standby_only_is_critical_and_the_primary_is_told_too() -> None:
    result = grade_lock(CHECK, "labs", [[sample()], [sample(row(3), server="replica:5432", recovery=True)]])
    assert result.phase is Phase.STANDBY_HOLDER
    assert "no session holds key" in result.reason


def test_a_pack_that_names_only_a_standby_cannot_be_judged() -> None:
    result = grade(sample(server="replica:5432", recovery=True))
    assert (result.status, result.phase) == (Status.UNKNOWN, Phase.BLIND)
    assert "replica:5432" in result.summary


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (1 << 32 | 7, [1, 7]),
        (-1, [0xFFFF_FFFF, 0xFFFF_FFFF]),
        (-911_000_001, [0xFFFF_FFFF, 3_383_967_295]),
        (-(2**63), [0x8000_0000, 0]),
        (2**63 - 1, [0x7FFF_FFFF, 0xFFFF_FFFF]),
    ],
)
def test_the_halves_of_any_bigint_key_are_unsigned(key: int, expected: list[int]) -> None:
    assert grade(sample(row()), check=LockCheck(id="lock", key=key)).details["halves"] == expected


PASSING = [
    ("unheld", sample(), True),
    ("idle", sample(row()), False),
    ("short statement", sample(row(state="active", seconds=0.1)), True),
    ("long statement", sample(row(state="active", seconds=30)), False),
    ("young transaction", sample(row(state="idle in transaction", transaction=0.01)), True),
    ("old transaction", sample(row(state="idle in transaction", transaction=30)), False),
    ("aborted", sample(row(state="idle in transaction (aborted)")), False),
    ("hidden", sample(row(state=None)), False),
    ("shared", sample(row(mode="ShareLock")), False),
]


@pytest.mark.parametrize(
    ("look", "expected"), [case[1:] for case in PASSING], ids=[case[0] for case in PASSING]
)
def test_only_what_may_be_over_in_seconds_is_looked_at_again(look: LockSample, expected: bool) -> None:
    assert may_pass(CHECK, [[look]]) is expected


@pytest.mark.parametrize(("seconds", "expected"), [(4.4, True), (4.6, False), (1.4, False)])
def test_a_silence_just_over_the_bound_is_looked_at_again(seconds: float, expected: bool) -> None:
    check = LockCheck(id="lock", key=KEY, tick=timedelta(seconds=0.5))
    assert may_pass(check, [[sample(row(seconds=seconds))]]) is expected


def test_a_blind_lock_keeps_its_place_and_names_the_node() -> None:
    result = blind_lock(CHECK, "labs", Node("labs", "database:labs", None, False, "connection refused"))
    assert (result.status, result.phase, result.blind_by) == (Status.UNKNOWN, Phase.BLIND, "database:labs")
    assert result.reason == "connection refused"
    assert result.details["holders"] is None
    assert result.details["key"] == KEY
