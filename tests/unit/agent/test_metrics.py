"""The exposition text: one series per label set, escaped, complete, and with values a rule can compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from argus_sched import __version__
from argus_sched.agent.check import Node, PassReport, Result
from argus_sched.agent.metrics import FAMILIES, render
from argus_sched.agent.status import Phase, Status

AT = datetime(2026, 3, 14, 10, tzinfo=UTC)


def job(name: str = "Sync keys", *, app: str = "labs", **fields: Any) -> Result:
    plain: dict[str, Any] = {
        "check": "scheduler_jobs",
        "target": f"{app}/{name}",
        "status": Status.OK,
        "phase": Phase.FRESH,
        "summary": "",
        "name": name,
        "last_run": AT,
        "deadline": AT + timedelta(minutes=30),
    }
    return Result(app=app, **{**plain, **fields})


def lock(
    status: Status = Status.OK, *, app: str = "labs", target: str = "labs/scheduler_lock", **details: Any
) -> Result:
    seen = {"holders": 1, "holder_idle": True, "waiters": 0, **details}
    return Result(app, "scheduler_lock", target, status, Phase.HELD, "", details=seen)


def report(results: Sequence[Result] = (), nodes: Sequence[Node] = (), **fields: Any) -> PassReport:
    return PassReport(AT, tuple(results), tuple(nodes), **{"complete": True, "seconds": 0.25, **fields})


def samples(given: PassReport) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What a scraper understands, with the parser of Prometheus' own Python client."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for family in text_string_to_metric_families(render(given).decode()):
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found, "a repeated series"
            found[key] = sample.value
    return found


def value(given: PassReport, name: str, **labels: str) -> float:
    return samples(given)[name, tuple(sorted(labels.items()))]


def test_a_job_has_its_last_run_its_deadline_and_its_status() -> None:
    seen = report([job()])
    assert (
        value(seen, "argus_job_last_run_timestamp_seconds", app="labs", job_name="Sync keys")
        == AT.timestamp()
    )
    assert (
        value(seen, "argus_job_deadline_timestamp_seconds", app="labs", job_name="Sync keys")
        == AT.timestamp() + 1800
    )
    labels = {"app": "labs", "check": "scheduler_jobs", "target": "labs/Sync keys"}
    assert value(seen, "argus_check_status", **labels) == 0


@pytest.mark.parametrize("status", list(Status))
def test_the_status_is_the_exit_codes_number(status: Status) -> None:
    labels = {"app": "labs", "check": "scheduler_jobs", "target": "labs/x"}
    assert value(report([job("x", status=status)]), "argus_check_status", **labels) == int(status)


def test_the_lock_has_its_holders_whether_they_idle_and_its_waiters() -> None:
    seen = report([lock(holders=2, holder_idle=False, waiters=3)])
    assert value(seen, "argus_scheduler_lock_holders", app="labs") == 2
    assert value(seen, "argus_scheduler_lock_holder_idle", app="labs") == 0
    assert value(seen, "argus_scheduler_lock_waiters", app="labs") == 3


def test_the_pass_itself_is_exported() -> None:
    seen = report([], [Node("labs", "docker:web", None, up=False)], complete=False, state_saved=False)
    assert value(seen, "argus_last_pass_timestamp_seconds") == AT.timestamp()
    assert value(seen, "argus_pass_duration_seconds") == 0.25
    assert value(seen, "argus_pass_complete") == 0
    assert value(seen, "argus_state_saved") == 0
    assert value(seen, "argus_build_info", version=__version__) == 1
    assert value(seen, "argus_source_up", app="labs", source="docker:web") == 0


def test_a_blind_target_keeps_its_series_with_what_was_last_known() -> None:
    blind: dict[str, Any] = {"status": Status.UNKNOWN, "phase": Phase.BLIND, "blind_by": "docker:web"}
    sighted = report([job("known"), job("unknown"), lock()])
    hidden = report(
        [
            job("known", **blind),
            job("unknown", last_run=None, deadline=None, **blind),
            lock(Status.UNKNOWN, holders=None, holder_idle=None, waiters=None),
        ]
    )
    assert samples(sighted).keys() == samples(hidden).keys()
    last = "argus_job_last_run_timestamp_seconds"
    assert value(hidden, last, app="labs", job_name="known") == AT.timestamp()
    assert math.isnan(value(hidden, last, app="labs", job_name="unknown"))
    assert math.isnan(value(hidden, "argus_scheduler_lock_holders", app="labs"))


def test_a_disabled_job_has_no_deadline_to_miss() -> None:
    seen = report([job(phase=Phase.DISABLED)])
    assert math.isnan(value(seen, "argus_job_deadline_timestamp_seconds", app="labs", job_name="Sync keys"))


def test_a_job_without_a_name_goes_by_its_id() -> None:
    seen = report([job("", target="labs/sync_keys")])
    assert (
        value(seen, "argus_job_last_run_timestamp_seconds", app="labs", job_name="sync_keys")
        == AT.timestamp()
    )


def test_the_handed_job_of_two_containers_is_one_series_with_the_newest_run(
    field_cases: Callable[[str], Any],
) -> None:
    case = next(case for case in field_cases("prometheus")["cases"] if case["id"] == "same-name-twice")
    runs = {"OK": AT, "STALE": AT - timedelta(hours=9)}
    statuses = {"OK": Status.OK, "STALE": Status.CRIT}
    seen = report(
        [
            job(entry["name"], last_run=runs[entry["state"]], status=statuses[entry["state"]], deadline=None)
            for entry in case["jobs"]
        ]
    )
    assert (
        value(seen, "argus_job_last_run_timestamp_seconds", app="labs", job_name="rollup") == AT.timestamp()
    )
    labels = {"app": "labs", "check": "scheduler_jobs", "target": "labs/rollup"}
    assert value(seen, "argus_check_status", **labels) == Status.CRIT


def test_of_two_jobs_with_one_name_and_one_run_the_earlier_deadline_counts() -> None:
    seen = report([job(deadline=AT + timedelta(hours=hours)) for hours in (2, 1, 3)])
    deadline = value(seen, "argus_job_deadline_timestamp_seconds", app="labs", job_name="Sync keys")
    assert deadline == AT.timestamp() + 3600


def test_critical_outweighs_unknown_for_one_target() -> None:
    labels = {"app": "labs", "check": "scheduler_jobs", "target": "labs/x"}
    seen = report([job("x", status=Status.UNKNOWN), job("x", status=Status.CRIT)])
    assert value(seen, "argus_check_status", **labels) == Status.CRIT


def test_of_two_locks_of_one_application_the_worse_is_exported() -> None:
    seen = report([lock(), lock(Status.CRIT, target="labs/drain_lock", holders=0, holder_idle=False), lock()])
    assert value(seen, "argus_scheduler_lock_holders", app="labs") == 0
    assert (
        value(seen, "argus_check_status", app="labs", check="scheduler_lock", target="labs/drain_lock") == 2
    )


def test_a_source_read_by_two_checks_is_up_only_if_both_could_read_it() -> None:
    nodes = [Node("labs", "database:labs", None, up) for up in (True, False, True)]
    assert value(report([], nodes), "argus_source_up", app="labs", source="database:labs") == 0


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ('say "hi"', r"say \"hi\""),
        (r"C:\temp", r"C:\\temp"),
        ("two\nlines", r"two\nlines"),
        ("Pull Fortnox → ledger 🧾", "Pull Fortnox → ledger 🧾"),
        ("bell\x07", r"bell\\x07"),
        ("carriage\rreturn", r"carriage\\rreturn"),
        ("line\u2028separator", r"line\\u2028separator"),
        ("half\ud83e", r"half\\ud83e"),
        ("100 %s {} %", "100 %s {} %"),
        ("", ""),
    ],
)
def test_label_values_are_escaped(name: str, written: str) -> None:
    text = render(report([job(name, target="labs/x")])).decode()
    expected = written or "x"
    assert f'argus_job_last_run_timestamp_seconds{{app="labs",job_name="{expected}"}}' in text


def test_names_that_look_alike_once_escaped_are_one_series() -> None:
    seen = report([job("a\x07"), job(r"a\x07")])
    assert (
        value(seen, "argus_job_last_run_timestamp_seconds", app="labs", job_name=r"a\x07") == AT.timestamp()
    )


@given(st.lists(st.text(alphabet=st.characters()), max_size=6), st.text(alphabet=st.characters()))
def test_any_names_make_a_text_that_parses_without_a_repeated_series(names: list[str], app: str) -> None:
    results = [job(name, app=app) for name in names] + [lock(app=app)]
    found = samples(report(results, [Node(app, name, None, True) for name in names]))
    assert ("argus_build_info", (("version", __version__),)) in found


def test_help_and_type_never_change() -> None:
    def headers(given: PassReport) -> list[str]:
        return [line for line in render(given).decode().splitlines() if line.startswith("#")]

    full = report([job(), lock()], [Node("labs", "docker:web", None, True)])
    assert headers(full) == headers(report())
    assert len(headers(full)) == 2 * len(FAMILIES)


def test_no_label_is_one_that_the_scrape_owns() -> None:
    assert not {"job", "instance"} & {label for labels, _ in FAMILIES.values() for label in labels}


def test_the_text_ends_in_a_line_end_and_counts_in_gauges_and_counters() -> None:
    text = render(report([job()])).decode()
    assert text.endswith("\n")
    assert {line.split()[-1] for line in text.splitlines() if line.startswith("# TYPE")} == {
        "gauge",
        "counter",
    }
