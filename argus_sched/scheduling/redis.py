"""Claims in Redis: the same promises as in Postgres, as far as one Redis server keeps its keys.

Weaker in one way that cannot be helped: replication is asynchronous, so a failover to a replica can lose a
claim, and an eviction policy can drop one. Where a Postgres is at hand, claim there.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from argus_sched.due_times import EPOCH
from argus_sched.errors import ClaimStoreError, MissingExtraError
from argus_sched.scheduling import redis_scripts as scripts
from argus_sched.scheduling.claims import (
    AutoDisabled,
    Batch,
    Beat,
    Orphan,
    Outcome,
    OutcomeUnknownError,
    Result,
    RunNow,
    TermView,
    Verdict,
)
from argus_sched.scheduling.job import SCHEDULED, Fire, Job

try:
    import redis
except ImportError as error:
    raise MissingExtraError("redis", "redis") from error

# A due time this much younger than the TTL is the oldest that may still be claimed (seconds).
MARGIN = 60
SEPARATOR = "\x1f"
TIMEOUT = 1.0

_log = logging.getLogger("argus_sched.scheduling")


class RedisStore:
    """`ClaimStore` over Redis; `record` notes in a database, if there is one, which store is in use."""

    name = "redis"

    def __init__(
        self,
        url: str,
        namespace: str,
        worker: str,
        *,
        ttl: int = 86_400,
        run_now_ttl: int = 3_600,
        silence: float = 6.0,
        record: Callable[[], None] = lambda: None,
    ) -> None:
        # It retries ten times by default: half a second of patience would become ten.
        # Typed as Any: redis-py annotates answers as bytes or text, whichever mode it is in.
        self._redis: Any = redis.Redis.from_url(
            url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, retry=None, decode_responses=True
        )
        self._prefix = f"argus:scheduler:{namespace}:"
        self._worker = worker
        self._ttl = ttl
        # The oldest claim is refused a little before its key may have gone; a short TTL has a short margin.
        self._margin = min(MARGIN, ttl // 2)
        self._run_now_ttl = run_now_ttl
        self._silence = silence
        self._record = record
        self._hash = ""
        names = ("CLAIM", "RECLAIM", "GIVE_BACK", "DISOWN", "CLOSE", "FINISH", "RUN_NOW")
        self._scripts = {name: self._redis.register_script(getattr(scripts, name)) for name in names}

    # A worker and its term.

    def open(self, jobs: Iterable[Job], schedule_hash: str) -> None:
        """Check the server, and make this worker known."""
        self._record()
        with self._asking():
            self._warn_of_eviction()
            self._hash = schedule_hash
            facts = SEPARATOR.join((schedule_hash, socket.gethostname(), str(os.getpid())))
            self._redis.hset(self._key("workers"), self._worker, facts)
        for job in jobs:
            if job.catch_up_window > timedelta(seconds=self._ttl - self._margin):
                _log.warning(
                    "job %s catches up %s, but its claims expire after %d s: raise fire_lock_ttl above it",
                    job.id,
                    job.catch_up_window,
                    self._ttl,
                )
        self.beat(True)

    def _warn_of_eviction(self) -> None:
        try:
            policy = self._redis.config_get("maxmemory-policy").get("maxmemory-policy", "noeviction")
        except redis.ResponseError:
            return
        if policy != "noeviction":
            _log.warning(
                "Redis may evict claims (maxmemory-policy %s): set it to noeviction, or claim in Postgres",
                policy,
            )

    def begin_term(
        self,
        epoch: int,  # noqa: ARG002 - nothing in Redis knows the epoch
        jobs: Sequence[Job],
        schedule_hash: str,
        now: datetime,
    ) -> TermView:
        """Start new and changed jobs from `now`; the others' watermarks say which are behind."""
        with self._asking():
            triggers = self._redis.hgetall(self._key("triggers"))
            marks = self._redis.hgetall(self._key("watermark"))
            before = self._redis.getset(self._key("hash"), schedule_hash)
            fresh = [job for job in jobs if triggers.get(job.id) != job.trigger_text or job.id not in marks]
            if fresh:
                self._redis.hset(self._key("triggers"), mapping={job.id: job.trigger_text for job in fresh})
                self._redis.hset(self._key("watermark"), mapping={job.id: _micros(now) for job in fresh})
        known = {job.id for job in jobs} - {job.id for job in fresh}
        behind = {}
        for job in jobs:
            if job.id in known:
                watermark = _instant(int(marks[job.id]))
                following = job.trigger.next_after(watermark)
                if following is not None and following <= now:
                    behind[job.id] = watermark
        return TermView(behind, before if before not in (None, schedule_hash) else None)

    def beat(self, active: bool) -> Beat:  # noqa: ARG002 - one pace for both
        """Renew this worker's key."""
        with self._asking():
            self._redis.set(self._key(f"worker:{self._worker}"), "1", px=int(self._silence * 1000))
            before = time.time()
            seconds, micros = self._redis.time()
            after = time.time()
        return Beat(float(seconds + micros / 1e6 - (before + after) / 2))

    def other_sets(self) -> Sequence[tuple[str, str, int]]:
        with self._asking():
            workers = self._redis.hgetall(self._key("workers"))
            found = []
            for instance, facts in workers.items():
                schedule_hash, host, pid = facts.split(SEPARATOR)
                alive = self._redis.exists(self._key(f"worker:{instance}"))
                if schedule_hash != self._hash and alive:
                    found.append((schedule_hash, host, int(pid)))
        return found

    def close(self) -> None:
        """Say that this worker is gone, and disconnect."""
        with self._asking():
            self._redis.delete(self._key(f"worker:{self._worker}"))
            self._redis.hdel(self._key("workers"), self._worker)
        self._redis.close()

    # Claims.

    def claim(self, batch: Batch) -> list[Verdict]:
        wants = chain.from_iterable(
            (
                want.job_id,
                _micros(want.due),
                want.origin,
                str(want.outcome),
                want.room,
                want.rank,
                int(want.waits),
                self._claim_name(want.due, want.origin),
            )
            for want in batch.wants
        )
        with self._asking(under_way=True):
            answers = self._call(
                "CLAIM", self._worker, batch.token, batch.epoch, self._ttl, self._margin, *wants
            )
        return [Verdict(answer) for answer in answers]

    def read_again(self, batch: Batch) -> list[Verdict]:
        """Claim again, then see whose token stands: what is ours by either attempt and still open is won."""
        verdicts = self.claim(batch)
        names = [f"fire:{want.job_id}:{self._claim_name(want.due, want.origin)}" for want in batch.wants]
        fires = [_name(Fire(want.due, want.job_id, origin=want.origin)) for want in batch.wants]
        with self._asking(under_way=True):
            owners = self._redis.mget([self._key(name) for name in names])
            runs = self._redis.hmget(self._key("open"), fires)
        ours, running = f"{self._worker}|{batch.token}", f"running|{self._worker}|"
        return [
            Verdict.WON
            if verdict is Verdict.LOST
            and owner == ours
            and (want.outcome is not Outcome.RUNNING or (run or "").startswith(running))
            else verdict
            for want, verdict, owner, run in zip(batch.wants, verdicts, owners, runs, strict=True)
        ]

    def reclaim(self, orphans: Sequence[Orphan], epoch: int) -> list[Fire | None]:
        facts = chain.from_iterable(
            (_name(o.fire), "running" if o.dead else "given_back", o.worker, o.fire.attempt) for o in orphans
        )
        with self._asking(under_way=True):
            attempts = self._call("RECLAIM", self._worker, epoch, *facts)
        return [
            Fire(o.fire.due, o.fire.job_id, epoch, int(attempt), o.fire.origin) if attempt else None
            for o, attempt in zip(orphans, attempts, strict=True)
        ]

    def give_back(self, fires: Sequence[Fire]) -> None:
        facts = chain.from_iterable((_name(fire), fire.attempt) for fire in fires)
        with self._asking():
            self._call("GIVE_BACK", self._worker, *facts)

    def disown(self, batch: Batch) -> None:
        names = [_name(Fire(want.due, want.job_id, origin=want.origin)) for want in batch.wants]
        with self._asking():
            self._call("DISOWN", self._worker, batch.token, *names)

    def run_now(self, job: Job, due: datetime, origin: str) -> RunNow:
        fire = Fire(due, job.id, origin=origin)
        limits = (job.max_instances, self._run_now_ttl)
        with self._asking():
            answer, *facts = self._call("RUN_NOW", self._worker, job.id, _name(fire), origin, *limits)
        if answer == "won":
            return RunNow(fire=fire)
        owner, since = facts or ("", "0")
        return RunNow(reason=answer, owner=owner, started_at=_instant(int(since)) if int(since) else None)

    # Runs.

    def finish(self, results: Sequence[Result], max_failures: Mapping[str, int]) -> list[AutoDisabled]:
        switched_off = []
        with self._asking():
            for result in results:
                fire = result.fire
                failures = self._call(
                    "FINISH",
                    self._worker,
                    _name(fire),
                    fire.attempt,
                    fire.job_id,
                    fire.origin,
                    str(result.outcome),
                    result.finished_at.isoformat(),
                    result.error,
                    max_failures[fire.job_id],
                )
                if failures:
                    reason = result.error or str(result.outcome)
                    switched_off.append(AutoDisabled(fire.job_id, int(failures), reason))
        return switched_off

    def orphans(self, dead_after: timedelta) -> list[Orphan]:  # noqa: ARG002 - the key's life says it
        """Open runs that were given back, or whose worker's key expired, which is its heartbeat's age."""
        with self._asking():
            found = self._open()
            alive = {
                worker: bool(self._redis.exists(self._key(f"worker:{worker}")))
                for worker in {orphan.worker for orphan in found}
            }
        return [o for o in found if not o.dead or (o.worker != self._worker and not alive[o.worker])]

    def interrupt(self, orphans: Sequence[Orphan]) -> list[Orphan]:
        closed = self._close(orphans, Outcome.INTERRUPTED, "running")
        return [orphan for orphan, done in zip(orphans, closed, strict=True) if done]

    def expire(self, orphans: Sequence[Orphan]) -> None:
        self._close(orphans, Outcome.MISSED, "given_back")

    def forgotten(self, known: Sequence[Fire], older_than: timedelta) -> list[Fire]:
        names = {(_name(fire), fire.attempt) for fire in known}
        with self._asking():
            seconds, micros = self._redis.time()
            found = self._open()
        oldest = _instant(seconds * 1_000_000 + micros) - older_than
        return [
            o.fire
            for o in found
            if o.worker == self._worker
            and o.dead
            and o.claimed_at < oldest
            and (_name(o.fire), o.fire.attempt) not in names
        ]

    def prune(self, retention: timedelta, batch: int) -> int:  # noqa: ARG002
        """Nothing to do: claims expire by themselves."""
        return 0

    # Switches.

    def switch(self, job_id: str, enabled: bool, who: str, reason: str, now: datetime) -> bool:
        off = self._key("off")
        with self._asking():
            if not enabled:
                return bool(self._redis.hsetnx(off, job_id, f"{who}: {reason}"))
            if not self._redis.hexists(off, job_id):
                return False
            self._redis.hset(self._key("watermark"), job_id, _micros(now))
            self._redis.hset(self._key(f"state:{job_id}"), "consecutive_failures", 0)
            return bool(self._redis.hdel(off, job_id))

    def disabled(self) -> Mapping[str, str]:
        with self._asking():
            return dict(self._redis.hgetall(self._key("off")))

    def state(self, job_id: str) -> Mapping[str, str]:
        """The job's run state: last_status, last_run, run_count, last_error, consecutive_failures."""
        with self._asking():
            return dict(self._redis.hgetall(self._key(f"state:{job_id}")))

    # Small things.

    def _open(self) -> list[Orphan]:
        """Every open run; `dead` here says only that it is marked as running."""
        found = []
        for name, text in self._redis.hgetall(self._key("open")).items():
            job_id, due, origin = name.split(SEPARATOR)
            state, worker, attempt, epoch, claimed_at, _ = text.split("|")
            fire = Fire(_instant(int(due)), job_id, int(epoch), int(attempt), origin)
            found.append(Orphan(fire, worker, state == "running", _instant(int(claimed_at))))
        return sorted(found, key=lambda orphan: orphan.fire.due)

    def _close(self, orphans: Sequence[Orphan], outcome: Outcome, was: str) -> list[int]:
        facts = chain.from_iterable(
            (_name(o.fire), was, o.worker, o.fire.attempt, o.fire.job_id) for o in orphans
        )
        with self._asking():
            answers: list[int] = self._call("CLOSE", str(outcome), *facts)
        return answers

    def _claim_name(self, due: datetime, origin: str) -> str:
        return due.isoformat() if origin == SCHEDULED else f"{due.isoformat()}:{origin}"

    def _key(self, name: str) -> str:
        return self._prefix + name

    def _call(self, script: str, *arguments: Any) -> Any:
        return self._scripts[script](keys=[self._prefix], args=list(arguments))

    @contextlib.contextmanager
    def _asking(self, under_way: bool = False) -> Iterator[None]:
        """Map redis-py's errors; `under_way` for claims, whose outcome a broken connection leaves open."""
        try:
            yield
        except redis.ResponseError as error:
            raise ClaimStoreError(f"Redis refused a step: {error}") from error
        except redis.RedisError as error:
            kind = OutcomeUnknownError if under_way else ClaimStoreError
            raise kind(f"Redis cannot be reached: {error}") from error


def _micros(instant: datetime) -> int:
    return (instant - EPOCH) // timedelta(microseconds=1)


def _instant(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def _name(fire: Fire) -> str:
    return SEPARATOR.join((fire.job_id, str(_micros(fire.due)), fire.origin))
