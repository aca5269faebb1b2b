"""Messages to a stream: for a demonstration, and for a timer whose output is mailed."""

from __future__ import annotations

import sys
from typing import TextIO

from argus_sched.agent.telling.messages import NO_LIMIT, Message
from argus_sched.agent.telling.notify_ports import Accepted, Route, UnreachableError


class StdoutNotifier:
    """Writes the text of each message, and an empty line."""

    name = "stdout"
    chat = "-"
    limit = NO_LIMIT
    repeats = False
    trouble = ""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout

    def send(self, message: Message, route: Route) -> Accepted:
        """Write the message; a closed stream is UnreachableError."""
        try:
            print((message.short if route.plain else message.text) + "\n", file=self._stream, flush=True)
        except (OSError, ValueError) as error:
            raise UnreachableError(f"standard output takes nothing: {error}") from error
        return Accepted()

    def close(self) -> None:
        """Leave the stream to its owner."""
