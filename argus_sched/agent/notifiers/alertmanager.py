"""Incidents as alerts of an Alertmanager's v2 API, for estates that group, silence and route there.

Alertmanager keeps alerts in memory and ends those that nobody repeats, so what is wrong is posted on every
pass, as Prometheus does. An alert ends when its incident does; should the agent itself fall silent, it ends
after `KEEP`, and the rule on the agent's last pass (config/prometheus) has fired long before.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from argus_sched.agent.config.channels import AlertmanagerSettings
from argus_sched.agent.instants import rfc3339
from argus_sched.agent.notifiers.http_json import post_json
from argus_sched.agent.status import Status
from argus_sched.agent.telling.incidents import Incident
from argus_sched.agent.telling.messages import NO_LIMIT, Message
from argus_sched.agent.telling.notices import Change
from argus_sched.agent.telling.notify_ports import Accepted, Route
from argus_sched.agent.telling.visible_text import visible
from argus_sched.agent.web_address import WebAddress

ALERT_NAME = "ArgusCheck"
KEEP = timedelta(hours=1)
KEEP_PASSES = 4


class AlertmanagerNotifier:
    """Posts every open incident on each pass, and the end of those that are over."""

    name = "alertmanager"
    limit = NO_LIMIT
    repeats = True
    trouble = ""

    def __init__(self, settings: AlertmanagerSettings, every: timedelta) -> None:
        self._url = WebAddress(f"{settings.url.rstrip('/')}/api/v2/alerts")
        self._keep = max(KEEP, KEEP_PASSES * every)
        self.chat = self._url.host

    def send(self, message: Message, route: Route) -> Accepted:  # noqa: ARG002 the port's signature
        """Post the alerts; raises a DeliveryError."""
        alerts = alerts_of(message, self._keep)
        error = post_json(self._url, alerts) if alerts else None
        if error is not None:
            raise error
        return Accepted()

    def close(self) -> None:
        """Nothing stays open."""


def alerts_of(message: Message, keep: timedelta) -> list[dict[str, Any]]:
    """The body of `POST /api/v2/alerts`: one alert for each incident that is open or has just ended.

    Labels say which alert it is, so one that became critical is a new one and the warning before it ends.
    """
    found = {incident.id: alert(incident, message.at + keep) for incident in message.open}
    ended = []
    for line in message.lines:
        incident = line.notice.incident
        found[incident.id] = alert(incident, incident.closed_at or message.at + keep)
        if line.shown is Change.WORSE and severity(incident.status) == "critical":
            ended.append(alert(incident, message.at, "warning"))
    return [*found.values(), *ended]


def alert(incident: Incident, ends_at: datetime, level: str | None = None) -> dict[str, Any]:
    """`incident` as an alert that ends at `ends_at`."""
    app, _, check = incident.subject.partition("/")
    return {
        "labels": {
            "alertname": ALERT_NAME,
            "app": visible(app) if check else "",
            "target": visible(incident.subject),
            "severity": level or severity(incident.status),
        },
        "annotations": {
            "summary": visible(incident.summary),
            "reason": visible(incident.reason),
            "job_name": visible(incident.name),
            "status": incident.status.name,
            "phase": incident.phase.value,
            "incident": incident.id,
        },
        # Refused when it begins after its end: the clock may have been set back since.
        "startsAt": rfc3339(min(incident.opened_at, ends_at)),
        "endsAt": rfc3339(ends_at),
    }


def severity(status: Status) -> str:
    """The word that routes look for: what was seen to be wrong is critical, what cannot be seen a warning."""
    return "critical" if status is Status.CRIT else "warning"
