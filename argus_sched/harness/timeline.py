"""The picture of a run: one lane per place of a worker, faults as marks, fires as ticks, lateness below."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from math import log10

from argus_sched.harness.history import Belief, Born, Fault, Frozen, History, Started
from argus_sched.harness.reigns import death_times, reigns, spans_with

GUTTER, RIGHT, LANE, BAR = 84.0, 16.0, 40.0, 14.0
LABEL_ROW, CHART = 16.0, 96.0
NARROWEST, WIDEST, PER_SECOND = 1190.0, 12_000.0, 14.0
LATEST_MS = 10_000.0
MARGIN = 0.5
STEPS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200)


@dataclass(frozen=True)
class Piece:
    """What a worker was from `start` to `end`."""

    worker: str
    role: str
    start: float
    end: float


@dataclass
class Lane:
    """One row of the picture: the workers that followed each other in one place."""

    name: str
    pieces: list[Piece] = field(default_factory=list)
    workers: list[str] = field(default_factory=list)
    free_from: float = 0.0


@dataclass(frozen=True)
class Scale:
    """Seconds to pixels."""

    start: float
    end: float

    @property
    def width(self) -> float:
        """The whole picture's width."""
        return min(max(NARROWEST, (self.end - self.start) * PER_SECOND), WIDEST)

    @property
    def per_second(self) -> float:
        """Pixels of one second."""
        return (self.width - GUTTER - RIGHT) / (self.end - self.start)

    def x(self, at: float) -> float:
        """Where `at` is drawn; what lies outside is drawn at the edge."""
        inside = min(max(at, self.start), self.end)
        return round(GUTTER + (inside - self.start) * self.per_second, 1)


def svg(history: History, span: tuple[int, int], late_by_rule: Container[str] = ()) -> str:
    """The picture as SVG, in a box that scrolls sideways; the jobs in `late_by_rule` have a jitter."""
    scale = Scale(span[0] / 1000.0 - MARGIN, span[1] / 1000.0 + MARGIN)
    rows = lanes(history, scale.end)
    labels, marks = _fault_labels(history.of_kind(Fault), scale)
    top = labels + 10.0
    strip = top + 6.0
    first = strip + 22.0
    chart = first + len(rows) * LANE + 18.0
    height = chart + CHART + 30.0
    parts = [
        _axis(scale, top, chart + CHART),
        _fault_marks(marks, scale, top, chart + CHART),
        _strip(history, scale, strip),
        *(_lane(lane, history, scale, first + index * LANE) for index, lane in enumerate(rows)),
        _lateness(history, late_by_rule, scale, chart),
    ]
    size = f'width="{scale.width:g}" height="{height:g}" viewBox="0 0 {scale.width:g} {height:g}"'
    name = 'id="timeline" role="img" aria-label="timeline of the run"'
    return f'<div class="wide"><svg {name} {size}>{"".join(parts)}</svg></div>'


def legend() -> str:
    """What the colours mean."""
    swatch = '<svg width="14" height="12"><rect class="{}" width="14" height="12" rx="3"/></svg>{}'
    items = [
        swatch.format(f"piece {role}", text)
        for role, text in (
            ("leader", "leader"),
            ("heir", "heir, next in line"),
            ("standby", "standby"),
            ("frozen", "frozen"),
        )
    ]
    items += ['<svg width="18" height="12"><line class="dead" x1="0" x2="18" y1="6" y2="6"/></svg>dead']
    items += ['<svg width="14" height="12"><path class="fires" d="M3 1v10M7 1v10M11 1v10"/></svg>fires']
    items += [swatch.format("leaderless", "nobody leads"), swatch.format("two-leaders", "two lead")]
    return f'<ul class="legend">{"".join(f"<li>{item}</li>" for item in items)}</ul>'


def lanes(history: History, end: float) -> list[Lane]:
    """The places of workers by name; each worker takes the first row of its slot that is free."""
    by_slot: dict[str, list[Lane]] = defaultdict(list)
    deaths = death_times(history)
    for born in history.of_kind(Born):
        rows = by_slot[born.slot]
        lane = next((row for row in rows if row.free_from <= born.at), None)
        if lane is None:
            lane = Lane(born.slot if not rows else f"{born.slot}-{len(rows) + 1}")
            rows.append(lane)
        lane.free_from = deaths.get(born.worker, end)
        lane.workers.append(born.worker)
        lane.pieces += _life(history, born, lane.free_from)
    return [lane for slot in sorted(by_slot) for lane in by_slot[slot]]


def _life(history: History, born: Born, end: float) -> Iterator[Piece]:
    """A worker's roles from birth to `end`, and over them the times it was frozen."""
    role, since = "starting", born.at
    for belief in history.of_kind(Belief):
        if belief.worker == born.worker and belief.role != role:
            yield Piece(born.worker, role, since, min(belief.at, end))
            role, since = belief.role, belief.at
    yield Piece(born.worker, role, since, end)
    for freeze in history.of_kind(Frozen):
        if freeze.worker == born.worker:
            yield Piece(born.worker, "frozen", freeze.at, min(freeze.until, end))


def _lane(lane: Lane, history: History, scale: Scale, y: float) -> str:
    shown = [piece for piece in lane.pieces if piece.end > scale.start and piece.role != "stopped"]
    bars = "".join(_bar(piece, scale, y) for piece in shown)
    gaps = "".join(_line("dead", scale.x(left), scale.x(right), y + BAR / 2) for left, right in _gaps(lane))
    name = _text(12, y + BAR - 2, lane.name, 'class="lane-name"')
    ticks = _ticks(lane, history, scale, y + BAR + 3)
    return f'<g class="lane" data-lane="{escape(lane.name)}">{name}{gaps}{bars}{ticks}</g>'


def _bar(piece: Piece, scale: Scale, y: float) -> str:
    title = f"{piece.worker}: {piece.role} for {piece.end - piece.start:.2f} s"
    return _box(f"piece {piece.role}", scale, piece.start, piece.end, y, BAR, title)


def _gaps(lane: Lane) -> Iterator[tuple[float, float]]:
    """The times in which a place was empty, because its worker was dead."""
    lives = sorted((min(p.start for p in own), max(p.end for p in own)) for own in _by_worker(lane.pieces))
    for (_, died), (born, _) in pairwise(lives):
        yield died, born


def _by_worker(pieces: Iterable[Piece]) -> Iterable[list[Piece]]:
    groups: dict[str, list[Piece]] = defaultdict(list)
    for piece in pieces:
        groups[piece.worker].append(piece)
    return groups.values()


def _ticks(lane: Lane, history: History, scale: Scale, y: float) -> str:
    """One tick a fire; fires that would fall on the same half pixel share one."""
    own = set(lane.workers)
    inside = (run for run in history.of_kind(Started) if scale.start <= run.at <= scale.end)
    runs = [run.at for run in inside if run.worker in own]
    spots = sorted({round(scale.x(at) * 2) / 2 for at in runs})
    path = "".join(f"M{spot:g} {y:g}v9" for spot in spots)
    return f'<path class="fires" data-count="{len(runs)}" d="{path}"/>'


def _strip(history: History, scale: Scale, y: float) -> str:
    """The times without a leader, and with two."""
    spells, bounds = reigns(history), (scale.start + MARGIN, scale.end - MARGIN)
    spans = [("leaderless", "nobody led", span) for span in spans_with(spells, range(1), *bounds)]
    spans += [
        ("two-leaders", "two workers led", span) for span in spans_with(spells, range(2, 1000), *bounds)
    ]
    boxes = (
        _box(css, scale, left, right, y, 8.0, f"{text} for {(right - left) * 1000:.0f} ms")
        for css, text, (left, right) in spans
    )
    row = _line("row", GUTTER, scale.width - RIGHT, y + 4)
    return f'<g class="strip">{_text(12, y + 8, "leading")}{row}{"".join(boxes)}</g>'


def _fault_labels(faults: Sequence[Fault], scale: Scale) -> tuple[float, list[tuple[Fault, float]]]:
    """The height of all labels, and each fault with the base line of its label: no two labels touch."""
    ends: list[float] = []
    placed: list[tuple[Fault, float]] = []
    for fault in faults:
        x = scale.x(fault.at)
        row = next((index for index, end in enumerate(ends) if end < x), len(ends))
        ends[row : row + 1] = [x + 7.0 * len(fault.name) + 14.0]
        placed.append((fault, LABEL_ROW * (row + 1)))
    return LABEL_ROW * max(len(ends), 1) + 6.0, placed


def _fault_marks(marks: Iterable[tuple[Fault, float]], scale: Scale, top: float, bottom: float) -> str:
    return "".join(_fault_mark(fault, y, scale, top, bottom) for fault, y in marks)


def _fault_mark(fault: Fault, y: float, scale: Scale, top: float, bottom: float) -> str:
    x = scale.x(fault.at)
    area = _box("while", scale, fault.at, fault.until, top, bottom - top, f"{fault.name} {fault.detail}")
    mark = f'<line x1="{x:g}" x2="{x:g}" y1="{y - 10:g}" y2="{bottom:g}"/>'
    outside = x + 8.0 * len(fault.name) > scale.width
    label = _text(x - 4, y, fault.name, 'text-anchor="end"') if outside else _text(x + 4, y, fault.name)
    return f'<g class="fault" data-fault="{escape(fault.name)}">{area}{mark}{label}</g>'


def _lateness(history: History, late_by_rule: Container[str], scale: Scale, top: float) -> str:
    """The lateness of every fire on a logarithmic scale; of the fires on one pixel, the latest."""
    worst: dict[int, float] = {}
    for run in history.of_kind(Started):
        if scale.start <= run.at <= scale.end and run.job not in late_by_rule:
            x = int(scale.x(run.at))
            worst[x] = max(worst.get(x, 0.0), run.at * 1000.0 - run.due_ms)
    dots = "".join(_dot(x, late, top) for x, late in sorted(worst.items()))
    rules = "".join(
        _line("row", GUTTER, scale.width - RIGHT, _height(ms, top))
        + _text(GUTTER - 8, _height(ms, top) + 4, text, 'text-anchor="end"')
        for ms, text in ((1, "1 ms"), (10, "10 ms"), (100, "0.1 s"), (1000, "1 s"), (LATEST_MS, "10 s"))
    )
    return f'<g id="lateness">{_text(12, top - 6, "lateness of each fire")}{rules}{dots}</g>'


def _dot(x: int, late_ms: float, top: float) -> str:
    css, y = "late very" if late_ms >= 1000 else "late", _height(late_ms, top)
    return f'<circle class="{css}" cx="{x}" cy="{y:g}" r="2"><title>{late_ms:.1f} ms late</title></circle>'


def _height(late_ms: float, top: float) -> float:
    share = log10(min(max(late_ms, 1.0), LATEST_MS)) / log10(LATEST_MS)
    return round(top + CHART - share * (CHART - 8.0), 1)


def _axis(scale: Scale, top: float, bottom: float) -> str:
    step = next((step for step in STEPS if step * scale.per_second > 60), STEPS[-1])
    marks = []
    for second in range(0, int(scale.end - scale.start), step):
        x = scale.x(scale.start + MARGIN + second)
        marks.append(f'<line class="row" x1="{x:g}" x2="{x:g}" y1="{top:g}" y2="{bottom:g}"/>')
        marks.append(_text(x, bottom + 20, f"{second} s", 'text-anchor="middle"'))
    return "".join(marks)


def _box(css: str, scale: Scale, start: float, end: float, y: float, height: float, title: str) -> str:
    left, width = scale.x(start), max(scale.x(end) - scale.x(start), 1.5)
    place = f'x="{left:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" rx="2"'
    return f'<rect class="{css}" {place}><title>{escape(title)}</title></rect>'


def _line(css: str, left: float, right: float, y: float) -> str:
    return f'<line class="{css}" x1="{left:g}" x2="{right:g}" y1="{y:g}" y2="{y:g}"/>'


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {attributes}>{escape(text)}</text>'
