"""What a lock's session is set to, and what it must turn out to be before anyone relies on it.

The lease is a setting of the session, so it is read back: a proxy or a default of the role may override it.
A pooler would share the server process, and with it the lock; a replica has locks of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from argus_sched.errors import LeadershipRefused, SchemaError
from argus_sched.postgres.connection import Session, StatementError
from argus_sched.scheduling.leadership import Server, Timing

logger = logging.getLogger("argus_sched.scheduling")

PATIENCE = 2.0  # seconds for the answers that no lease depends on
OLDEST_SERVER = 12
LEASE_SINCE = 140_000
MARK = "argus_sched.session"
# Longer than the heir's wait: a shorter one would cancel each wait and log an error.
_STATEMENT_TIMEOUT = 2.0


def client_parameters(timing: Timing, name: str) -> dict[str, str | int]:
    """What libpq is told: we give a silent server up within the trust, so before it gives us up."""
    return {
        "application_name": name,
        "client_encoding": "UTF8",
        "keepalives": 1,
        "keepalives_idle": _whole_seconds(timing.trust / 3),
        "keepalives_interval": _whole_seconds(timing.trust / 3),
        "keepalives_count": 2,
        "tcp_user_timeout": _milliseconds(timing.trust),
    }


def session_settings(timing: Timing, server_version: int) -> dict[str, int]:
    """What the server is told, in the unit each setting has; the lease is `idle_session_timeout`."""
    lease = (
        {"idle_session_timeout": _milliseconds(timing.lease or 0)} if server_version >= LEASE_SINCE else {}
    )
    return {
        **lease,
        "idle_in_transaction_session_timeout": _milliseconds(timing.horizon),
        "statement_timeout": _milliseconds(_STATEMENT_TIMEOUT),
        "tcp_keepalives_idle": _whole_seconds(timing.horizon / 3),
        "tcp_keepalives_interval": _whole_seconds(timing.horizon / 3),
        "tcp_keepalives_count": 2,
        "tcp_user_timeout": _milliseconds(timing.horizon),
    }


def refuse_unfit(session: Session, *, direct: bool) -> None:
    """Raise LeadershipRefused for a pooler (if `direct`), a replica, or a server that is too old.

    Asked before anything is set: on a pooled server process a setting would stay behind for its next user.
    """
    address, major = session.address, session.server_version // 10_000
    ((pid, in_recovery),) = session.ask("SELECT pg_backend_pid(), pg_is_in_recovery()", timeout=PATIENCE)
    if direct and pid != str(session.announced_pid):
        raise LeadershipRefused(pooled(address))
    if in_recovery == "t":
        raise LeadershipRefused(
            f"{address} is a replica: a lock taken there does not exclude the primary's; "
            "point the DSN at the primary"
        )
    if major < OLDEST_SERVER:
        raise LeadershipRefused(f"{address} runs PostgreSQL {major}: {OLDEST_SERVER} is the oldest supported")


def configure(session: Session, settings: Mapping[str, int], token: str, *, direct: bool) -> None:
    """Set the session up, mark it with `token`, and refuse by LeadershipRefused what does not read back."""
    wanted = {MARK: token, **settings}
    calls = ", ".join(f"set_config(${2 * n + 1}, ${2 * n + 2}, false)" for n in range(len(wanted)))
    session.ask(f"SELECT {calls}", *[part for pair in wanted.items() for part in pair], timeout=PATIENCE)
    reads = ", ".join(f"current_setting('{name}', true)" for name in wanted)
    ((mark, *found),) = session.ask(f"SELECT {reads}", timeout=PATIENCE)
    if direct and mark != token:
        raise LeadershipRefused(pooled(session.address))
    for (name, value), text in zip(settings.items(), found, strict=True):
        _refuse_override(session.address, name, value, text or "")


def pooled(address: str) -> str:
    """The sentence that refuses a connection through a pooler."""
    return (
        f"{address} is reached through a connection pooler such as pgbouncer, where two workers can share "
        "one server process and both hold its lock: give the scheduler a DSN that leads to the server itself"
    )


def check_namespace(session: Session, namespace: str, key: int) -> None:
    """Raise unless the leader's record can be written here and the key is this namespace's own.

    SchemaError when the table is missing, LeadershipRefused when rights are, or when the key belongs to
    another namespace, which would otherwise wait for ever.
    """
    ((role, database, exists, usable),) = session.ask(_RIGHTS, timeout=PATIENCE)
    if exists != "t":
        raise SchemaError(
            f"table argus_sched.leader is missing in database {database}: run  argus-sched scheduler migrate"
        )
    if usable != "t":
        raise LeadershipRefused(
            f"role {role} lacks rights on argus_sched.leader in database {database}: "
            f"GRANT USAGE ON SCHEMA argus_sched TO {role}; "
            f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA argus_sched TO {role}"
        )
    for owner, number in session.ask(_RECORDED, namespace, key, timeout=PATIENCE):
        if owner != namespace:
            raise LeadershipRefused(taken(key, str(owner), namespace))
        if number != str(key):
            raise LeadershipRefused(
                f"namespace {namespace!r} leads under advisory key {number} in this database, not {key}: "
                "workers with different keys would all lead; use one key, or stop every worker and delete "
                "the namespace's row from argus_sched.leader"
            )


def taken(key: int, owner: str, namespace: str) -> str:
    """The sentence that refuses a key which another namespace uses."""
    return (
        f"advisory key {key} belongs to namespace {owner!r} in this database, so namespace {namespace!r} "
        "would never lead: give it a key of its own"
    )


def server_of(session: Session) -> Server | None:
    """Which server this is; None where functions that tell it are not granted or do not exist."""
    try:
        ((identifier, timeline),) = session.ask(_SERVER, timeout=PATIENCE)
    except StatementError:
        return None
    return Server(str(identifier), int(str(timeline), 16))


def _refuse_override(address: str, name: str, wanted: int, text: str) -> None:
    if name.startswith("tcp_"):
        # On a Unix socket they do not exist and read 0.
        if text not in ("0", str(wanted)):
            logger.warning("%s reads %s on %s where %d was set", name, text, address, wanted)
        return
    if duration_in_milliseconds(text) != wanted:
        raise LeadershipRefused(
            f"{name} reads {text or 'nothing'} on {address} where {wanted} ms was set: something between us "
            "and the server overrides it, so a silent leader would not be ended in time"
        )


_UNITS = {"": 1, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_in_milliseconds(text: str) -> int | None:
    """A setting such as `3s` or `10min` in milliseconds; None for what is no duration."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = _UNITS.get(text[len(number) :])
    return int(number) * unit if unit and number.isdigit() else None


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _whole_seconds(seconds: float) -> int:
    return max(1, int(seconds))


# Asked of the catalogue, since a statement that fails for want of a table or a right is logged as an error.
_RIGHTS = """
SELECT current_user, current_database(), c.oid IS NOT NULL,
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
       AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
  FROM (VALUES (1)) AS one
  LEFT JOIN pg_namespace n ON n.nspname = 'argus_sched'
  LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'leader'
"""
_RECORDED = "SELECT namespace, lock_key FROM argus_sched.leader WHERE namespace = $1 OR lock_key = $2"
_SERVER = """
SELECT system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) FROM pg_control_system()
"""
