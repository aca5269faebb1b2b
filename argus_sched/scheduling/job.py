"""A job, one fire of it, and the set of jobs of one scheduler."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, TypedDict

from argus_sched import due_times
from argus_sched.errors import JobError
from argus_sched.scheduling.catch_up import CatchUp, agreed_catch_up, default_window
from argus_sched.scheduling.triggers import Refused

LONGEST_NAME = 200
SCHEDULED = "schedule"


class TargetMissingError(JobError):
    """What a job should act on is gone; counts as a failure with the outcome `target_missing`."""


class OnInterrupted(StrEnum):
    """What becomes of a run whose worker died: recorded only, or run again with attempt + 1."""

    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"


class JobOptions(TypedDict, total=False):
    """What a job may be told besides its function and its trigger, for editors and type checkers."""

    id: str | None
    name: str | None
    catch_up: Literal["latest", "all", "skip"] | None
    coalesce: bool | None
    catch_up_window: timedelta | None
    max_instances: int
    on_interrupted: Literal["at_most_once", "at_least_once"]
    jitter: timedelta
    first_run_after: timedelta | None


@dataclass(frozen=True, slots=True)
class Fire:
    """One due occurrence of a job, as its body sees it.

    `due` is the nominal due time (aware, UTC); `epoch` the number of the leader's term, 0 where nobody leads;
    `attempt` is above 1 only after a worker died. `origin` is `schedule`, `manual:<uuid>` or `start:<uuid>`.
    """

    due: datetime
    job_id: str
    epoch: int = 0
    attempt: int = 1
    origin: str = SCHEDULED

    @property
    def key(self) -> tuple[str, datetime, str]:
        """What a claim is keyed by, within one namespace."""
        return self.job_id, self.due, self.origin


@dataclass(frozen=True)
class Job:
    """One declared task; build it with `declare`, which validates."""

    id: str
    name: str
    func: Callable[..., Any]
    trigger: due_times.Trigger
    catch_up: CatchUp
    catch_up_window: timedelta
    max_instances: int
    on_interrupted: OnInterrupted
    jitter: timedelta
    first_run_after: timedelta | None
    takes_fire: bool

    @property
    def trigger_text(self) -> str:
        """What the tables remember of the trigger; another text makes the job start from now."""
        zone = getattr(self.trigger, "zone", None)
        phase = getattr(self.trigger, "phase", None)
        return f"{self.trigger}{f' {zone}' if zone else ''}{f' + {phase}' if phase else ''}"

    def delay(self, due: datetime) -> timedelta:
        """The hashed jitter of one due time: less than the way to the next one, and equal on every worker."""
        if not self.jitter:
            return timedelta(0)
        following = self.trigger.next_after(due)
        window = self.jitter if following is None else min(self.jitter, following - due)
        return due_times.jitter(self.id, due, window)


def declare(
    func: Callable[..., Any],
    trigger: due_times.Trigger,
    *,
    id: str | None = None,  # noqa: A002 - the word of the public API
    name: str | None = None,
    catch_up: str | None = None,
    coalesce: bool | None = None,
    catch_up_window: timedelta | None = None,
    max_instances: int = 1,
    on_interrupted: str = OnInterrupted.AT_MOST_ONCE,
    jitter: timedelta = timedelta(0),
    first_run_after: timedelta | None = None,
    now: datetime | None = None,
    **unknown: object,
) -> Job:
    """A validated job; raises JobError with one sentence that names the job and says what to do.

    `id` defaults to the function's name and `name` to the id.
    """
    job_id = id if id is not None else getattr(func, "__name__", "")
    if isinstance(trigger, Refused):
        raise JobError(f"job {job_id!r}: {trigger.error}")
    _check_text("id", job_id, job_id)
    title = name if name is not None else job_id
    _check_text("name", title, job_id)
    for option in unknown:
        raise JobError(f"job {job_id!r} has the option {option!r}, which is none: see docs/scheduler.md")
    _check_options(job_id, trigger, max_instances)
    _check_span(job_id, "jitter", jitter, least=timedelta(0))
    for what, span in (("catch_up_window", catch_up_window), ("first_run_after", first_run_after)):
        if span is not None:
            _check_span(job_id, what, span, least=timedelta.resolution)
    return Job(
        id=job_id,
        name=title,
        func=func,
        trigger=trigger,
        catch_up=agreed_catch_up(job_id, catch_up, coalesce),
        catch_up_window=catch_up_window or default_window(trigger, now or datetime.now(UTC)),
        max_instances=max_instances,
        on_interrupted=_on_interrupted(job_id, on_interrupted),
        jitter=jitter,
        first_run_after=first_run_after,
        takes_fire=_takes_fire(job_id, func),
    )


class JobRegistry:
    """The jobs of one scheduler; ids and names are unique, since logs, metrics and the agent go by either."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._ids_by_name: dict[str, str] = {}
        self._hash = ""

    def add(self, job: Job) -> None:
        """Take `job` in; raises JobError when its id or its name is taken."""
        if job.id in self._jobs:
            raise JobError(f"the job id {job.id!r} is used twice: give each job its own id=")
        if job.name in self._ids_by_name:
            raise JobError(
                f"the job name {job.name!r} is used twice, by {self._ids_by_name[job.name]!r} and "
                f"{job.id!r}: logs are read by name, so give each job its own name="
            )
        self._jobs[job.id] = job
        self._ids_by_name[job.name] = job.id
        self._hash = ""

    def get(self, job_id: str) -> Job | None:
        """The job with this id, or None."""
        return self._jobs.get(job_id)

    def __getitem__(self, job_id: str) -> Job:
        try:
            return self._jobs[job_id]
        except KeyError:
            raise JobError(f"there is no job with the id {job_id!r} in this scheduler") from None

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    def __len__(self) -> int:
        return len(self._jobs)

    def schedule_hash(self) -> str:
        """A short hash over ids, names and triggers: workers of one namespace must agree on it."""
        # Kept, since it is asked for at each promotion, which must not take as long as hashing 100,000 jobs.
        if not self._hash:
            self._hash = self._new_hash()
        return self._hash

    def _new_hash(self) -> str:
        digest = hashlib.sha256()
        for job_id in sorted(self._jobs):
            job = self._jobs[job_id]
            digest.update(f"{job.id}\x1f{job.name}\x1f{job.trigger_text}\x1e".encode())
        return digest.hexdigest()[:16]


def _check_text(what: str, text: object, job_id: str) -> None:
    if not isinstance(text, str):
        raise JobError(f"the {what} of job {job_id!r} is {text!r}: use text")
    if not text:
        raise JobError(f"job {job_id!r} has an empty {what}: give {what}=")
    if len(text) > LONGEST_NAME:
        raise JobError(
            f"the {what} of job {job_id[:40]!r} has {len(text)} characters: use at most {LONGEST_NAME}"
        )
    if not text.isprintable():
        # A newline would split the log line that the agent reads into two.
        raise JobError(
            f"the {what} {text!r} holds a newline or another unprintable character: remove it, logs are "
            "read line by line"
        )


def _check_options(job_id: str, trigger: object, max_instances: object) -> None:
    if not isinstance(trigger, due_times.Trigger):
        raise JobError(
            f"job {job_id!r} has no trigger but {trigger!r}: use every(...), cron(...) or once(...)"
        )
    if type(max_instances) is not int or max_instances < 1:
        raise JobError(f"job {job_id!r} has max_instances {max_instances!r}: use 1 or more")


def _check_span(job_id: str, what: str, span: object, least: timedelta) -> None:
    if not isinstance(span, timedelta) or span < least:
        more = "zero or more" if not least else "more than zero"
        raise JobError(f"job {job_id!r} has the {what} {span!r}: use a timedelta of {more}")


def _on_interrupted(job_id: str, text: str) -> OnInterrupted:
    try:
        return OnInterrupted(text)
    except ValueError:
        raise JobError(
            f"job {job_id!r} has on_interrupted {text!r}: use 'at_most_once' or 'at_least_once'"
        ) from None


def _takes_fire(job_id: str, func: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(func).parameters.values())
    except (TypeError, ValueError) as error:
        raise JobError(f"job {job_id!r} is not a function that can be called: {error}") from error
    if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
        raise JobError(f"job {job_id!r} is a generator, whose body nobody would run: take its yield out")
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p for p in parameters if p.default is p.empty and p.kind not in open_ended]
    if len(needed) > 1 or any(p.kind is p.KEYWORD_ONLY for p in needed):
        names = ", ".join(p.name for p in needed)
        raise JobError(
            f"job {job_id!r} takes ({names}): a job takes nothing, or the one parameter fire; bind the rest "
            "with functools.partial"
        )
    return bool(needed) or any(p.name == "fire" and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
