"""The fault matrix as a table written by hand: what each situation must and must not tell people.

`about` says whom: the job it happens to, every job, the log (its node in the target tree), the scheduler's
lines in it, the lock, the database, the file of another pack. Each of them gets exactly `alerts` alerts with `verdict` and `recoveries`
ends; everybody else gets none. `copies` is how often a message may come twice, where nobody can know whether
it arrived. Nothing here is computed from the agent.
"""

from __future__ import annotations

from dataclasses import dataclass

from argus_sched.agent.status import Status

CRIT, UNKNOWN, WARN, SILENT = Status.CRIT, Status.UNKNOWN, Status.WARN, Status.OK


@dataclass(frozen=True)
class Cell:
    """One situation, and what must be told of it."""

    name: str
    verdict: Status = SILENT
    about: str = ""
    alerts: int = 0
    recoveries: int = 0
    copies: int = 0


def _told(
    name: str, verdict: Status, about: str, alerts: int = 1, recoveries: int = 1, copies: int = 0
) -> Cell:
    return Cell(name, verdict, about, alerts, recoveries, copies)


CELLS: tuple[Cell, ...] = (
    # jobs
    Cell("healthy"),
    _told("job dead", CRIT, "job"),
    _told("cron job dead", CRIT, "job"),
    Cell("late inside grace"),
    Cell("early by a second"),
    Cell("long-running"),
    _told("running longer than max_run", WARN, "job"),
    Cell("overlapping"),
    _told("raising once", WARN, "job"),
    _told("raising for ever", CRIT, "job", alerts=2),  # WARN at the first failure, worse at the third
    _told("duplicate in two containers", WARN, "job"),
    Cell("same name, two jobs"),
    _told("scheduler paused", CRIT, "jobs"),
    Cell("disabled by a person"),
    _told("disabled by the scheduler", WARN, "job"),
    Cell("switched off in the pack"),
    _told("dead, then removed from the pack", CRIT, "job"),
    Cell("new job"),
    _told("new job that never runs", CRIT, "new", recoveries=0),
    _told("renamed", CRIT, "job"),
    # clocks
    Cell("DST forward"),
    Cell("DST back"),
    Cell("host clock 5 s ahead"),
    Cell("host clock 5 s behind"),
    Cell("host clock 1 h ahead"),
    Cell("host clock 1 h behind"),
    _told("job dead, host clock 1 h behind", CRIT, "job"),
    _told("job dead, host clock 1 h ahead", CRIT, "job"),
    Cell("agent's clock stepped 1 h forward and back"),
    Cell("agent's clock stepped 1 h back and forward"),
    Cell("host's clock set back by 1 h"),
    Cell("host in a wrong time zone"),
    # the log and its daemon
    _told("daemon down", UNKNOWN, "log"),
    _told(
        "daemon down while a job dies", UNKNOWN, "log"
    ),  # and the job is told when the log can be read again
    _told("daemon never ends its answer", UNKNOWN, "log"),
    Cell("EOF inside a frame, once"),
    _told("EOF inside a frame", UNKNOWN, "log"),
    Cell("frame of type 3, once"),
    _told("frame of type 3", UNKNOWN, "log"),
    Cell("corrupt record"),
    Cell("corrupt record in the file"),
    Cell("partial line"),
    Cell("run line behind 40 KiB"),
    Cell("forged run line in a long line"),
    Cell("TTY"),
    Cell("rotation now"),
    Cell("max-file 1 vanishes"),
    Cell("truncated file"),
    _told("driver none", UNKNOWN, "log"),
    Cell("non-blocking loss"),
    _told("INFO off since a deploy", UNKNOWN, "lines"),
    Cell("log flood"),
    # containers
    Cell("recreated"),
    Cell("recreated again and again"),
    Cell("recreated just before a run"),
    Cell("restarted"),
    _told("recreated while a job is dead", CRIT, "job"),
    _told("stopped", CRIT, "jobs"),
    _told("removed", UNKNOWN, "log"),
    Cell("scaled to 3"),
    # the lock and its database
    _told("database down", UNKNOWN, "database"),
    _told("wrong password", UNKNOWN, "database"),
    _told("no pg_monitor", UNKNOWN, "lock"),
    Cell("lock held by one"),
    _told("lock held by nobody", CRIT, "lock"),
    _told("lock held by two", CRIT, "lock"),
    _told("lock's key in another database", CRIT, "lock"),
    Cell("holder in a short statement"),
    _told("holder active", WARN, "lock"),
    _told("holder idle in transaction", WARN, "lock", alerts=2),  # WARN, and CRIT after a minute
    _told("holder through a pooler", CRIT, "lock"),
    Cell("failover in progress"),
    # the agent
    Cell("agent asleep for six hours"),
    Cell("agent asleep for six hours, deployed meanwhile"),
    _told("agent asleep while a job dies", CRIT, "job"),
    _told("agent killed before the send", CRIT, "job"),
    _told("agent killed after the send", CRIT, "job", copies=1),
    _told("agent killed in the middle of a pass", CRIT, "job"),
    Cell("state file lost"),
    _told("state file lost during an incident", CRIT, "job", alerts=2),
    _told("state file corrupt", CRIT, "job", alerts=2),  # told without it, and again when it is back
    _told("state file of a newer version", CRIT, "job", alerts=2),
    _told("disk full", CRIT, "job", alerts=2),
    Cell("config invalid"),
    _told("one pack of two invalid", UNKNOWN, "pack"),
    # the channel
    _told("Telegram 400", CRIT, "job"),
    _told("Telegram 401", CRIT, "job"),
    _told("Telegram 403", CRIT, "job"),
    _told("Telegram 429", CRIT, "job"),
    _told("Telegram 500", CRIT, "job"),
    _told("Telegram times out but delivers", CRIT, "job", copies=1),
    _told("Telegram chat migrated", CRIT, "job"),
    _told("Telegram topic deleted", CRIT, "job"),
    _told("Telegram away for an hour", CRIT, "job"),
)
