"""A digest as text with entities, within Telegram's limit whatever the names.

Text goes out with entities and no parse mode, so no name can break it: offsets and lengths are UTF-16 units,
as the Bot API counts. What does not fit takes the next step of the ladder, each within two messages:

1. every line in full;
2. every name, by status;
3. as many names as fit, worst first, how many are left, and the command that shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import groupby

from argus_sched.agent.status import Status
from argus_sched.agent.telling.incidents import Incident
from argus_sched.agent.telling.notices import Change, Line
from argus_sched.agent.telling.visible_text import brief, clip, units

TELEGRAM_LIMIT = 4096
MOST_MESSAGES = 2
# Telegram heeds about a hundred entities; the heads of the sections must be among them.
MOST_ENTITIES, MOST_CODES = 100, 80
SHORT_LIMIT = 1000
NO_LIMIT = 1 << 60

_SUBJECT, _NAME, _SENTENCE = 160, 100, 240
_ENDS = {
    Change.RECOVERED: "recovered after",
    Change.DISABLED: "switched off after",
    Change.REMOVED: "no longer watched, after",
}


class Style(StrEnum):
    """The two kinds of entity we use; the values are the Bot API's."""

    BOLD = "bold"
    CODE = "code"


@dataclass(frozen=True)
class Entity:
    """A styled stretch of a text, in UTF-16 units."""

    style: Style
    offset: int
    length: int


@dataclass(frozen=True)
class Digest:
    """What one pass tells one channel: the lines, worst first, and what is wrong besides (`open`)."""

    at: datetime
    lines: tuple[Line, ...]
    open: tuple[Incident, ...] = ()
    state_saved: bool = True


@dataclass(frozen=True)
class Message:
    """One message; `short` is plain text for a server that refuses `text`, `lines` is what it stands for."""

    text: str
    entities: tuple[Entity, ...]
    short: str
    silent: bool
    at: datetime
    lines: tuple[Line, ...]
    open: tuple[Incident, ...] = ()

    @property
    def covers(self) -> tuple[int, ...]:
        """The rows of the notices that are told when this message was accepted."""
        return tuple(number for line in self.lines for number in line.covers)


@dataclass(frozen=True)
class Span:
    """A piece of text in one style."""

    text: str
    style: Style | None = None


@dataclass(frozen=True)
class Block:
    """Spans that stay together, and the lines that are told once they are."""

    spans: tuple[Span, ...]
    lines: tuple[Line, ...] = ()

    @property
    def units(self) -> int:
        """Its length."""
        return sum(units(span.text) for span in self.spans)


@dataclass
class Page:
    """One message being filled."""

    limit: int
    used: int = 0
    blocks: list[Block] = field(default_factory=list)

    def take(self, block: Block) -> bool:
        """Add `block` when it fits."""
        if self.used + block.units > self.limit:
            return False
        self.blocks.append(block)
        self.used += block.units
        return True


def compose(digest: Digest, limit: int = TELEGRAM_LIMIT) -> tuple[Message, ...]:
    """The messages of a digest, at most two, each within `limit` UTF-16 units."""
    blocks = [_head(digest)]
    full, names = (_sections(digest.lines, form) for form in (_full_blocks, _name_blocks))
    pages = (
        _fill(blocks + full, limit) or _fill(blocks + names, limit) or _fill_what_fits(blocks + names, limit)
    )
    return tuple(_message(page, digest) for page in pages)


def summary(lines: Iterable[Line]) -> str:
    """How many of what: `2 CRIT, 1 UNKNOWN, 3 recovered`."""
    counts = Counter(_word(line) for line in lines)
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def _word(line: Line) -> str:
    if line.shown.is_end:
        return "recovered" if line.shown is Change.RECOVERED else "ended"
    if line.shown in {Change.FLAPPING, Change.STEADY}:
        return line.shown.value
    status = line.notice.status.name
    if line.shown is Change.REMINDER:
        return "still flapping" if _flaps(line) else f"still {status}"
    return status


def _flaps(line: Line) -> bool:
    """Whether it is told for going up and down; nobody is reminded of what is OK for another reason."""
    reminder = line.shown is Change.REMINDER and line.notice.status is Status.OK
    return line.shown is Change.FLAPPING or reminder


def _label(line: Line) -> str:
    return "OK" if line.shown.is_end else _word(line)


def _head(digest: Digest) -> Block:
    warning = "" if digest.state_saved else "\n(state not saved: this may be told again)"
    return Block((Span(summary(digest.lines), Style.BOLD), Span(warning + "\n")))


def _sections(lines: Sequence[Line], form: Callable[[str, list[Line]], list[Block]]) -> list[Block]:
    """The blocks of each section, lines of one word together, in the order of the lines."""
    order = list(dict.fromkeys(_word(line) for line in lines))
    ordered = sorted(lines, key=lambda line: order.index(_word(line)))
    groups = groupby(ordered, key=_word)
    return [block for word, group in groups for block in form(word, list(group))]


def _full_blocks(_: str, lines: list[Line]) -> list[Block]:
    return [Block((Span("\n"), *_full(line)), (line,)) for line in lines]


def _full(line: Line) -> tuple[Span, ...]:
    incident = line.notice.incident
    name = brief(incident.name, _NAME)
    return (
        Span(_label(line), Style.BOLD),
        Span(" "),
        Span(_shown_subject(incident, _SUBJECT), Style.CODE),
        Span(f" {name}\n" if name else "\n"),
        Span(f"{_sentence(line)}\n"),
        Span(f"{_times(line)} #{incident.id}\n"),
    )


def _sentence(line: Line) -> str:
    incident, notice = line.notice.incident, line.notice
    said = [brief(incident.summary, _SENTENCE)]
    if incident.reason:
        said.append(brief(incident.reason, _SENTENCE))
    if _flaps(line):
        said.insert(0, f"{notice.changes} changes in 20 passes, no more is told until it is steady")
    if line.shown is Change.STEADY:
        said = [f"{notice.status.name} now"] + said * (notice.status is not Status.OK)
    if line.shown.is_end:
        said = [f"was {incident.status.name}: {said[0]}"]
    return "; ".join(said)


def _times(line: Line) -> str:
    incident, at = line.notice.incident, line.notice.at
    since = f"since {_stamp(incident.opened_at, at)}"
    if line.shown.is_end:
        lasted = (incident.closed_at or at) - incident.opened_at
        late = "" if line.was_told else ", its alert could not be sent before"
        since = f"{_ENDS[line.shown]} {length_text(lasted)}, {since}{late}"
    elif line.shown is Change.EASED:
        since = f"eased, {since}"
    elif line.shown is Change.WORSE:
        since = f"worse, {since}"
    return since + (f" ({line.spells} spells)" if line.spells > 1 else "")


def _stamp(instant: datetime, now: datetime) -> str:
    utc = instant.astimezone(UTC)
    return f"{utc:%H:%M} UTC" if utc.date() == now.astimezone(UTC).date() else f"{utc:%Y-%m-%d %H:%M} UTC"


def length_text(length: timedelta) -> str:
    """The two largest units: nobody needs the seconds of a day."""
    seconds = max(round(length.total_seconds()), 0)
    parts = (
        (seconds // 86400, "d"),
        (seconds // 3600 % 24, "h"),
        (seconds // 60 % 60, "m"),
        (seconds % 60, "s"),
    )
    largest = next((index for index, (count, _) in enumerate(parts) if count), len(parts) - 1)
    shown = [f"{count}{unit}" for count, unit in parts[largest : largest + 2] if count]
    return "".join(shown) or "0s"


def _name_blocks(word: str, lines: list[Line]) -> list[Block]:
    head = Block((Span("\n"), Span(f"{len(lines)} {word}", Style.BOLD), Span("\n")))
    return [
        head,
        *(Block((Span(_shown_subject(_of(line), _NAME), Style.CODE), Span("\n")), (line,)) for line in lines),
    ]


def _of(line: Line) -> Incident:
    return line.notice.incident


def _shown_subject(incident: Incident, limit: int) -> str:
    return brief(incident.subject, limit).strip() or "(no name)"


def _fill(blocks: Sequence[Block], limit: int) -> list[Page] | None:
    """The blocks on at most two pages; None when they need more."""
    pages = [Page(limit)]
    for block in blocks:
        if pages[-1].take(block):
            continue
        pages.append(Page(limit))
        if len(pages) > MOST_MESSAGES or not pages[-1].take(block):
            return None
    return pages


def _fill_what_fits(blocks: Sequence[Block], limit: int) -> list[Page]:
    """Two pages of the first blocks; the last one says how many lines are left and stands for them too."""
    tail = _tail(sum(len(block.lines) for block in blocks), ())
    pages = [Page(limit), Page(limit - tail.units)]
    waiting = list(blocks)
    for page in pages:
        while waiting and page.take(waiting[0]):
            waiting.pop(0)
    left = tuple(line for block in waiting for line in block.lines)
    pages[-1].blocks.append(_tail(len(left), left))
    return pages


def _tail(count: int, lines: tuple[Line, ...]) -> Block:
    return Block((Span(f"\nand {count} more: run argus-sched check\n"),), lines)


def _message(page: Page, digest: Digest) -> Message:
    spans = [span for block in page.blocks for span in block.spans]
    # The server trims a text's beginning, and would have to move the entities with it.
    text, entities = _render([Span(spans[0].text.lstrip("\n"), spans[0].style), *spans[1:]])
    lines = tuple(line for block in page.blocks for line in block.lines)
    silent = all(line.notice.change.is_silent and line.was_told for line in lines)
    return Message(text, entities, _short(lines), silent, digest.at, lines, digest.open)


def _render(spans: Iterable[Span]) -> tuple[str, tuple[Entity, ...]]:
    pieces: list[str] = []
    entities: list[Entity] = []
    offset = 0
    for span in spans:
        length = units(span.text)
        most = MOST_CODES if span.style is Style.CODE else MOST_ENTITIES
        if span.style and len(entities) < most:
            entities.append(Entity(span.style, offset, length))
        pieces.append(span.text)
        offset += length
    return "".join(pieces).rstrip("\n"), tuple(entities)


def _short(lines: Sequence[Line]) -> str:
    """Counts, the first names and their tags."""
    names = (f"{_label(line)} {_shown_subject(_of(line), _NAME)} #{_of(line).id}" for line in lines)
    text = "\n".join([summary(lines), *names])
    if units(text) <= SHORT_LIMIT:
        return text
    return clip(text, SHORT_LIMIT - 60) + "\nand more: run argus-sched check"
