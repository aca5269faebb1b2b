"""What one value of a file must be: each function returns it converted, or raises WrongValueError."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from argus_sched import due_times
from argus_sched.advisory_keys import MAX_KEY, MIN_KEY
from argus_sched.agent.config.durations import parse_duration
from argus_sched.agent.config.problems import WrongValueError
from argus_sched.agent.config.sections import suggestion
from argus_sched.agent.config.yaml_nodes import Scalar, Value
from argus_sched.agent.reading.loglines import clean

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,30})")
_APP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# systemd.unit(5); no wildcard: what it matches changes under the reader's hands.
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]{0,254}")
_UNIT_SUFFIXES = (".service", ".scope", ".socket", ".timer", ".target", ".mount", ".path", ".slice")
# White space and control characters in a URL; a password with a bare / or ?, which spills into the path.
_MISPLACED = re.compile(r"[\x00-\x20\x7f]|^[^:]*://[^/?#@]*:[^/?#@]*[/?#].*@")
_BOOLEANS = {"true": True, "false": False}
_SWITCHES = {**_BOOLEANS, "1": True, "0": False, "yes": True, "no": False, "on": True, "off": False}


def text(value: Value) -> str:
    """Text that is not blank."""
    if not isinstance(value, Scalar):
        raise WrongValueError(f"expected text, got {value}")
    if value.kind not in ("text", "variable"):
        raise WrongValueError(
            f"expected text, got {value}" + ("" if value.kind == "null" else ": put it in quotes")
        )
    if not value.text.strip():
        raise WrongValueError("must not be empty")
    return value.text


def one_line(value: Value) -> str:
    """Text without control characters, as ids are."""
    found = text(value)
    if not found.isprintable():
        raise WrongValueError(f"must hold no control characters, got {value}")
    return found


def job_name(value: Value) -> str:
    """A job's name as its log lines show it. It may be long and of several lines."""
    found = text(value)
    if "\x1b" in found and clean(found.encode(errors="replace")) != found:
        raise WrongValueError(
            "must hold no escape sequence: colours are taken out of the log's lines, so leave them out here"
        )
    return found


def app_name(value: Value) -> str:
    """An application's name: it begins every target and is a label of every metric."""
    found = text(value)
    if not _APP.fullmatch(found):
        raise WrongValueError(f"must be up to 63 letters, digits, '-', '_' or '.', got {value}")
    return found


def unit_name(value: Value) -> str:
    """The full name of a systemd unit; as systemctl has it, one without a suffix is a service."""
    found = text(value)
    if not _UNIT.fullmatch(found):
        raise WrongValueError(f"expected the name of a systemd unit, such as labs.service, got {value}")
    return found if found.endswith(_UNIT_SUFFIXES) else f"{found}.service"


def variable_name(value: Value) -> str:
    """The name of an environment variable."""
    found = text(value)
    if not _VARIABLE.fullmatch(found):
        raise WrongValueError("must be the name of an environment variable, not its value")
    return found


def whole(value: Value) -> int:
    """A whole number in plain decimal: `010` is 8 and `1_000` is 1000 to YAML, so both are refused."""
    if not (
        isinstance(value, Scalar) and value.kind in ("number", "variable") and _WHOLE.fullmatch(value.text)
    ):
        raise WrongValueError(f"expected a whole number in plain decimal, got {value}")
    return int(value.text)


def whole_between(lowest: int, highest: int) -> Callable[[Value], int]:
    """A converter for a whole number from `lowest` to `highest`."""

    def convert(value: Value) -> int:
        found = whole(value)
        if not lowest <= found <= highest:
            raise WrongValueError(f"must be from {lowest} to {highest}, got {value}")
        return found

    return convert


def lock_key(value: Value) -> int:
    """An advisory lock key, any bigint."""
    found = whole(value)
    if not MIN_KEY <= found <= MAX_KEY:
        raise WrongValueError(f"is outside the range of a bigint: {value}")
    return found


def switch(value: Value) -> bool:
    """`true` or `false`; out of the environment also `1`, `0`, `yes`, `no`, `on` and `off`."""
    if isinstance(value, Scalar):
        words = {"boolean": _BOOLEANS, "variable": _SWITCHES}.get(value.kind, {})
        found = words.get(value.text.lower())
        if found is not None:
            return found
    raise WrongValueError(f"expected true or false, got {value}")


def duration(value: Value) -> timedelta:
    """A length above zero."""
    if not isinstance(value, Scalar) or value.kind not in ("text", "variable"):
        raise WrongValueError(f"expected a duration such as 90s, 15m, 26h or 1d, got {value}")
    return parse_duration(value.text)


def timezone(value: Value) -> str:
    """The name of a time zone this machine knows."""
    found = text(value)
    due_times.cron("0 0 * * *", found)
    return found


def url(value: Value) -> str:
    """An http or https URL; a password in it must come from the environment."""
    found = text(value)
    parts = _url_parts(found)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise WrongValueError(f"expected an http or https URL, got {value}")
    if _MISPLACED.search(found) or not (parts.path + parts.query).isascii():
        raise WrongValueError(
            "special characters of a URL must be percent-encoded: @ is %40, / in a password %2F, a blank %20"
        )
    if parts.password and isinstance(value, Scalar) and value.kind == "text":
        raise WrongValueError(
            "a password must not stand in YAML: take the URL from the environment with ${NAME}"
        )
    return found


def _url_parts(text: str) -> SplitResult | None:
    """The parts of a URL; None for what is none, such as one whose port is no number."""
    try:
        parts = urlsplit(text)
        return parts if parts.port is None or parts.port else None
    except ValueError:
        return None


def path_from(folder: Path) -> Callable[[Value], str]:
    """A converter for a path; a relative one starts at `folder`, never at the working directory."""

    def convert(value: Value) -> str:
        found = text(value)
        if "\0" in found:
            raise WrongValueError("must hold no NUL character, which no path can have")
        try:
            return str(folder / Path(found).expanduser())
        except RuntimeError:
            raise WrongValueError("begins in a home folder that is not known: write the whole path") from None

    return convert


def one_of(*words: str) -> Callable[[Value], str]:
    """A converter for one of `words`."""

    def convert(value: Value) -> str:
        found = text(value)
        if found not in words:
            raise WrongValueError(f"{value} is not known{suggestion(found, words)}")
        return found

    return convert
