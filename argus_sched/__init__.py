"""argus-sched: scheduled jobs of multi-worker services run exactly once, and someone watches that they do.

    from argus_sched import Scheduler, every, cron

The names below load on first use, so that importing the package alone imports nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from argus_sched.version import __version__

if TYPE_CHECKING:
    from argus_sched.errors import (
        ArgusError,
        ClaimStoreError,
        JobError,
        LeadershipRefused,
        MissingExtraError,
        SchedulerError,
        SchemaError,
        SettingsError,
    )
    from argus_sched.scheduling.claims import RunNow
    from argus_sched.scheduling.job import Fire, TargetMissingError
    from argus_sched.scheduling.leadership import Timing
    from argus_sched.scheduling.scheduler import Scheduler, Status
    from argus_sched.scheduling.triggers import cron, daily, every, monthly, once, weekly

_HOMES = {
    "errors": (
        "ArgusError",
        "ClaimStoreError",
        "JobError",
        "LeadershipRefused",
        "MissingExtraError",
        "SchedulerError",
        "SchemaError",
        "SettingsError",
    ),
    "scheduling.claims": ("RunNow",),
    "scheduling.job": ("Fire", "TargetMissingError"),
    "scheduling.leadership": ("Timing",),
    "scheduling.scheduler": ("Scheduler", "Status"),
    "scheduling.triggers": ("every", "cron", "once", "daily", "weekly", "monthly"),
}

__all__ = [
    "ArgusError",
    "ClaimStoreError",
    "Fire",
    "JobError",
    "LeadershipRefused",
    "MissingExtraError",
    "RunNow",
    "Scheduler",
    "SchedulerError",
    "SchemaError",
    "SettingsError",
    "Status",
    "TargetMissingError",
    "Timing",
    "__version__",
    "cron",
    "daily",
    "every",
    "monthly",
    "once",
    "weekly",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"argus_sched.{home}"), name)
    raise AttributeError(f"module 'argus_sched' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
