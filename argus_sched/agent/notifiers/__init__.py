"""The channels, one module each, and the list of those the settings name.

Nothing here imports a channel's library: that happens when something is sent, since most passes send nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from argus_sched.agent.config.settings import AgentSettings
from argus_sched.agent.notifiers.alertmanager import AlertmanagerNotifier
from argus_sched.agent.notifiers.telegram import TelegramNotifier
from argus_sched.agent.notifiers.webhook import WebhookNotifier
from argus_sched.agent.telling.notify_ports import Notifier


def open_notifiers(settings: AgentSettings, environ: Mapping[str, str]) -> tuple[Notifier, ...]:
    """The channels of `settings`; connects to nothing, reads no secret yet."""
    found: list[Notifier] = []
    if settings.telegram is not None:
        found.append(TelegramNotifier(settings.telegram, environ))
    if settings.webhook is not None:
        found.append(WebhookNotifier(settings.webhook))
    if settings.alertmanager is not None:
        found.append(AlertmanagerNotifier(settings.alertmanager, settings.every))
    return tuple(found)
