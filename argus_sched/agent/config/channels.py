"""Where notices go: Telegram, a webhook, Alertmanager; as values, and as sections of the config file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from argus_sched.agent.config.fields import path_from, text, url, variable_name, whole, whole_between
from argus_sched.agent.config.problems import WrongValueError
from argus_sched.agent.config.secret_sources import read_secret
from argus_sched.agent.config.sections import Section
from argus_sched.agent.config.yaml_nodes import Scalar, Value

TELEGRAM_API = "https://api.telegram.org"


@dataclass(frozen=True)
class TelegramSettings:
    """One chat, by its number or `@channel`. The token is named here, and read by `token_of` when needed."""

    chat_id: str
    token_env: str | None = None
    token_file: str | None = None
    thread_id: int | None = None
    api_url: str = field(default=TELEGRAM_API, repr=False)
    line: int = field(default=1, repr=False, compare=False)  # of the file, for messages

    def token_of(self, environ: Mapping[str, str]) -> str:
        """The bot's token; raises SettingsError when it is absent."""
        return read_secret(self.token_env, self.token_file, environ, "the token of the Telegram bot")


@dataclass(frozen=True)
class WebhookSettings:
    """An URL that takes notices as JSON by POST; the URL itself may be the secret."""

    url: str = field(repr=False)


@dataclass(frozen=True)
class AlertmanagerSettings:
    """The root of an Alertmanager, whose v2 API takes the alerts."""

    url: str = field(repr=False)


def read_telegram(section: Section, folder: Path) -> TelegramSettings:
    """The section `telegram`."""
    section.refuse("token", "a token must not stand in YAML: name it with token_env or token_file")
    section.only_one_of("token_env", "token_file", required=not section.has("token"))
    settings = TelegramSettings(
        chat_id=section.need("chat_id", _chat_id, ""),
        token_env=section.get("token_env", variable_name, None),
        token_file=section.get("token_file", path_from(folder), None),
        thread_id=section.get("thread_id", whole_between(1, 2**53), None),
        line=section.line,
        api_url=section.get("api_url", _root_url, TELEGRAM_API),
    )
    section.finish()
    return settings


def read_webhook(section: Section) -> WebhookSettings:
    """The section `webhook`."""
    settings = WebhookSettings(section.need("url", url, ""))
    section.finish()
    return settings


def read_alertmanager(section: Section) -> AlertmanagerSettings:
    """The section `alertmanager`."""
    settings = AlertmanagerSettings(section.need("url", _root_url, ""))
    section.finish()
    return settings


def _chat_id(value: Value) -> str:
    if isinstance(value, Scalar) and value.text.startswith("@"):
        return text(value)
    try:
        return str(whole(value))
    except WrongValueError:
        raise WrongValueError(f"expected the number of a chat, or '@channel', got {value}") from None


def _root_url(value: Value) -> str:
    return url(value).rstrip("/")
