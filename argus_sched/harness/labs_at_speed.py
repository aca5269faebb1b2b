"""A dozen jobs of the labs application with seconds for minutes, and what the agent is to watch of them."""

from __future__ import annotations

from pathlib import Path

from argus_sched.harness.agent_files import Watched
from argus_sched.harness.expected import Plan

APP, DSN_ENV = "labs", "LABS_DATABASE_URL"
GRACE = 5.0
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


def plans() -> tuple[Plan, ...]:
    """The dozen jobs."""
    return tuple(Plan(job, name, every_ms=every * 1000, body_ms=20) for job, name, every in _JOBS)


def watched(log: Path) -> Watched:
    """What the agent is to watch."""
    return Watched(APP, log, KEY, plans(), GRACE, takeover=10.0, dsn_env=DSN_ENV)
