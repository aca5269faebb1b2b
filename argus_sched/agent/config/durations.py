"""Durations as people write them: `90s`, `15m`, `26h`, `1d`, `1h30m`, `0.5s`."""

from __future__ import annotations

import re
from datetime import timedelta

# Ten years: every instant plus a duration still fits a datetime.
LONGEST = timedelta(days=3660)

_PATTERN = re.compile(
    r"(?:(?P<days>[0-9]{1,8})d)?"
    r"(?:(?P<hours>[0-9]{1,8})h)?"
    r"(?:(?P<minutes>[0-9]{1,8})m)?"
    r"(?:(?P<seconds>[0-9]{1,12}(?:\.[0-9]{1,6})?)s)?"
)


def parse_duration(text: str) -> timedelta:
    """The length `text` names, always above zero.

    Units are d, h, m and s, each at most once and in this order; only seconds may have a fraction.
    Raises ValueError with a sentence for anything else, and above ten years.
    """
    match = _PATTERN.fullmatch(text)
    if match is None or not text:
        raise ValueError(f"expected a duration such as 90s, 15m, 26h, 1d or 1h30m, got {text!r}")
    length = timedelta(**{unit: float(number) for unit, number in match.groupdict(default="0").items()})
    if not length:
        raise ValueError(f"a duration must be above zero, got {text!r}")
    if length > LONGEST:
        raise ValueError(f"a duration must not exceed {LONGEST.days}d, got {text!r}")
    return length


def format_duration(length: timedelta) -> str:
    """`length` in the same words, `1h30m`, `26h` or `0.5s`; `parse_duration` reads it back.

    Days are used for whole days only: people write 26h, not 1d2h.
    """
    seconds, micros = length.days * 86400 + length.seconds, length.microseconds
    days, seconds = (0, seconds) if seconds % 86400 or micros else divmod(seconds, 86400)
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    parts = [(days, "d"), (hours, "h"), (minutes, "m")]
    whole = "".join(f"{count}{unit}" for count, unit in parts if count)
    return whole + (f"{seconds}{fraction}s" if seconds or micros or not whole else "")
