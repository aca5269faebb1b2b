"""What is asked of a Docker daemon: its containers, one of them, a log (https://docs.docker.com/engine/api)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

Dated = Callable[[str | None], None]  # told the Date header of each answer


class RefusedError(Exception):
    """The daemon answered, with an HTTP status of 400 or more and its own words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class AbsentError(Exception):
    """No connection to the daemon; the cause says why."""


class LogBody(Protocol):
    """The answer to a request for a log, as it arrives."""

    def blocks(self) -> Iterator[bytes]:
        """Its bytes, in pieces of any size."""
        ...

    def cut(self) -> None:
        """End the connection, also under a thread that reads."""
        ...

    def close(self) -> None:
        """Drop what is left."""
        ...


class Engine(Protocol):
    """A daemon that has said which version of the API it speaks."""

    def listed(self, labels: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Every container with all these labels (`name` or `name=value`), stopped ones too."""
        ...

    def inspected(self, name: str) -> Mapping[str, Any]:
        """One container, by name or id."""
        ...

    def log(self, container_id: str, tail: int, seconds: float) -> LogBody:
        """The last `tail` records with their stamps; no byte of it may take more than `seconds`."""
        ...

    def close(self) -> None:
        """Give the connections back."""
        ...
