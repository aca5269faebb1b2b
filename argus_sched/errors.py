"""Every error argus-sched raises on purpose.

    ArgusError
    ├── SettingsError            a file, variable or argument is wrong; says which and what to do
    ├── MissingExtraError        an optional library is absent; names the install command
    ├── StoreError               the agent's SQLite file is locked, corrupt, newer or unwritable
    ├── SourceError              a log or database of a watched application cannot be read
    │   └── HostError            its host, or the daemon or server there, could not be reached at all
    ├── DeliveryError            a notice was not accepted; permanent or not
    ├── JobError                 a job was declared wrongly
    └── SchedulerError           the scheduler core refuses to go on
        ├── LeadershipRefused    this process must not lead here, and why
        ├── ClaimStoreError      the store of claims is away or is not the namespace's
        └── SchemaError          tables are missing, older or newer than this version

Each error becomes one line on standard error and exit code 3: a monitor's UNKNOWN.
"""

from __future__ import annotations


class ArgusError(Exception):
    """Base of all errors raised on purpose; `str()` is one sentence for the person who reads it."""

    exit_code = 3


class SettingsError(ArgusError):
    """A file, variable or argument is wrong."""


class MissingExtraError(ArgusError):
    """An optional library is not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed: run  pip install 'argus-sched[{extra}]'")


class StoreError(ArgusError):
    """The agent's state file cannot be used."""


class SourceError(ArgusError):
    """A log or a database of a watched application cannot be read."""


class HostError(SourceError):
    """A host, or the daemon or server there, could not be reached at all: nothing on it can be read."""


class DeliveryError(ArgusError):
    """A notice was not accepted by its channel."""


class JobError(ArgusError):
    """A job was declared wrongly."""


class SchedulerError(ArgusError):
    """The scheduler core refuses to go on."""


class LeadershipRefused(SchedulerError):  # noqa: N818 - an outcome with a name, not a fault
    """This process must not lead on this connection."""


class ClaimStoreError(SchedulerError):
    """The store of claims is away, or is not the one this namespace uses."""


class SchemaError(SchedulerError):
    """The scheduler's tables are missing, older or newer than this version."""
