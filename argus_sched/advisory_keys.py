"""Postgres advisory lock keys: the registry of the numbers in use, and how a key looks in pg_locks.

A bigint key is stored as classid = high 32 bits, objid = low 32 bits (both unsigned), objsubid = 1; the
two-integer form has objsubid = 2. Keys live per database. A reused number silently disables whichever
side loses the race, so every key of this project is listed here once and a test refuses a repetition.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

MASK = 0xFFFF_FFFF
MIN_KEY, MAX_KEY = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class AdvisoryKey:
    """One registered number: who takes it, at which level, and what holding it means."""

    number: int
    owner: str
    level: str
    meaning: str


LEADER = AdvisoryKey(911_000_001, "scheduling.elector", "session", "this process owns the schedule")
DRAIN = AdvisoryKey(911_000_002, "reserved", "session", "reserved for a drain loop")
ADMISSION = AdvisoryKey(
    911_000_003,
    "admission of the application",
    "transaction",
    "serialises admission per tenant (two-key form)",
)
MIGRATION = AdvisoryKey(8_110_731, "migrations", "session", "one migration run at a time")

REGISTRY = (LEADER, DRAIN, ADMISSION, MIGRATION)


def halves(key: int) -> tuple[int, int]:
    """(classid, objid) of a bigint key as pg_locks shows them, both unsigned 32 bit."""
    if not MIN_KEY <= key <= MAX_KEY:
        raise ValueError(f"advisory key {key} is outside the range of a bigint")
    return (key >> 32) & MASK, key & MASK


def key_of(classid: int, objid: int) -> int:
    """The signed bigint key behind a row of pg_locks with objsubid 1."""
    unsigned = ((classid & MASK) << 32) | (objid & MASK)
    return unsigned - 2**64 if unsigned >= 2**63 else unsigned


def derived_key(*parts: object) -> int:
    """A signed bigint from a hash of `parts`, for locks that belong to a name (an heir, one worker)."""
    text = "\x1f".join(["argus_sched", *map(str, parts)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


def heir_key(leader_key: int) -> int:
    """The key that the one standby holds which waits on `leader_key` itself."""
    return derived_key("heir", leader_key)


def worker_key(instance: str) -> int:
    """The key a worker holds for its lifetime, so that its death is visible to the database."""
    return derived_key("worker", instance)
