"""A verdict as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from argus_sched.harness.figures import Percentiles
from argus_sched.harness.report import Record
from argus_sched.harness.verdict import Verdict

TOLD = 10


def text(record: Record) -> str:
    """The verdict: one sentence, a table of the faults, what was slow, each violation with its events."""
    verdict = record.verdict
    parts = [_sentence(verdict), "", *_table(verdict)]
    parts += [f"slow      {line}" for line in verdict.slow]
    parts += [_agent(verdict.agent)] if verdict.agent else []
    parts += _violations(verdict)
    parts += ["", f"repeat with   {record.settings.command}"]
    return "\n".join(parts)


def _sentence(verdict: Verdict) -> str:
    return (
        f"{'HELD' if verdict.held else 'VIOLATED'}: {verdict.expected:,} due times, {verdict.lost:,} lost, "
        f"{verdict.doubled:,} run twice, {verdict.interrupted:,} interrupted by a kill; at most "
        f"{verdict.max_holders} holder of the lock, {verdict.leaderless_seconds:.2f} s without a leader, "
        f"{verdict.two_leader_seconds:.3f} s with two; lateness p50 {_ms(verdict.lateness_ms.p50)}, "
        f"p99 {_ms(verdict.lateness_ms.p99)}"
    )


def _table(verdict: Verdict) -> Iterator[str]:
    if verdict.faults:
        yield f"{'fault':<11}{'times':>6}   {'old leader stopped':<26}{'next leader':<26}lateness"
        yield f"{'':<20}{'p50 / p99 / max':<26}{'p50 / p99 / max':<26}{'p50 / p99 / max':<26}".rstrip()
    for name, one in verdict.faults.items():
        cells = (_three(values) for values in (one.demotion_ms, one.promotion_ms, one.lateness_ms))
        yield f"{name:<11}{one.count:>6}   {''.join(f'{cell:<26}' for cell in cells)}".rstrip()


def _agent(agent: Mapping[str, object]) -> str:
    told = agent["told_after_seconds"]
    return f"agent     {agent['passes']} passes, {agent['stops']} real stops, told {told} s after the limit"


def _violations(verdict: Verdict) -> Iterator[str]:
    """The first violations, and the events around the first of each rule; the page has the others'."""
    shown: set[str] = set()
    for violation in verdict.violations[:TOLD]:
        yield f"violated  {violation.rule}: {violation.message}"
        if violation.rule not in shown:
            yield from (f"            {line}" for line in violation.around)
        shown.add(violation.rule)
    if len(verdict.violations) > TOLD:
        yield f"          ... and {len(verdict.violations) - TOLD:,} more"


def _three(values: Percentiles) -> str:
    return " / ".join(map(_ms, (values.p50, values.p99, values.max))) if values.count else "-"


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return (
        f"{value / 1000:.2f} s" if value >= 1000 else f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"
    )


def listing(rows: Sequence[tuple[str, str]], title: str) -> str:
    """A titled list of words and what they mean."""
    width = max(len(word) for word, _ in rows) + 2
    return "\n".join([title, *(f"  {word:<{width}}{meaning}" for word, meaning in rows)])
