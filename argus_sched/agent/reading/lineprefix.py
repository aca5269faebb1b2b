"""What may stand before a scheduler's message: a logging prefix, and never prose that quotes one.

A prefix is what a formatter printed: stamps, levels, numbers, module and thread names, separators, and the
logger's name. Text that merely mentions a run (a ticket, SQL, a chat) betrays itself by quotes, by a foreign
logger's dotted name, or by sentences.
"""

from __future__ import annotations

import re

LONGEST = 512

_QUOTES = frozenset("\"'`\u2018\u2019\u201c\u201d")
_ENDS = frozenset(" \t:|]>)-*")
# A name with dots is a logger's name unless it is a source file (base.py:129).
_DOTTED = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
# Host names may hold dots, so syslog's and compose's own heads are taken off first.
_HEAD = re.compile(
    r"(?:[\w-]{1,80} +\| )?(?:<\d{1,3}>)?"
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,255} |"
    r"\d{4}-\d\d-\d\dT\S{8,30} [\w.-]{1,255} (?=[\w./-]{1,80}\[\d))?"
)
# OpenTelemetry's formatter prints [trace_id=0 span_id=0 resource.service.name=labs].
_GROUP = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|<[^<>]*>")
_PAIR = re.compile(r"[\w.]+=[^\s\]\[]*")
_WORD = re.compile(r"[^\s|:\[\]()<>,;*]+")
_LAST_WORD = re.compile(r"([^\s|:\[\]()<>,;*]+)\s+\Z")
# Words that formatters print: levels, calendar, zones, Flask's "in", and the names APScheduler's own
# modules, threads and default executor have.
_LEVELS = "trace debug info notice warn warning error err critical crit fatal success"
_CALENDAR = "mon tue wed thu fri sat sun jan feb mar apr may jun jul aug sep oct nov dec am pm"
_ZONES = "utc gmt z cet cest eet eest wet west bst ist msk est edt cst cdt mst mdt pst pdt jst"
_PROGRAM = "in base scheduler default root main job mainthread mainprocess apscheduler"
_FORMATTER_WORDS = frozenset(f"{_LEVELS} {_CALENDAR} {_ZONES} {_PROGRAM}".split())


def is_prefix(text: str, family: str) -> bool:
    """Whether `text` is a logging prefix whose logger, where it names one, is `family` or below it."""
    if not text:
        return True
    if len(text) > LONGEST or text[-1] not in _ENDS or not _QUOTES.isdisjoint(text):
        return False
    body = text[_head_length(text) :]
    bare = _GROUP.sub(" | ", body)
    return "=" not in bare and _only_family(body, family) and not _is_prose(bare)


def names(text: str, family: str) -> bool:
    """Whether the prefix names a logger of `family`."""
    return any(name.startswith(family + ".") for name in _DOTTED.findall(text))


def _head_length(text: str) -> int:
    match = _HEAD.match(text)
    return match.end() if match else 0


def _only_family(text: str, family: str) -> bool:
    names_found = _DOTTED.findall(_GROUP.sub(lambda group: _PAIR.sub("", group[0]), text))
    return all(name.startswith(family + ".") or name.endswith(".py") for name in names_found)


def _is_prose(text: str) -> bool:
    last = _LAST_WORD.search(text[-80:])
    if last is not None and _is_plain(last[1]):
        return True
    return sum(map(_is_plain, _WORD.findall(text))) > 1


def _is_plain(word: str) -> bool:
    return word.isalpha() and word.lower() not in _FORMATTER_WORDS
