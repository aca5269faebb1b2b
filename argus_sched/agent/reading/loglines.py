"""Events from records: finds the scheduler's messages under any logging prefix, and believes no quotation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from argus_sched.agent.logevents import Event, EventKind, Record
from argus_sched.agent.reading import lineprefix
from argus_sched.agent.reading.dockertext import split_docker_text
from argus_sched.agent.reading.speech import is_unfinished, may_speak
from argus_sched.agent.reading.templates import OPENING, Message, Outcome, Unfinished, understand

__all__ = ["MOST_PIECES", "LineParser", "Sieve", "parse", "split_docker_text"]

# A name with line ends goes on over the next records of its stream, but not for ever.
MOST_PIECES = 8

_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_SUFFIX = re.compile(r"\s\[apscheduler[\w.]{0,80}\]\Z")
_RECORD_START = re.compile(
    r"\s{0,40}(?:\[?\d{4}-\d\d-\d\d|\[?\d\d/\d\d/\d\d|[IWEF]\d{4} \d\d:|[A-Z][a-z]{2} [ \d]\d \d\d:|"
    r"\{|Traceback \(most|"
    r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|NOTICE|TRACE|SUCCESS)\b)"
)
_WRAPPED_FIRST = re.compile(r"\s{2,}\S+\.py:\d+\s*\Z")
_WRAPPED_NEXT = " " * 8
_VERSION_4 = re.compile(r"[^\"'`]{0,200}\bapscheduler\._\w+(?:\.\w+)*\b")
_CUT_JSON = re.compile(r'"(?:logger|name)": ?"apscheduler\.')
_TEXT_KEYS = ("message", "event", "msg", "log")


def parse(records: Iterable[Record], container: str | None = None) -> Iterator[Event]:
    """The events of `records`, in the order in which their messages end."""
    parser = LineParser(container)
    for record in records:
        yield from parser.feed(record)
    parser.flush()


class Sieve:
    """Tells which records are worth keeping: those that may speak, and what may be the rest of a name.

    A source that asks it first builds few records on a busy log and loses no event. Raw lines of a json-file
    may be asked as they are.
    """

    def __init__(self) -> None:
        self._following: dict[str, int] = {}

    def keeps(self, stream: str, text: bytes) -> bool:
        """Whether the parser must see this record."""
        left = self._following.get(stream, 0)
        speaks = may_speak(text)
        if speaks and is_unfinished(text):
            self._following[stream] = MOST_PIECES
        elif left:
            self._following[stream] = left - 1
        return speaks or left > 0


class LineParser:
    """Reads records as they come and gives events as their messages end."""

    def __init__(self, container: str | None = None) -> None:
        self._container = container
        self._begun: dict[str, list[Record]] = {}

    def feed(self, record: Record) -> list[Event]:
        """The events that this record completes: mostly none, at most two."""
        pieces = self._begun.get(record.stream)
        if pieces is None:
            return self._first(record) if may_speak(record.text) else []
        text = clean(record.text)
        if not _goes_on(pieces[0], text):
            return self._give_up(record.stream) + self.feed(record)
        return self._go_on(pieces, record, text)

    def flush(self) -> list[Event]:
        """Forget what is unfinished: it may be whole in the next read, so nothing is reported."""
        self._begun.clear()
        return []

    def _first(self, record: Record) -> list[Event]:
        outcome = read_line(clean(record.text))
        if isinstance(outcome, Unfinished):
            self._begun[record.stream] = [record]
            return []
        return self._events(outcome, record)

    def _go_on(self, pieces: list[Record], record: Record, text: str) -> list[Event]:
        pieces.append(record)
        if text.startswith(_WRAPPED_NEXT) or len(pieces) > MOST_PIECES + 1:
            return self._give_up(record.stream)
        outcome = read_line("\n".join(clean(piece.text) for piece in pieces))
        if isinstance(outcome, Unfinished):
            return []
        del self._begun[record.stream]
        return self._events(outcome, pieces[0])

    def _give_up(self, stream: str) -> list[Event]:
        """A run that began and never ended is worth a word: a console handler may have wrapped it."""
        pieces = self._begun.pop(stream)
        text = "\n".join(clean(piece.text) for piece in pieces)
        prefix, mark, _ = text.partition('Running job "')
        if not mark or not (lineprefix.names(prefix, "apscheduler") or "(trigger: " in text):
            return []
        return self._events(_unreadable("wrapped over several lines, or cut off"), pieces[0])

    def _events(self, outcome: Message | None, record: Record) -> list[Event]:
        if outcome is None:
            return []
        return [
            Event(outcome.kind, record.stamp_ns, record.line, container=self._container, **outcome.fields)
        ]


def clean(text: bytes) -> str:
    """The text of a record: UTF-8 with replacements, without terminal sequences and the CR of a TTY."""
    line = text.decode("utf-8", "replace").removesuffix("\r")
    return _CONTROL.sub("", line) if "\x1b" in line else line


def read_line(text: str) -> Outcome:
    """What one whole line says, from its prefix to its end."""
    if text.startswith("{"):
        value = _json_object(text)
        if value is not None:
            return _read_object(value)
        if _CUT_JSON.search(text) and 'Running job \\"' in text:
            return _unreadable("JSON that ends early")
    return _read_plain(text)


def _read_plain(text: str) -> Outcome:
    opening = OPENING.search(text[: lineprefix.LONGEST + 64])
    if opening is None:
        return _version_4(text)
    prefix, message = text[: opening.start()], text[opening.start() :].rstrip()
    if _VERSION_4.match(prefix):
        return _version_4(prefix)
    if _WRAPPED_FIRST.search(text[-200:]) and message.startswith("Running job") and '" (sched' not in message:
        return (
            _unreadable("wrapped by a console handler")
            if lineprefix.is_prefix(prefix, "apscheduler")
            else None
        )
    outcome = understand(_without_suffix(message))
    if isinstance(outcome, Unfinished):
        return outcome if _may_begin(prefix, message) else None
    if outcome is None or not lineprefix.is_prefix(prefix, outcome.family):
        return None
    if outcome.needs_logger and not lineprefix.names(prefix, outcome.family):
        return None
    return outcome


def _may_begin(prefix: str, message: str) -> bool:
    families = ("apscheduler", "argus_sched") if message.startswith("Job") else ("apscheduler",)
    return any(lineprefix.is_prefix(prefix, family) for family in families)


def _without_suffix(message: str) -> str:
    """structlog's console renderer puts the logger's name behind the text."""
    tail = _SUFFIX.search(message, max(len(message) - 100, 0)) if message.endswith("]") else None
    return message[: tail.start()].rstrip() if tail else message


def _version_4(text: str) -> Message | None:
    if not _VERSION_4.match(text):
        return None
    return Message(EventKind.UNSUPPORTED, {"detail": "APScheduler 4"})


def _read_object(value: dict[str, Any]) -> Message | None:
    text = next((value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str)), None)
    if text is None:
        return None
    outcome = understand(_printable(text).rstrip("\r\n"))
    if not isinstance(outcome, Message):
        return None
    logger = next((value[key] for key in ("logger", "name") if isinstance(value.get(key), str)), None)
    if logger is None:
        return None if outcome.needs_logger else outcome
    if outcome.family == "apscheduler" and logger.startswith("apscheduler._"):
        return Message(EventKind.UNSUPPORTED, {"detail": "APScheduler 4"})
    return outcome if logger.startswith(outcome.family + ".") else None


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _printable(text: str) -> str:
    """JSON may spell half of a surrogate pair, which no encoding can write."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _goes_on(first: Record, text: str) -> bool:
    """Whether a record can be the rest of a name that `first` began, or of a line that a console wrapped."""
    return text.startswith(_WRAPPED_NEXT) or (is_unfinished(first.text) and not _starts_record(text))


def _starts_record(text: str) -> bool:
    if _RECORD_START.match(text):
        return True
    opening = OPENING.search(text[: lineprefix.LONGEST + 64])
    return opening is not None and _may_begin(text[: opening.start()], opening[0])


def _unreadable(why: str) -> Message:
    return Message(EventKind.UNREADABLE, {"detail": why})
