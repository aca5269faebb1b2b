"""Numbers of one scheduler, and their Prometheus collector."""

from __future__ import annotations

import importlib.util
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from argus_sched.errors import MissingExtraError

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

# (leads, epoch, seconds of trust left)
Standing = Callable[[], tuple[bool, int, float]]

LATENESS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Histogram:
    """Counts of seconds under fixed bounds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative (upper bound, count), as Prometheus wants them."""
        total, found = 0, []
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            found.append(("+Inf" if bound == float("inf") else repr(bound), float(total)))
        return found


class Metrics:
    """What is counted; the methods may be called by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.claims: Counter[str] = Counter(won=0, lost=0, unknown=0)
        self.dues_missed: Counter[str] = Counter(expired=0, coalesced=0, skipped=0, refused=0)
        self.changes: Counter[str] = Counter()
        self.lateness_seconds = Histogram(LATENESS_BUCKETS)
        self.promotion_seconds = Histogram(SECONDS_BUCKETS)
        self.demotion_seconds = Histogram(SECONDS_BUCKETS)
        self.tick_seconds = Histogram(SECONDS_BUCKETS)
        self.skipped_overlap = 0
        self.interrupted = 0
        self.disabled_jobs = 0
        self.clock_offset = 0.0

    def claim(self, outcome: str, count: int = 1) -> None:
        """Count claims by `won`, `lost` or `unknown`."""
        with self._lock:
            self.claims[outcome] += count

    def missed(self, reason: str, count: int) -> None:
        """Count due times that were given up."""
        with self._lock:
            self.dues_missed[reason] += count

    def changed(self, cause: str) -> None:
        """Count a change of leadership of this worker."""
        with self._lock:
            self.changes[cause] += 1

    def lateness(self, seconds: float) -> None:
        """Observe nominal due time → start."""
        with self._lock:
            self.lateness_seconds.observe(seconds)


class SchedulerCollector:
    """A prometheus-client collector; `standing` is asked at each scrape."""

    def __init__(self, metrics: Metrics, namespace: str, standing: Standing) -> None:
        self._metrics = metrics
        self._label = [namespace]
        self._standing = standing

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not look at the scheduler."""
        return []

    def collect(self) -> Iterable[Metric]:
        """The families, at this moment."""
        metrics = self._metrics
        leads, epoch, trust = self._standing()
        yield self._gauge("leader", "1 while this worker leads", float(leads))
        yield self._gauge("epoch", "number of the term this worker leads, 0 otherwise", float(epoch))
        yield self._gauge("trust_left_seconds", "how long the leader may still believe in itself", trust)
        yield self._counter("leader_changes", "changes of leadership, by cause", metrics.changes, "cause")
        yield self._counter("claims", "claims, by answer", metrics.claims, "outcome")
        yield self._counter("dues_missed", "due times given up, by reason", metrics.dues_missed, "reason")
        yield self._total("skipped_overlap", "due times skipped at max_instances", metrics.skipped_overlap)
        yield self._total("interrupted", "runs whose worker died, not run again", metrics.interrupted)
        # Only the leader keeps counting; what a standby once counted may be long past.
        disabled = metrics.disabled_jobs if leads else 0
        yield self._gauge("disabled_jobs", "jobs that are switched off, on the leader", disabled)
        yield self._gauge("clock_offset_seconds", "the store's clock minus ours", metrics.clock_offset)
        yield self._histogram("lateness_seconds", "nominal due time to start", metrics.lateness_seconds)
        yield self._histogram("promotion_seconds", "lock won to firing", metrics.promotion_seconds)
        yield self._histogram("demotion_seconds", "last good tick to demotion", metrics.demotion_seconds)
        yield self._histogram("tick_seconds", "round trip of a leader's tick", metrics.tick_seconds)

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(f"argus_scheduler_{name}", text, labels=["namespace"])
        family.add_metric(self._label, value)
        return family

    def _counter(self, name: str, text: str, values: Counter[str], label: str) -> Metric:
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(f"argus_scheduler_{name}", text, labels=["namespace", label])
        for key, value in list(values.items()):
            family.add_metric([*self._label, key], value)
        return family

    def _total(self, name: str, text: str, value: float) -> Metric:
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(f"argus_scheduler_{name}", text, labels=["namespace"])
        family.add_metric(self._label, value)
        return family

    def _histogram(self, name: str, text: str, histogram: Histogram) -> Metric:
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(f"argus_scheduler_{name}", text, labels=["namespace"])
        family.add_metric(self._label, buckets=histogram.buckets(), sum_value=histogram.sum)
        return family


def collector(metrics: Metrics, namespace: str, standing: Standing) -> Collector:
    """A collector to register; MissingExtraError without prometheus-client."""
    if importlib.util.find_spec("prometheus_client") is None:
        raise MissingExtraError("prometheus-client", "scheduler")
    # Registering asks for `collect` and `describe` only; the library's base class would have to be imported.
    return cast("Collector", SchedulerCollector(metrics, namespace, standing))
