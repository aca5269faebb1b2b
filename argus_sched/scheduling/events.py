"""Structured log events: one name and its fields, on the log and for a listener."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

Listener = Callable[[str, Mapping[str, Any]], None]

_log = logging.getLogger("argus_sched.scheduling.events")

# What happens at every fire is for debugging; what a person should notice is a warning; the rest informs.
_LEVELS = {
    "fire_won": logging.DEBUG,
    "fire_lost": logging.DEBUG,
    "run_finished": logging.DEBUG,
    "fire_missed": logging.WARNING,
    "fire_skipped_overlap": logging.WARNING,
    "fire_interrupted": logging.ERROR,
    "claim_unknown": logging.WARNING,
    "store_away": logging.WARNING,
    "clock_differs": logging.WARNING,
    "unguarded": logging.WARNING,
    "engine_failed": logging.ERROR,
    "schedule_set_differs": logging.WARNING,
}


class Events:
    """Emits events: a line `event key=value …`, whose record carries `event` and `fields`, and a call."""

    def __init__(self, listener: Listener | None = None, **common: Any) -> None:
        self._listener = listener
        self._common = common

    def __call__(self, event: str, fields: Mapping[str, Any] | None = None) -> None:
        """Emit one event; a listener that fails is logged and harms nothing."""
        level = _LEVELS.get(event, logging.INFO)
        if self._listener is None and not _log.isEnabledFor(level):
            return
        whole = {**self._common, **(fields or {})}
        if _log.isEnabledFor(level):
            text = " ".join(f"{name}={_text(value)}" for name, value in whole.items())
            _log.log(level, "%s %s", event, text, extra={"event": event, "fields": whole})
        if self._listener is not None:
            try:
                self._listener(event, whole)
            except Exception:
                _log.exception("the event listener failed at %s", event)


def _text(value: Any) -> str:
    text = str(value.isoformat() if hasattr(value, "isoformat") else value)
    return repr(text) if not text or any(character.isspace() for character in text) else text
