"""YAML as values that know their place, with the surprises of YAML 1.1 told instead of converted.

`yes` would be True, `010` would be 8, `12:30` would be 750 and a bare date an object. So nothing is converted
here: a scalar keeps its text and what YAML takes it for, and whoever reads a field decides. The only importer
of PyYAML; its C loader composes nodes (5,000 jobs in 0.2 s), so no tag can construct anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from argus_sched.agent.config.problems import Problems
from argus_sched.agent.config.variables import escape, substitute
from argus_sched.errors import MissingExtraError

try:
    import yaml
except ImportError as error:
    raise MissingExtraError("pyyaml", "agent") from error

LARGEST_FILE = 16 * 1024 * 1024
MOST_VALUES = 500_000  # aliases of aliases multiply: a few hundred bytes can name a billion values
DEEPEST = 30
LONGEST_SHOWN = 80

BROKEN = "broken"
_TAG = "tag:yaml.org,2002:"
_KINDS = {
    "str": "text",
    "merge": "text",
    "value": "text",
    "int": "number",
    "float": "number",
    "bool": "boolean",
    "null": "null",
    "timestamp": "date",
}

# Sections in which a slip puts a password or a token where something else is expected. The whole document is
# one more: a file of secrets is easily named instead of the file that names it.
_SECRET = ("", "database", "databases", "telegram", "webhook", "alertmanager", "heartbeat_url")
_KEY = re.compile(r"[a-z_]{1,30}")
HIDDEN = "***"
_SORTS = {"number": "a number", "boolean": "true or false", "null": "nothing", "date": "a date"}


@dataclass(frozen=True, slots=True)
class Scalar:
    """One word or number: `text` has its variables replaced, `written` is what messages may show.

    `kind` is what YAML 1.1 takes it for: text, number, boolean, date or null; `variable` when part of it came
    from the environment, which knows no types; `broken` when it was reported already. Of a `secret` one
    messages tell no more than that.
    """

    line: int
    path: str
    text: str
    written: str
    kind: str
    secret: bool = False

    def __str__(self) -> str:
        if self.secret or self.kind == "null":
            return _SORTS.get(self.kind, "text")
        written = (
            repr(self.written) if self.kind in ("text", "variable") else f"the {self.kind} {self.written}"
        )
        return shorten(written)


@dataclass(frozen=True, slots=True)
class Keyed:
    """A mapping; a key is its text as written, so `on` and `1` are keys like any other."""

    line: int
    path: str
    items: dict[str, Value]

    def __str__(self) -> str:
        return "a mapping"


@dataclass(frozen=True, slots=True)
class Listed:
    """A list."""

    line: int
    path: str
    items: tuple[Value, ...]

    def __str__(self) -> str:
        return "a list"


Value = Scalar | Keyed | Listed


def shorten(text: str) -> str:
    """`text`, cut in the middle where it would fill a message of its own."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 10]}…{text[-9:]}"


def read_yaml(path: str, environ: Mapping[str, str], problems: Problems) -> Value | None:
    """The one document of the file at `path`; None when there is none, and then `problems` says why."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        problems.add(1, "", f"cannot be read: {getattr(error, 'strerror', None) or error}")
        return None
    if len(data) > LARGEST_FILE:
        problems.add(1, "", f"is larger than {LARGEST_FILE} bytes")
        return None
    return parse_yaml(data, environ, problems)


def parse_yaml(data: bytes, environ: Mapping[str, str], problems: Problems) -> Value | None:
    """The one document in `data`, as `read_yaml` reads it."""
    try:
        root = yaml.compose(data.decode(), Loader=yaml.CSafeLoader)
    except UnicodeDecodeError as error:
        problems.add(data.count(b"\n", 0, error.start) + 1, "", "is not UTF-8 here: save the file as UTF-8")
    except yaml.reader.ReaderError as error:
        line = data.count(b"\n", 0, error.position) + 1
        problems.add(line, "", f"is not YAML: {error.reason}")
    except yaml.MarkedYAMLError as error:
        line, message = _syntax(error)
        problems.add(line, "", message)
    else:
        if root is not None:
            return _Walk(environ, problems).value(root)
        problems.add(1, "", "holds no settings, only comments or nothing: write some, or name another file")
    return None


def _syntax(error: yaml.MarkedYAMLError) -> tuple[int, str]:
    """The line the parser stumbled in, and what over, with the line in which the construct began."""
    mark, begin, context = error.problem_mark or error.context_mark, error.context_mark, error.context
    line = mark.line + 1 if mark else 1
    if context and begin and begin.line + 1 != line:
        context = f"{context} that began in line {begin.line + 1}"
    return line, f"is not YAML: {', '.join(filter(None, (context, error.problem)))}"


def quoted(text: str) -> str:
    """`text` as a YAML string in double quotes on one line, which reads back as `text` here."""
    dumped: str = yaml.dump(escape(text), default_style='"', allow_unicode=True, width=float("inf"))
    return dumped.rstrip("\n")


def _is_secret(path: str) -> bool:
    return re.split(r"[.\[]", path, maxsplit=1)[0] in _SECRET


def _word(key: str, path: str) -> str:
    """`key` as messages show it; where secrets are near, a slip of `:` makes one of them a key."""
    if path and _is_secret(path) and not _KEY.fullmatch(key):
        return HIDDEN
    return key if key.isprintable() else ascii(key)


class _Walk:
    """One pass over composed nodes that counts what it builds; what it reports becomes a `broken` scalar."""

    def __init__(self, environ: Mapping[str, str], problems: Problems) -> None:
        self._environ = environ
        self._problems = problems
        self._count = 0

    def value(self, node: yaml.Node, path: str = "", depth: int = 0, line: int | None = None) -> Value:
        """`node` with its place; what a key holds has the key's line."""
        line = line or node.start_mark.line + 1
        self._count += 1
        if depth > DEEPEST:
            return self._broken(line, path, f"is nested deeper than {DEEPEST} levels, or refers to itself")
        if self._count == MOST_VALUES:
            return self._broken(line, path, f"is one value more than a file may hold ({MOST_VALUES})")
        if self._count > MOST_VALUES:
            return Scalar(line, path, "", "", BROKEN)
        if isinstance(node, yaml.MappingNode):
            return Keyed(line, path, self._entries(node, path, depth))
        if isinstance(node, yaml.SequenceNode):
            items = [self.value(item, f"{path}[{n}]", depth + 1) for n, item in enumerate(node.value)]
            return Listed(line, path, tuple(items))
        return self._scalar(node, path, line)

    def _entries(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Value]:
        items: dict[str, Value] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._problems.add(line, path, "a key must be one word")
                continue
            key = key_node.value
            word = _word(key, path)
            place = f"{path}.{word}" if path else word
            if key in items:
                self._problems.add(line, place, f"is given twice, first in line {items[key].line}")
                continue
            items[key] = self.value(value_node, place, depth + 1, line)
        return items

    def _scalar(self, node: yaml.Node, path: str, line: int) -> Scalar:
        kind = _KINDS.get(node.tag.removeprefix(_TAG))
        if kind is None or not node.tag.startswith(_TAG):
            return self._broken(line, path, f"has the unknown tag {shorten(repr(node.tag))}: remove it")
        written = node.value
        try:
            text = substitute(written, self._environ)
        except ValueError as error:
            return self._broken(line, path, str(error))
        return Scalar(line, path, text, written, kind if text == written else "variable", _is_secret(path))

    def _broken(self, line: int, path: str, message: str) -> Scalar:
        self._problems.add(line, path, message)
        return Scalar(line, path, "", "", BROKEN)
