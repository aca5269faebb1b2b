"""Secrets by the name of a variable or the path of a file; their values stand in no YAML and no message."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from argus_sched.errors import SettingsError


class Environment(Mapping[str, str]):
    """The process's variables, whose values nothing shows that prints this object, as os.environ would."""

    def __getitem__(self, name: str) -> str:
        return os.environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)

    def __repr__(self) -> str:
        return f"Environment({len(self)} variables)"


def read_secret(variable: str | None, path: str | None, environ: Mapping[str, str], meaning: str) -> str:
    """The value of `variable`, or the content of the file at `path`, without surrounding white space.

    `meaning` says what it is for, as in "the DSN of labs". Raises SettingsError when it is absent or empty.
    """
    if variable is not None:
        found = environ.get(variable, "").strip()
        if not found:
            raise SettingsError(f"the variable {variable} is not set: it must hold {meaning}")
        return found
    return _content(path or "", meaning)


def _content(path: str, meaning: str) -> str:
    try:
        found = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise SettingsError(f"the file {path} with {meaning} cannot be read: {reason}") from None
    if not found:
        raise SettingsError(f"the file {path} is empty: it must hold {meaning}")
    return found
