"""The agent's settings: where they are found, and what they are without a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from argus_sched.agent.config.channels import (
    AlertmanagerSettings,
    TelegramSettings,
    WebhookSettings,
    read_alertmanager,
    read_telegram,
    read_webhook,
)
from argus_sched.agent.config.fields import duration, path_from, timezone, url
from argus_sched.agent.config.host_sections import read_hosts
from argus_sched.agent.config.notify_policy import (
    MaintenanceWindow,
    NotifySettings,
    read_maintenance,
    read_notify,
)
from argus_sched.agent.config.problems import Problems, ProblemsError
from argus_sched.agent.config.sections import Section, read_section
from argus_sched.agent.hosts import LOCAL, HostSpec
from argus_sched.agent.packs import PackDefaults
from argus_sched.errors import SettingsError

SYSTEM_CONFIG = "/etc/argus-sched/argus.yaml"
SYSTEM_PACKS = "/etc/argus-sched/checks/*.yaml"


@dataclass(frozen=True)
class AgentSettings:
    """What one deployment sets. `path` is the file read, None when these are the defaults.

    `packs` are paths and shell patterns, `every` is how often passes are started from outside (three times
    that without one is a gap of the agent itself), `deadline` bounds a whole pass, `read_timeout` one read.
    """

    path: str | None
    state: Path
    packs: tuple[str, ...] = (SYSTEM_PACKS,)
    every: timedelta = timedelta(minutes=1)
    deadline: timedelta = timedelta(seconds=45)
    read_timeout: timedelta = timedelta(seconds=10)
    textfile: str | None = None
    heartbeat_url: str | None = field(default=None, repr=False)
    telegram: TelegramSettings | None = None
    webhook: WebhookSettings | None = None
    alertmanager: AlertmanagerSettings | None = None
    notify: NotifySettings = field(default_factory=NotifySettings)
    maintenance: tuple[MaintenanceWindow, ...] = ()
    defaults: PackDefaults = field(default_factory=PackDefaults)
    hosts: Mapping[str, HostSpec] = field(default_factory=lambda: {LOCAL: HostSpec()})


def find_config(path: str | None, environ: Mapping[str, str]) -> str | None:
    """`path`, else $ARGUS_CONFIG, else the system's file where there is one, else None: the defaults.

    The working directory is never searched: what a monitor does must not depend on where cron starts it.
    """
    if path or environ.get("ARGUS_CONFIG"):
        return path or environ["ARGUS_CONFIG"]
    return SYSTEM_CONFIG if Path(SYSTEM_CONFIG).exists() else None


def default_state(environ: Mapping[str, str]) -> Path:
    """`argus-sched/state.db` in the state folder of the XDG base directory specification.

    Raises SettingsError for a user who has no home, as containers and services have them.
    """
    named = environ.get("XDG_STATE_HOME", "")
    # The specification: a relative path is invalid and must be ignored.
    home = Path(named) if named.startswith("/") else _home(environ) / ".local/state"
    return home / "argus-sched" / "state.db"


def _home(environ: Mapping[str, str]) -> Path:
    try:
        return Path(environ.get("HOME") or Path.home())
    except RuntimeError:
        raise SettingsError(
            f"user {os.getuid()} has no home to keep the state in: set `state:` in the config, or $HOME"
        ) from None


def load_settings(path: str | None, environ: Mapping[str, str]) -> AgentSettings:
    """The settings of the file that `find_config` finds; raises ProblemsError with everything wrong in it."""
    found = find_config(path, environ)
    if found is None:
        return AgentSettings(path=None, state=default_state(environ))
    problems = Problems(found)
    section = read_section(found, environ, problems)
    settings = _read(section, found, environ) if section else None
    if problems.errors or settings is None:
        raise ProblemsError(problems.errors)
    return settings


def _read(section: Section, path: str, environ: Mapping[str, str]) -> AgentSettings:
    folder = Path(path).absolute().parent
    named = section.sub("hosts")
    hosts = {LOCAL: HostSpec()} | (read_hosts(named, folder) if named else {})
    defaults = replace(_defaults(section.sub("defaults")), hosts=tuple(hosts))
    telegram, webhook, alertmanager = (section.sub(key) for key in ("telegram", "webhook", "alertmanager"))
    notify = section.sub("notify")
    windows = [read_maintenance(entry, defaults.timezone) for entry in section.subs("maintenance")]
    state = section.get("state", path_from(folder), "")
    settings = AgentSettings(
        path=path,
        state=Path(state) if section.has("state") else default_state(environ),
        packs=section.each("packs", path_from(folder), (SYSTEM_PACKS,), "path or pattern of check packs"),
        every=section.get("every", duration, AgentSettings.every),
        deadline=section.get("deadline", duration, AgentSettings.deadline),
        read_timeout=section.get("read_timeout", duration, AgentSettings.read_timeout),
        textfile=section.get("textfile", path_from(folder), None),
        heartbeat_url=section.get("heartbeat_url", url, None),
        telegram=read_telegram(telegram, folder) if telegram else None,
        webhook=read_webhook(webhook) if webhook else None,
        alertmanager=read_alertmanager(alertmanager) if alertmanager else None,
        notify=read_notify(notify) if notify else NotifySettings(),
        maintenance=tuple(window for window in windows if window),
        defaults=defaults,
        hosts=hosts,
    )
    if settings.read_timeout > settings.deadline:
        section.add("read_timeout", "must not be longer than deadline, which bounds the whole pass")
    section.finish()
    return settings


def _defaults(section: Section | None) -> PackDefaults:
    if section is None:
        return PackDefaults()
    defaults = PackDefaults(
        grace=section.get("grace", duration, None),
        timezone=section.get("timezone", timezone, "UTC"),
        window=section.get("window", duration, PackDefaults.window),
        takeover=section.get("takeover", duration, PackDefaults.takeover),
    )
    section.finish()
    return defaults
