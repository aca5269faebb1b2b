"""The parts of one life of a scheduler, chosen by its settings and put together."""

from __future__ import annotations

import functools
from collections.abc import Callable

from argus_sched.clock import Clock
from argus_sched.postgres.claim_store import PostgresStore, note_store
from argus_sched.postgres.leader_lock import open_leader_lock
from argus_sched.scheduling.auto_disable import AutoDisable
from argus_sched.scheduling.claims import ClaimStore
from argus_sched.scheduling.elector import Elector
from argus_sched.scheduling.events import Events
from argus_sched.scheduling.identity import Worker
from argus_sched.scheduling.job import JobRegistry
from argus_sched.scheduling.leader_services import LeaderServices
from argus_sched.scheduling.machine import Machine
from argus_sched.scheduling.metrics import Metrics
from argus_sched.scheduling.settings import Claims, Settings
from argus_sched.scheduling.unclaimed import Unclaimed


def build(
    settings: Settings,
    registry: JobRegistry,
    services: LeaderServices,
    events: Events,
    metrics: Metrics,
    clock: Clock,
    *,
    instance: str,
    auto_disable: AutoDisable,
) -> Machine:
    """A machine that is not started yet; raises MissingExtraError for an optional library that is absent."""
    new_elector = functools.partial(elector, settings, registry, events, clock, instance)
    return Machine(
        settings,
        registry,
        services,
        events,
        metrics,
        clock,
        instance=instance,
        store=claim_store(settings, instance),
        auto_disable=auto_disable,
        new_elector=new_elector if settings.leads else None,
    )


def claim_store(settings: Settings, instance: str) -> ClaimStore:
    """Where this worker claims its fires."""
    # A worker that was silent for two leases counts as dead, and its own lock must be free by then.
    silence = 2 * settings.effective_timing.horizon
    if not settings.guarded_by_claims:
        return Unclaimed()
    if settings.claims == Claims.REDIS:
        return _redis_store(settings, instance, silence)
    return PostgresStore(
        settings.dsn or "", settings.namespace, instance, silence=silence, migrate=settings.migrate
    )


def _redis_store(settings: Settings, instance: str, silence: float) -> ClaimStore:
    from argus_sched.scheduling.redis import RedisStore

    note = functools.partial(
        note_store, settings.dsn or "", settings.namespace, instance, RedisStore.name, settings.migrate
    )
    return RedisStore(
        settings.redis_url or "",
        settings.namespace,
        instance,
        ttl=settings.fire_lock_ttl,
        run_now_ttl=settings.run_now_ttl,
        silence=silence,
        record=note if settings.dsn else lambda: None,
    )


def elector(
    settings: Settings,
    registry: JobRegistry,
    events: Events,
    clock: Clock,
    instance: str,
    on_promote: Callable[..., None],
    on_demote: Callable[..., None],
) -> Elector:
    """This worker's part in the election, over a dedicated session with Postgres."""
    timing = settings.effective_timing
    worker = Worker(settings.namespace, instance, schedule_hash=registry.schedule_hash())
    return Elector(
        functools.partial(open_leader_lock, settings.dsn or "", settings.key, timing, worker),
        timing,
        namespace=settings.namespace,
        instance=instance,
        on_promote=on_promote,
        on_demote=on_demote,
        clock=clock,
        key=settings.key,
        emit=events,
        candidate=settings.candidate,
        watch="watch" not in settings.without,
        tick="tick" not in settings.without,
    )
