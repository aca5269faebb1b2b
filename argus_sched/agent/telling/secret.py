"""A value that must never be printed: the bot's token, an address that carries a password."""

from __future__ import annotations

import logging
import re

MASK = "***"
# A bot token: the bot's number, a colon, the key. The only part of a Bot API address that is secret.
TOKEN_PATTERN = re.compile(r"[0-9]{6,}:[A-Za-z0-9_-]{30,}")


class Secret:
    """Holds a text; only `reveal` gives it back, and whatever prints the object prints a mask.

    `parts` are pieces of the text that are as secret as the whole.
    """

    __slots__ = ("_hidden", "_value")

    def __init__(self, value: str, *parts: str) -> None:
        self._value = value
        # The longest first: a piece that is masked before leaves the rest of the whole to be read.
        self._hidden = sorted({value, *parts} - {""}, key=len, reverse=True)

    def reveal(self) -> str:
        """The text itself, for the one call that needs it."""
        return self._value

    def redact(self, text: str) -> str:
        """`text` with the value, its parts, and everything that looks like a bot token masked."""
        for hidden in self._hidden:
            text = text.replace(hidden, MASK)
        return TOKEN_PATTERN.sub(MASK, text)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a secret cannot be pickled or copied into another process")


class RedactingFilter(logging.Filter):
    """Masks a secret in every record that passes; never drops one."""

    def __init__(self, secret: Secret) -> None:
        super().__init__()
        self._secret = secret

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except Exception:
            return True  # arguments that do not fit; the handler says so
        hidden = self._secret.redact(message)
        if hidden != message:
            record.msg, record.args = hidden, None
        return True


def guard_logs(secret: Secret, *loggers: str) -> None:
    """Put a redacting filter on these loggers and on the handlers of the root logger.

    A logger's filter sees only what is logged on that very logger, so those that print addresses are named.
    """
    mask = RedactingFilter(secret)
    for name in loggers:
        logging.getLogger(name).addFilter(mask)
    for handler in logging.getLogger().handlers:
        handler.addFilter(mask)
