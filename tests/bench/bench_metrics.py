"""How long one exposition takes, ours beside the Prometheus client's, same series, one process.

python tests/bench/bench_metrics.py [JOBS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from argus_sched.agent.check import PassReport, Result
from argus_sched.agent.metrics import FAMILIES, render
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.textfile import write_textfile

AT = datetime(2026, 3, 14, 10, tzinfo=UTC)
ROUNDS = 7


def report(jobs: int) -> PassReport:
    """A pass over `jobs` jobs in a hundred applications."""
    results = tuple(
        Result(
            app=f"app-{number % 100}",
            check="scheduler_jobs",
            target=f"app-{number % 100}/job_{number}",
            status=Status.OK,
            phase=Phase.FRESH,
            summary="",
            name=f'Send "booking" reminder {number}',
            last_run=AT,
            deadline=AT,
        )
        for number in range(jobs)
    )
    return PassReport(AT, results, (), complete=True, seconds=1.0)


def client_registry(text: str) -> CollectorRegistry:
    """The same series in the Prometheus client."""
    registry = CollectorRegistry()
    for family in text_string_to_metric_families(text):
        labels = FAMILIES.get(family.name, FAMILIES.get(f"{family.name}_total"))[0]
        gauge = Gauge(family.name, family.documentation, labels, registry=registry)
        for sample in family.samples:
            child = gauge.labels(*(sample.labels[label] for label in labels)) if labels else gauge
            child.set(sample.value)
    return registry


def median_seconds(work: Callable[[], object]) -> float:
    """The median wall time of ROUNDS calls."""
    taken = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return sorted(taken)[ROUNDS // 2]


def main(jobs: int) -> None:
    """Print one line a figure."""
    seen = report(jobs)
    text = render(seen)
    count = sum(not line.startswith(b"#") for line in text.splitlines())
    registry = client_registry(text.decode())
    ours = median_seconds(lambda: render(seen))
    theirs = median_seconds(lambda: generate_latest(registry))
    print(f"{jobs} jobs, {count} samples, {len(text) / 1e6:.1f} MB")
    print(f"render                     {ours * 1e3:8.1f} ms")
    print(f"client generate_latest     {theirs * 1e3:8.1f} ms   {theirs / ours:.1f} x ours")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "argus.prom"
        print(
            f"write_textfile, with fsync {median_seconds(lambda: write_textfile(target, text)) * 1e3:8.1f} ms"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
