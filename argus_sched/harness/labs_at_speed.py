"""A dozen jobs of the labs application with seconds for minutes, and the agent's files that watch them."""

from __future__ import annotations

import json
from pathlib import Path

from argus_sched.harness.expected import Plan

GRACE = 5
KEY = 911_000_001

# id, name as the log prints it, seconds between two due times
_JOBS = (
    ("prima_key_sync_drain", "Deliver queued Prima API key syncs", 1),
    ("prima_credit_grant_drain", "Deliver queued Prima credit top-ups", 1),
    ("sparks_grant_drain", "Deliver queued Sparks grants", 1),
    ("message_drain", "Send due scheduled messages", 2),
    ("monitoring_checks", "System monitoring checks", 2),
    ("accounting_drive_sync", "Accounting Drive document sync", 2),
    ("desk_reminders", "Service Desk reminders (unaccepted / due soon / overdue / review timeout)", 2),
    ("desk_email_intake", "Service Desk inbound email intake (IMAP → tickets)", 2),
    ("booking_reminders", "Send booking reminder SMS", 3),
    ("outreach_queue", "Process outreach email queue", 3),
    ("accounting_gmail_sync", "Accounting Gmail receipt sync", 3),
    ("hourly_jobs", "Hourly maintenance jobs", 3),
)

_CONFIG = """
state: {state}
packs: [{pack}]
every: 5s
telegram:
  token_env: {token_env}
  chat_id: {chat}
{api_url}"""
_PACK = """
app: labs
logs:
  file: {{path: {log}, format: json-file}}
  window: 1h
database: {{dsn_env: LABS_DATABASE_URL}}
checks:
  - kind: scheduler_lock
    key: {key}
    takeover: 10s
  - kind: scheduler_jobs
    jobs:
{jobs}
"""


def plans() -> tuple[Plan, ...]:
    """The dozen jobs."""
    return tuple(Plan(job, name, every_ms=every * 1000, body_ms=20) for job, name, every in _JOBS)


def write_config(folder: Path, log: Path, token_env: str, chat: str, api_url: str | None) -> Path:
    """Write the agent's settings and its pack into `folder`; returns the settings' path."""
    entries = (
        f'      - {{id: {job}, name: "{name}", every: {every}s, grace: {GRACE}s}}'
        for job, name, every in _JOBS
    )
    pack, config = folder / "labs.yaml", folder / "argus.yaml"
    pack.write_text(_PACK.format(log=log, key=KEY, jobs="\n".join(entries)))
    url = f"  api_url: {api_url}\n" if api_url else ""
    config.write_text(
        _CONFIG.format(
            state=folder / "state.db",
            pack=pack,
            token_env=token_env,
            chat=json.dumps(chat) if chat.startswith("@") else chat,
            api_url=url,
        )
    )
    return config
