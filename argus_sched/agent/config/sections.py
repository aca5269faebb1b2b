"""Reading one mapping of a file: each key is asked for once, what is wrong is noted, and reading goes on.

A reader asks for its keys in order and then calls `finish`, which reports every key that nobody asked for.
After a problem the reader holds a harmless blank, so one run finds all problems; whoever started the reading
discards the result when there were any.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from argus_sched.agent.config.problems import Problems, WrongValueError
from argus_sched.agent.config.yaml_nodes import BROKEN, Keyed, Listed, Scalar, Value, read_yaml, shorten
from argus_sched.errors import JobError

T = TypeVar("T")
D = TypeVar("D")


class Section:
    """One mapping being read."""

    def __init__(self, value: Keyed, problems: Problems) -> None:
        self._value = value
        self._problems = problems
        self._known: list[str] = []

    @property
    def line(self) -> int:
        """The line the mapping begins in."""
        return self._value.line

    def has(self, key: str) -> bool:
        """Whether the file gives `key`; does not count as asking for it."""
        return key in self._value.items

    def get(self, key: str, convert: Callable[[Value], T], default: D) -> T | D:
        """The value of `key` as `convert` makes it, or `default` when it is absent or wrong."""
        self._known.append(key)
        value = self._value.items.get(key)
        return default if value is None else self._converted(value, convert, default)

    def need(self, key: str, convert: Callable[[Value], T], blank: T) -> T:
        """The same for a key that must be there; `blank` after a problem."""
        if not self.has(key):
            self.add(key, "is missing")
        return self.get(key, convert, blank)

    def sub(self, key: str) -> Section | None:
        """The mapping under `key`; None when it is absent or no mapping."""
        found = self.get(key, keyed, None)
        return None if found is None else Section(found, self._problems)

    def each(
        self, key: str, convert: Callable[[Value], T], default: tuple[T, ...], noun: str = ""
    ) -> tuple[T, ...]:
        """The values of the list under `key`, each as `convert` makes it; wrong ones are left out.

        With a `noun`, which is what an entry is, an empty list is reported.
        """
        found = self.get(key, listed, None)
        if found is None:
            return default
        if noun and not found:
            self.add(key, f"needs at least one {noun}")
        values = [self._converted(item, convert, None) for item in found]
        return tuple(value for value in values if value is not None)

    def subs(self, key: str) -> list[Section]:
        """The mappings of the list under `key`; entries of another shape are reported and left out."""
        return [Section(found, self._problems) for found in self.each(key, keyed, ())]

    def named(self, name: Callable[[Value], str]) -> list[tuple[str, Section]]:
        """The mappings that this one holds under names of the writer's choice, each as `name` checks it."""
        found = []
        for key, value in self._value.items.items():
            self._known.append(key)
            checked = self._converted(Scalar(value.line, value.path, key, key, "text"), name, None)
            entry = self._converted(value, keyed, None)
            if checked and entry:
                found.append((checked, Section(entry, self._problems)))
        return found

    def need_subs(self, key: str, noun: str) -> list[Section]:
        """The same, with a report when there is not a single entry; `noun` is what an entry is."""
        sections = self.subs(key)
        value = self._value.items.get(key)
        if value is None or (isinstance(value, Listed) and not value.items):
            self.add(key, f"needs at least one {noun}")
        return sections

    def add(self, key: str, message: str) -> None:
        """Report a problem at `key`, or at the mapping's own line when it is absent; "" is the mapping."""
        self._problems.add(*self._place(key), message)

    def warn(self, key: str, message: str) -> None:
        """Report a warning at `key`."""
        self._problems.warn(*self._place(key), message)

    def refuse(self, key: str, message: str) -> None:
        """Report `message` when `key` is given: a known mistake, worth more than "unknown key"."""
        if self.has(key):
            self._known.append(key)
            self.add(key, message)

    def only_one_of(self, *keys: str, required: bool = True) -> None:
        """Report when more than one of `keys` is given, or none although one is required."""
        given = [key for key in keys if self.has(key)]
        if len(given) > 1:
            self.add(given[1], f"is given beside {given[0]}: keep one of them")
        elif required and not given:
            self.add("", f"needs {' or '.join(keys)}")

    def finish(self) -> None:
        """Report the keys nobody asked for, with a suggestion where one looks like a known key."""
        for key, value in self._value.items.items():
            if key not in self._known:
                self._problems.add(value.line, value.path, f"unknown key{suggestion(key, self._known)}")

    def _converted(self, value: Value, convert: Callable[[Value], T], default: D) -> T | D:
        if isinstance(value, Scalar) and value.kind == BROKEN:
            return default
        try:
            return convert(value)
        except (ValueError, JobError) as error:
            self._problems.add(value.line, value.path, _without_secrets(str(error), value))
            return default

    def _place(self, key: str) -> tuple[int, str]:
        found = self._value.items.get(key)
        if found is not None:
            return found.line, found.path
        return self._value.line, ".".join(filter(None, (self._value.path, key)))


def read_section(path: str, environ: Mapping[str, str], problems: Problems) -> Section | None:
    """The file at `path` as one mapping; None when it is none, and then `problems` says why."""
    root = read_yaml(path, environ, problems)
    if isinstance(root, Keyed):
        return Section(root, problems)
    if root is not None and not problems.errors:
        problems.add(root.line, "", f"expected a mapping of keys and values, got {root}")
    return None


class Unique:
    """Words that must differ, for example the ids of a pack's jobs; remembers where each was first given."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._first: dict[str, int] = {}

    def claim(self, word: str, section: Section, key: str) -> None:
        """Report at `key` when `word` was claimed before; the empty blank of a wrong value never counts."""
        if word in self._first:
            section.add(
                key, f"the {self._noun} {shorten(repr(word))} is taken since line {self._first[word]}"
            )
        elif word:
            self._first[word] = section.line


def suggestion(word: str, known: Iterable[str]) -> str:
    """`, did you mean 'every'?` when a known word is close, else the list of known words."""
    words = list(dict.fromkeys(known))
    close = difflib.get_close_matches(word, words, n=1)
    return f", did you mean {close[0]!r}?" if close else f"; known here: {', '.join(words)}"


def _without_secrets(message: str, value: Value) -> str:
    """`message` with the value as the file writes it: what a variable holds may be a password."""
    if not isinstance(value, Scalar) or value.kind != "variable" or not value.text:
        return message
    return message.replace(repr(value.text), repr(value.written)).replace(value.text, value.written)


def keyed(value: Value) -> Keyed:
    """The mapping itself."""
    if not isinstance(value, Keyed):
        raise WrongValueError(f"expected a mapping, got {value}")
    return value


def listed(value: Value) -> tuple[Value, ...]:
    """The values of a list."""
    if not isinstance(value, Listed):
        raise WrongValueError(f"expected a list, got {value}")
    return value.items
