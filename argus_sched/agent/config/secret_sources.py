"""Secrets by the name of a variable or the path of a file; their values stand in no YAML and no message."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from argus_sched.errors import SettingsError


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
