"""Notices as JSON to an address of the reader's own."""

from __future__ import annotations

import hashlib
from typing import Any

from argus_sched.agent.config.channels import WebhookSettings
from argus_sched.agent.instants import rfc3339
from argus_sched.agent.notifiers.http_json import post_json
from argus_sched.agent.telling.messages import NO_LIMIT, Message
from argus_sched.agent.telling.notices import Line
from argus_sched.agent.telling.notify_ports import Accepted, Route
from argus_sched.agent.web_address import WebAddress

VERSION = 1


class WebhookNotifier:
    """One POST for each digest. A repeated delivery has the same `Idempotency-Key`."""

    name = "webhook"
    limit = NO_LIMIT
    repeats = False
    trouble = ""

    def __init__(self, settings: WebhookSettings) -> None:
        self._url = WebAddress(settings.url)
        self.chat = self._url.host

    def send(self, message: Message, route: Route) -> Accepted:
        """Post the message; a plain one has no list of notices."""
        body = _body(message, with_notices=not route.plain)
        error = post_json(self._url, body, {"Idempotency-Key": body["id"]})
        if error is not None:
            raise error
        return Accepted(body["id"])

    def close(self) -> None:
        """Nothing stays open."""


def _body(message: Message, *, with_notices: bool) -> dict[str, Any]:
    seed = "\x1f".join(f"{line.notice.incident.id} {line.notice.number}" for line in message.lines)
    return {
        "version": VERSION,
        "id": hashlib.sha256(seed.encode()).hexdigest()[:16],
        "at": rfc3339(message.at),
        "silent": message.silent,
        "text": message.text if with_notices else message.short,
        "notices": [_notice(line) for line in message.lines] if with_notices else [],
    }


def _notice(line: Line) -> dict[str, Any]:
    notice, incident = line.notice, line.notice.incident
    return {
        "incident": incident.id,
        "target": incident.subject,
        "name": incident.name,
        "change": line.shown.value,
        "status": notice.status.name,
        "worst_status": incident.status.name,
        "phase": incident.phase.value,
        "summary": incident.summary,
        "reason": incident.reason,
        "opened_at": rfc3339(incident.opened_at),
        "closed_at": None if incident.closed_at is None else rfc3339(incident.closed_at),
        "duration_seconds": None if incident.duration is None else incident.duration.total_seconds(),
    }
