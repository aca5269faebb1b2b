"""The agent's settings and its pack for workers of the harness."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from argus_sched.harness.expected import Plan

_CONFIG = """
state: {folder}/state.db
packs: [{folder}/{app}.yaml]
every: 5s
telegram:
  token_env: {token_env}
  chat_id: {chat}
{api_url}"""
_PACK = """
app: {app}
logs:
  file: {{path: {log}, format: json-file}}
  window: 1h
database: {{dsn_env: {dsn_env}}}
checks:
  - kind: scheduler_lock
    key: {key}
    takeover: {takeover:g}s
  - kind: scheduler_jobs
    jobs:
"""
_JOB = '      - {{id: {plan.job}, name: "{plan.name}", every: {plan.period_seconds:g}s, grace: {grace:g}s}}\n'


@dataclass(frozen=True)
class Watched:
    """What the agent is to watch: an application's log and lock, and how much lateness is fine (seconds)."""

    app: str
    log: Path
    key: int
    plans: Sequence[Plan]
    grace: float
    takeover: float
    dsn_env: str


@dataclass(frozen=True)
class Chat:
    """Where messages go; `api_url` None is Telegram itself."""

    token_env: str
    chat: str
    api_url: str | None


def write(folder: Path, watched: Watched, chat: Chat) -> Path:
    """Write settings and pack into `folder`; returns the settings' path."""
    jobs = "".join(_JOB.format(plan=plan, grace=watched.grace) for plan in watched.plans)
    (folder / f"{watched.app}.yaml").write_text(_PACK.format(**vars(watched)) + jobs)
    config = folder / "argus.yaml"
    # A public chat's name begins with @, which YAML keeps for itself.
    named = json.dumps(chat.chat) if chat.chat.startswith("@") else chat.chat
    url = f"  api_url: {chat.api_url}\n" if chat.api_url else ""
    config.write_text(
        _CONFIG.format(folder=folder, app=watched.app, token_env=chat.token_env, chat=named, api_url=url)
    )
    return config
