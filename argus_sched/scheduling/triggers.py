"""The triggers an application writes: those of `due_times`, but a wrong one is kept as a value.

`every(minutes=0)` stands where a module is imported, and a web application must not fail to boot for it. So
the error waits in the value until a scheduler is told of it: that one raises it, or in production leaves the
job out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn, ParamSpec

from argus_sched import due_times
from argus_sched.errors import JobError

Parameters = ParamSpec("Parameters")


@dataclass(frozen=True)
class Refused:
    """A trigger that cannot be; whatever it is asked, it raises its JobError."""

    error: JobError

    def next_after(self, instant: datetime) -> NoReturn:  # noqa: ARG002 - it has no due times
        raise self.error

    def latest_at_or_before(self, instant: datetime) -> NoReturn:  # noqa: ARG002
        raise self.error

    def count_between(self, after: datetime, until: datetime) -> NoReturn:  # noqa: ARG002
        raise self.error


def _kept(make: Callable[Parameters, due_times.Trigger]) -> Callable[Parameters, due_times.Trigger]:
    @functools.wraps(make)
    def trigger(*args: Parameters.args, **options: Parameters.kwargs) -> due_times.Trigger:
        try:
            return make(*args, **options)
        except JobError as error:
            return Refused(error)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            return Refused(JobError(f"{make.__name__}(...) is no trigger: {error}"))

    return trigger


every = _kept(due_times.every)
cron = _kept(due_times.cron)
once = _kept(due_times.once)
daily = _kept(due_times.daily)
weekly = _kept(due_times.weekly)
monthly = _kept(due_times.monthly)
