"""What telling needs from the outside, and every way a channel can refuse."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from argus_sched.agent.check import OwnState, PassReport
from argus_sched.agent.telling.messages import Message
from argus_sched.errors import DeliveryError


class RefusedError(DeliveryError):
    """Permanent until a person acts: a wrong token, a bot that was thrown out, a chat that is gone."""


class UnreachableError(DeliveryError):
    """For now: no network, a time-out, a server in trouble. What timed out may have been delivered."""


class ThrottledError(DeliveryError):
    """Too many messages; `seconds` is how long the server wants to be left alone."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class MovedError(DeliveryError):
    """The chat has another id now."""

    def __init__(self, message: str, chat: str) -> None:
        super().__init__(message)
        self.chat = chat


class TopicGoneError(DeliveryError):
    """The chat is there and its topic is not."""


class ContentRefusedError(DeliveryError):
    """The server takes messages and not this one."""


@dataclass(frozen=True)
class Accepted:
    """The channel has the message; `message_id` lets a later one reply to it."""

    message_id: str | None = None


@dataclass(frozen=True)
class Route:
    """Where in the channel: the chat it moved to (None: the chat of the settings), in its topic or not, as a
    reply or not; `plain` asks for the short text without entities."""

    moved_to: str | None = None
    in_topic: bool = True
    reply_to: str | None = None
    plain: bool = False


class Notifier(Protocol):
    """One channel."""

    @property
    def name(self) -> str:
        """The channel's word in notices, logs and metrics: telegram, webhook, alertmanager, stdout."""
        ...

    @property
    def chat(self) -> str:
        """The place the settings name, in words without a secret; what is learnt of it is kept under this."""
        ...

    @property
    def limit(self) -> int:
        """How long one message may be, in UTF-16 units."""
        ...

    @property
    def repeats(self) -> bool:
        """Whether it wants what is still wrong on every pass, not only what changed."""
        ...

    @property
    def trouble(self) -> str:
        """Why nothing can be sent, as far as it shows without trying; else empty."""
        ...

    def send(self, message: Message, route: Route) -> Accepted:
        """Hand one message over, in one attempt with short time-outs; raises a DeliveryError."""
        ...

    def close(self) -> None:
        """Give connections back."""
        ...


class Transactions(Protocol):
    """The store, as far as telling needs it."""

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection inside a write transaction: committed at the end, rolled back on an error."""
        ...


class Teller(Protocol):
    """What the runner tells about a pass."""

    def decide(self, connection: sqlite3.Connection, report: PassReport, now: datetime) -> None:
        """Record inside the caller's transaction what the pass changes, and who must be told."""
        ...

    def deliver(self, now: datetime) -> Sequence[str]:
        """Send what is owed, after the commit; the problems, one sentence each."""
        ...

    def tell_unsaved(self, report: PassReport, now: datetime) -> Sequence[str]:
        """Tell of a pass whose store could not be written; the problems, one sentence each."""
        ...

    def own_state(self) -> OwnState:
        """What is owed and was left out, after the delivery; raises StoreError."""
        ...

    def close(self) -> None:
        """Give the channels' connections back."""
        ...
