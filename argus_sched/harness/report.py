"""One page that shows a run: who led when, what was done, what ran, how late, and the verdict.

A single HTML file with inline SVG; it loads nothing and runs no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.resources import files

from argus_sched.harness import timeline
from argus_sched.harness.expected import Plan
from argus_sched.harness.figures import Bound, FaultFigures, Percentiles, Sample, samples
from argus_sched.harness.history import History
from argus_sched.harness.profiles import profile
from argus_sched.harness.reigns import reigns
from argus_sched.harness.scenario import FAULTS
from argus_sched.harness.settings import RunSettings
from argus_sched.harness.verdict import Verdict, Violation, iso

SHOWN = 20


@dataclass(frozen=True)
class Record:
    """Everything one run left: what was asked for, what happened, and what the judge said.

    `span` is the judged time in milliseconds; `notes` are sentences for the reader.
    """

    settings: RunSettings
    plans: tuple[Plan, ...]
    span: tuple[int, int]
    history: History
    verdict: Verdict
    notes: tuple[str, ...] = ()


def page(record: Record) -> str:
    """The whole report as one HTML document."""
    verdict = record.verdict
    jittered = {plan.job for plan in record.plans if plan.jitter_ms}
    measured = samples(record.history, reigns(record.history), record.span[1] / 1000.0, jittered)
    word = "held" if verdict.held else "violated"
    body = [
        _header(record, word),
        _tiles(verdict),
        _section("What happened", timeline.svg(record.history, record.span, jittered) + timeline.legend()),
        _section("What each fault cost", _figures(record)),
        _violations(verdict.violations),
        _section("Every fault, in order", _steps(measured, record.span[0] / 1000.0)),
        _footer(record),
    ]
    title = escape(f"Failover run, seed {verdict.seed}: {word}")
    style = files("argus_sched.harness").joinpath("report.css").read_text()
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{title}</title><style>{style}</style></head>\n"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _header(record: Record, word: str) -> str:
    verdict, settings = record.verdict, record.settings
    began = datetime.fromtimestamp(record.span[0] / 1000.0, UTC)
    lasted = (record.span[1] - record.span[0]) / 1000.0
    count = sum(one.count for one in verdict.faults.values())
    size = f"{_counted(settings.workers, 'worker')}, {_counted(settings.jobs, 'job')}"
    sentence = (
        f"{size} and {_counted(count, 'fault')} in {_counted(round(lasted), 'second')}, "
        f"on {began:%d %B %Y at %H:%M:%S} UTC with seed {settings.seed} and the {settings.profile} timing."
    )
    names = escape(", ".join(settings.without))
    off = f"<p class=off>Switched off on purpose: {names}.</p>" if names else ""
    return (
        f'<header><h1>Failover run <span class="verdict {word}" id="verdict">{word}</span></h1>'
        f"<p>{escape(sentence)}</p>{off}</header>"
    )


def _tiles(verdict: Verdict) -> str:
    late = verdict.lateness_ms
    tiles = [
        ("expected", "due times", f"{verdict.expected:,}", ""),
        ("lost", "lost", f"{verdict.lost:,}", "bad" if verdict.lost else "good"),
        ("doubled", "run twice", f"{verdict.doubled:,}", "bad" if verdict.doubled else "good"),
        ("interrupted", "interrupted by a kill", f"{verdict.interrupted:,}", ""),
        (
            "holders",
            "holders at most",
            f"{verdict.max_holders}",
            "bad" if verdict.max_holders > 1 else "good",
        ),
        ("leaderless", "without a leader", f"{verdict.leaderless_seconds:.2f} s", ""),
        ("two-leaders", "with two leaders", f"{verdict.two_leader_seconds:.3f} s", ""),
        ("lateness", "late, median and p99", f"{_ms(late.p50)} / {_ms(late.p99)}", ""),
    ]
    cells = (
        f'<div class="tile {mood}" id="{name}"><b>{escape(value)}</b><span>{label}</span></div>'
        for name, label, value, mood in tiles
    )
    return f'<section class="tiles" aria-label="figures">{"".join(cells)}</section>'


def _figures(record: Record) -> str:
    bounds = profile(record.settings.profile).bounds()
    three = "<th class=n>p50<th class=n>p99<th class=n>max"
    head = (
        "<tr><th rowspan=2>fault<th rowspan=2 class=n>times<th colspan=3>old leader stopped after"
        "<th colspan=4>next leader after<th colspan=3>lateness of what was due</tr>"
        f"<tr>{three}{three}<th class=n>bound{three}</tr>"
    )
    rows = (_figures_row(name, one, bounds.get(name, Bound())) for name, one in record.verdict.faults.items())
    slow = "".join(f"<li>{escape(line)}" for line in record.verdict.slow)
    missed = f"<p>Bounds missed:</p><ul id=slow>{slow}</ul>" if slow else ""
    return _table("figures", head, rows) + missed


def _figures_row(name: str, one: FaultFigures, bound: Bound) -> str:
    limit, longest = bound.promotion_ms, one.promotion_ms.max
    mark = "over" if limit is not None and longest is not None and longest > limit else ""
    stopped, late = _cells(one.demotion_ms), _cells(one.lateness_ms)
    leading = f"{_cells(one.promotion_ms, mark)}<td class='n soft'>{_ms(limit)}"
    title = escape(FAULTS.get(name, name))
    head = f'<tr data-fault="{name}"><th title="{title}">{name}<td class=n>{one.count}'
    return f"{head}{stopped}{leading}{late}</tr>"


def _steps(measured: Sequence[Sample], origin: float) -> str:
    head = (
        "<tr><th class=n>#<th class=n>at<th>fault<th>particulars<th class=n>stopped<th class=n>next leader"
        "<th class=n>latest fire</tr>"
    )
    rows = (
        f"<tr><td class=n>{number}<td class=n>{max(0.0, sample.fault.at - origin):.2f} s"
        f"<th>{escape(sample.fault.name)}<td>{escape(sample.fault.detail)}"
        f"<td class=n>{_ms(sample.demotion_ms)}<td class=n>{_ms(sample.promotion_ms)}"
        f"<td class=n>{_ms(max(sample.lateness_ms, default=None))}</tr>"
        for number, sample in enumerate(measured, 1)
    )
    return _table("steps", head, rows)


def _table(name: str, head: str, rows: Iterable[str]) -> str:
    body = "".join(rows)
    return f'<div class=wide><table id="{name}"><thead>{head}</thead><tbody>{body}</tbody></table></div>'


def _violations(violations: Sequence[Violation]) -> str:
    if not violations:
        return ""
    items = "".join(
        f"<details><summary><b>{escape(one.rule)}</b> {escape(one.message)}</summary><pre>"
        + escape("\n".join(one.around))
        + "</pre></details>"
        for one in violations[:SHOWN]
    )
    more = f"<p>… and {len(violations) - SHOWN:,} more.</p>" if len(violations) > SHOWN else ""
    return (
        f'<section id="violations"><h2>{_counted(len(violations), "violation")}</h2>{items}{more}</section>'
    )


def _footer(record: Record) -> str:
    notes = "".join(f"<p>{escape(note)}</p>" for note in record.notes)
    span = f"{iso(record.span[0])} to {iso(record.span[1])}"
    return (
        f"<footer>{notes}<p>Judged from {span}. Repeat this run:</p>"
        f"<pre id=command>{escape(record.settings.command)}</pre><p>Beside this page: "
        "<a href=report.json>report.json</a>, the verdict, and <a href=history.jsonl>history.jsonl</a>, "
        "every event of the run.</p></footer>"
    )


def _counted(count: int, noun: str) -> str:
    """A number and its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def _cells(values: Percentiles, mark: str = "") -> str:
    return f"<td class=n>{_ms(values.p50)}<td class=n>{_ms(values.p99)}<td class='n {mark}'>{_ms(values.max)}"


def _ms(value: float | None) -> str:
    """Milliseconds as a person reads them."""
    if value is None:
        return "–"
    if value >= 1000:
        return f"{value / 1000:.2f} s"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"
