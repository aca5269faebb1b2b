"""The words of reading a log: a record, what it means, and how far a read reached."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Record:
    """One whole line of a container's log.

    The stamp is in nanoseconds since the epoch; `text` is the raw bytes without stamp and line end; `line` is
    its number where the source counts lines.
    """

    stamp_ns: int
    text: bytes
    stream: str = "stdout"
    line: int = 0


class EventKind(StrEnum):
    """What a line of APScheduler 3.x, or of our own scheduler, says."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    MISSED = "missed"
    SKIPPED = "skipped"
    SUBMIT_ERROR = "submit_error"
    RUN_ERROR = "run_error"  # Error running job <id>
    EXECUTOR_LOST = "executor_lost"  # Executor lookup failed, job removed
    JOBSTORE_ERROR = "jobstore_error"
    RESTORE_ERROR = "restore_error"  # Unable to restore job, row deleted
    POOL_BROKEN = "pool_broken"
    LISTENER_ERROR = "listener_error"
    TENTATIVE = "tentative"
    ADDED = "added"
    REMOVED = "removed"
    SCHEDULER_STARTED = "scheduler_started"
    SCHEDULER_STOPPED = "scheduler_stopped"
    SCHEDULER_PAUSED = "scheduler_paused"
    SCHEDULER_RESUMED = "scheduler_resumed"
    DEBUG = "debug"  # Looking for jobs, Next wakeup, ...
    JOB_DISABLED = "job_disabled"  # our scheduler's fixed lines
    JOB_AUTO_DISABLED = "job_auto_disabled"
    JOB_ENABLED = "job_enabled"
    UNREADABLE = "unreadable"  # "Running job" text that cannot be parsed (wrapped, truncated JSON)
    UNSUPPORTED = "unsupported"  # a line of APScheduler 4


@dataclass(frozen=True, slots=True)
class Event:
    """One understood line. Fields a kind lacks are None; `scheduled_at_utc` is None without an offset."""

    kind: EventKind
    stamp_ns: int
    line: int = 0
    name: str | None = None
    job_id: str | None = None
    trigger: str | None = None
    status: str | None = None  # scheduled | paused
    next_run: str | None = None
    next_run_utc: datetime | None = None
    scheduled_at: str | None = None
    scheduled_at_utc: datetime | None = None
    missed_by_seconds: float | None = None
    detail: str | None = None  # executor or job store alias, instance limit, quoted cause
    container: str | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where an earlier read of one container stopped: the newest stamp, and how many records carried it."""

    stamp_ns: int
    seen_at_stamp: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """The unbroken span of one container's log that was read, in nanoseconds since the epoch.

    `from_ns` is the oldest record, or the log's own start where that is sure (`reach.first_span`). `to_ns` is
    the instant of a read that reached the log's end (the watermark), else the newest record read, and
    `reached_end` says which. `gap` says that records between the cursor and this read are lost (rotation,
    recreation), so older evidence does not join on.
    """

    from_ns: int
    to_ns: int
    reached_end: bool
    gap: bool = False


@dataclass(frozen=True, slots=True)
class Container:
    """One container (or file) that a pack's log source matched.

    `clock_ahead` is how far the clock that stamps its log is ahead of the agent's, as far as anyone knows.
    """

    key: str  # stable across recreation: compose service + number, or the name
    id: str  # changes when it is recreated; a path for a file
    name: str
    started_at: datetime | None
    running: bool
    driver: str = ""
    clock_ahead: timedelta = timedelta(0)
