"""Messages by a Telegram bot: the only module that knows python-telegram-bot.

The library prints the token in several places: in `repr(Bot)`, in the log of httpx, in the `request` of an
exception's cause, in the local variables of every frame of a traceback. So the token lives in a Secret, the
loggers are quiet and masked, and an attempt ends in a value: what `send` raises was never raised inside the
library, has no cause, and its traceback begins here.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from argus_sched.agent.config.channels import TelegramSettings
from argus_sched.agent.telling.messages import TELEGRAM_LIMIT, Message
from argus_sched.agent.telling.notify_ports import (
    Accepted,
    ContentRefusedError,
    MovedError,
    RefusedError,
    Route,
    ThrottledError,
    TopicGoneError,
    UnreachableError,
)
from argus_sched.agent.telling.secret import Secret, guard_logs
from argus_sched.errors import DeliveryError, MissingExtraError, SettingsError

if TYPE_CHECKING:
    import telegram

_TOPIC = ("message thread not found", "topic_deleted", "topic_closed", "topic_id_invalid")
_CHAT = (
    "chat not found",
    "user not found",
    "chat_id is empty",
    "peer_id_invalid",
    "chat_id_invalid",
    "not enough rights",
    "have no rights",
    "need administrator rights",
    "chat_write_forbidden",
    "chat_restricted",
    "was deactivated",
    "was upgraded to a supergroup",
)


@dataclass(frozen=True)
class Timeouts:
    """Seconds. The library's own start again with each byte, so a server that drips needs `whole`."""

    connect: float = 4.0
    read: float = 8.0
    whole: float = 9.0


class TelegramNotifier:
    """One bot in one chat. Not thread-safe; a bot belongs to its event loop, so there is one of each."""

    name = "telegram"
    limit = TELEGRAM_LIMIT
    repeats = False

    def __init__(
        self, settings: TelegramSettings, environ: Mapping[str, str], timeouts: Timeouts | None = None
    ) -> None:
        self._settings = settings
        self._timeouts = timeouts or Timeouts()
        self._environ = environ
        self._token = Secret("")
        self._runner: asyncio.Runner | None = None
        self._bot: telegram.Bot | None = None
        topic = settings.thread_id
        self.chat = settings.chat_id if topic is None else f"{settings.chat_id}/{topic}"

    def __repr__(self) -> str:
        return f"TelegramNotifier(chat={self.chat!r})"

    @property
    def trouble(self) -> str:
        """That the token is not there: told on every pass, not with the first alert that cannot go out."""
        try:
            self._settings.token_of(self._environ)
        except SettingsError as error:
            return str(error)
        return ""

    def send(self, message: Message, route: Route) -> Accepted:
        """Send one message, in one request; raises a DeliveryError without cause or foreign frames."""
        outcome = self._outcome(message, route)
        if isinstance(outcome, DeliveryError):
            raise outcome
        return outcome

    def close(self) -> None:
        """Close the connections and the event loop."""
        if self._runner is not None and self._bot is not None:
            self._runner.run(self._bot.request.shutdown())
            self._runner.close()
        self._runner = self._bot = None

    def _outcome(self, message: Message, route: Route) -> Accepted | DeliveryError:
        found = self._attempt(message, route)
        if isinstance(found, Accepted | DeliveryError):
            return found
        return meaning(found, self._token, self.chat)

    def _attempt(self, message: Message, route: Route) -> Accepted | Exception:
        """What came of it, an error as a value: its meaning is found where no variable shows the bot."""
        try:
            bot, runner = self._open()
        except (SettingsError, MissingExtraError) as error:
            return RefusedError(str(error))
        except Exception as error:
            return RefusedError(
                self._token.redact(f"the bot cannot be set up: {type(error).__name__}: {error}")
            )
        try:
            request = self._request(bot, message, route)
            sent = runner.run(asyncio.wait_for(request, self._timeouts.whole))
            return Accepted(str(sent.message_id))
        except Exception as error:
            return error.with_traceback(None)

    def _open(self) -> tuple[telegram.Bot, asyncio.Runner]:
        """The bot and its loop; made, and the library imported, with the first message."""
        if self._bot is None or self._runner is None:
            token = self._settings.token_of(self._environ)
            self._token = Secret(token, token.partition(":")[2])
            guard_logs(self._token, "httpx", "httpcore", "telegram", "asyncio")
            self._bot = _new_bot(self._token, self._settings.api_url, self._timeouts)
            self._runner = asyncio.Runner()
        return self._bot, self._runner

    async def _request(self, bot: telegram.Bot, message: Message, route: Route) -> telegram.Message:
        from telegram import LinkPreviewOptions, MessageEntity, ReplyParameters

        entities = [MessageEntity(one.style.value, one.offset, one.length) for one in message.entities]
        reply = (
            ReplyParameters(int(route.reply_to), allow_sending_without_reply=True) if route.reply_to else None
        )
        return await bot.send_message(
            route.moved_to or self._settings.chat_id,
            message.short if route.plain else message.text,
            entities=[] if route.plain else entities,
            disable_notification=message.silent,
            message_thread_id=self._settings.thread_id if route.in_topic else None,
            reply_parameters=reply,
            link_preview_options=LinkPreviewOptions(is_disabled=True),
        )


def meaning(error: Exception, token: Secret, chat: str) -> DeliveryError:
    """What an error of the library means for the notice; the order of the cases matters, since BadRequest and
    TimedOut are NetworkErrors and would otherwise be tried again for ever."""
    from telegram import error as errors

    said = token.redact(str(error))
    match error:
        case errors.RetryAfter():
            seconds = _seconds(error.retry_after)
            return ThrottledError(f"chat {chat} is flooded, told to wait {seconds:.0f} s", seconds)
        case errors.ChatMigrated():
            return MovedError(
                f"chat {chat} became the supergroup {error.new_chat_id}: put that into chat_id",
                str(error.new_chat_id),
            )
        case errors.Forbidden():
            return RefusedError(f"chat {chat}: {said}")
        case errors.InvalidToken():
            return RefusedError(f"the server does not know the bot's token ({said}): check token and api_url")
        case errors.BadRequest():
            return _bad_request(said, chat)
        case errors.TimedOut() | TimeoutError():
            return UnreachableError(f"no answer in time ({said or 'time-out'}); it may have been delivered")
        case errors.NetworkError():
            return UnreachableError(said)
        case _:
            return UnreachableError(f"{type(error).__name__}: {said}")


def _bad_request(said: str, chat: str) -> DeliveryError:
    words = said.lower()
    if any(topic in words for topic in _TOPIC):
        return TopicGoneError(f"the topic of chat {chat} is gone ({said}): correct thread_id")
    if any(gone in words for gone in _CHAT):
        return RefusedError(f"chat {chat}: {said}: check chat_id, and that the bot is in the chat")
    return ContentRefusedError(f"chat {chat} did not take the message: {said}")


def _seconds(wait: int | timedelta) -> float:
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)


def _new_bot(token: Secret, api_url: str, timeouts: Timeouts) -> telegram.Bot:
    # The library's coming form of `retry_after`; the present one warns on every use.
    os.environ.setdefault("PTB_TIMEDELTA", "true")
    try:
        from telegram import Bot
        from telegram.request import HTTPXRequest
    except ImportError:
        raise MissingExtraError("python-telegram-bot", "agent") from None
    # httpx logs each address, token included, at INFO; the library logs at ERROR what we tell in a sentence.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("telegram").setLevel(logging.CRITICAL)
    request: Any = HTTPXRequest(
        connection_pool_size=1,
        connect_timeout=timeouts.connect,
        read_timeout=timeouts.read,
        write_timeout=timeouts.connect,
    )
    # Nothing is asked for: a client of its own for that would read all root certificates once more.
    return Bot(
        token.reveal(),
        base_url=f"{api_url.rstrip('/')}/bot",
        request=request,
        get_updates_request=request,
    )
