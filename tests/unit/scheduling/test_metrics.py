"""The collector: names, labels, and text that Prometheus reads."""

from __future__ import annotations

import importlib.util

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from argus_sched.errors import MissingExtraError
from argus_sched.scheduling.metrics import Metrics, collector


def scrape(metrics: Metrics, *, leads: bool = True) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(collector(metrics, "labs", lambda: (leads, 7 if leads else 0, 1.5)))
    lines = generate_latest(registry).decode().splitlines()
    return {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")
    }


def test_every_number_has_its_series() -> None:
    metrics = Metrics()
    metrics.claim("won", 3)
    metrics.missed("expired", 12)
    metrics.changed("elected")
    metrics.lateness(0.004)
    metrics.lateness(700)
    metrics.skipped_overlap += 1
    found = scrape(metrics)
    expected = {
        'argus_scheduler_leader{namespace="labs"}': 1,
        'argus_scheduler_epoch{namespace="labs"}': 7,
        'argus_scheduler_trust_left_seconds{namespace="labs"}': 1.5,
        'argus_scheduler_leader_changes_total{cause="elected",namespace="labs"}': 1,
        'argus_scheduler_claims_total{namespace="labs",outcome="won"}': 3,
        'argus_scheduler_claims_total{namespace="labs",outcome="lost"}': 0,
        'argus_scheduler_claims_total{namespace="labs",outcome="unknown"}': 0,
        'argus_scheduler_dues_missed_total{namespace="labs",reason="expired"}': 12,
        'argus_scheduler_dues_missed_total{namespace="labs",reason="coalesced"}': 0,
        'argus_scheduler_skipped_overlap_total{namespace="labs"}': 1,
        'argus_scheduler_interrupted_total{namespace="labs"}': 0,
        'argus_scheduler_disabled_jobs{namespace="labs"}': 0,
        'argus_scheduler_clock_offset_seconds{namespace="labs"}': 0,
        'argus_scheduler_lateness_seconds_bucket{le="0.0025",namespace="labs"}': 0,
        'argus_scheduler_lateness_seconds_bucket{le="0.005",namespace="labs"}': 1,
        'argus_scheduler_lateness_seconds_bucket{le="+Inf",namespace="labs"}': 2,
        'argus_scheduler_lateness_seconds_count{namespace="labs"}': 2,
        'argus_scheduler_promotion_seconds_count{namespace="labs"}': 0,
        'argus_scheduler_demotion_seconds_count{namespace="labs"}': 0,
        'argus_scheduler_tick_seconds_count{namespace="labs"}': 0,
    }
    assert expected.items() <= found.items()


def test_no_label_collides_with_those_of_a_scrape() -> None:
    text = generate_latest(registry := CollectorRegistry()).decode()
    registry.register(collector(Metrics(), "labs", lambda: (False, 0, 0.0)))
    text = generate_latest(registry).decode()
    assert "job=" not in text
    assert "instance=" not in text


def test_a_standby_exports_the_same_series() -> None:
    assert scrape(Metrics(), leads=False).keys() == scrape(Metrics()).keys()


def test_only_the_leader_tells_how_many_jobs_are_off() -> None:
    metrics = Metrics()
    metrics.disabled_jobs = 2
    name = 'argus_scheduler_disabled_jobs{namespace="labs"}'
    assert (scrape(metrics)[name], scrape(metrics, leads=False)[name]) == (2, 0)


def test_without_the_library_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'argus-sched\[scheduler\]'"):
        collector(Metrics(), "labs", lambda: (False, 0, 0.0))
