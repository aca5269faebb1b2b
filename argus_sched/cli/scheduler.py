"""Run, migrate, inspect and steer the scheduler."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argus_sched.scheduling.scheduler import Scheduler

ENVIRONMENT = "ARGUS_SCHEDULER_DSN"
LONGEST_COOLDOWN = 86_400


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands and their arguments."""
    parser.set_defaults(run=run)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _target(_command(commands, "run", run_worker, "run a worker without a web server"))
    _database(_command(commands, "migrate", migrate, "create or upgrade the tables"))
    _listing(_command(commands, "leader", show_leader, "who leads, and whether the lock is held"))
    _listing(_command(commands, "jobs", show_jobs, "the jobs on record, and those switched off"))
    one = _listing(_command(commands, "runs", show_runs, "the latest runs, newest first"))
    one.add_argument("--job", metavar="ID", help="only this job")
    one.add_argument("--outcome", help="only this outcome, such as error or interrupted")
    one.add_argument("--limit", type=_count, default=20, metavar="N", help="at most so many (default: 20)")
    one = _command(commands, "resign", resign, "ask the leader to let another worker lead")
    _database(one)
    one.add_argument("--namespace", required=True, help="whose leader")
    one.add_argument(
        "--cooldown",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="how long it may not lead again (default: 60)",
    )
    one = _target(_command(commands, "pack", pack, "write the agent's check pack from the declared jobs"))
    one.add_argument(
        "--check", metavar="FILE", help="compare with this pack instead; exit 2 when they differ"
    )
    one.add_argument("--container", metavar="NAME", help="the container whose log the agent reads")
    one.add_argument("--dsn-env", metavar="VAR", help="the variable that holds the agent's DSN")


def _count(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 1 <= number < 2**31:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 to 2,147,483,647")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_COOLDOWN:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to {LONGEST_COOLDOWN} seconds")
    return seconds


def _command(commands: Any, name: str, call: Callable[[argparse.Namespace], int], text: str) -> Any:
    parser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(call=call)
    return parser


def _target(parser: Any) -> Any:
    where = "where the Scheduler is, such as app.jobs:scheduler"
    parser.add_argument("target", metavar="MODULE:ATTR", help=where)
    return parser


def _database(parser: Any) -> Any:
    parser.add_argument("--dsn", help=f"the database (a password in it shows in ps); else ${ENVIRONMENT}")
    parser.add_argument(
        "--dsn-env", metavar="VAR", default=ENVIRONMENT, help="the variable that holds the DSN"
    )
    return parser


def _listing(parser: Any) -> Any:
    parser.add_argument("--namespace", help="only this namespace")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    return _database(parser)


def run(args: argparse.Namespace) -> int:
    """Run the sub-command that was named; its exit code."""
    code: int = args.call(args)
    return code


def run_worker(args: argparse.Namespace) -> int:
    """Run the scheduler until SIGTERM or SIGINT; 0 when its runs ended in time, else 1.

    As in a web application, a job that was declared wrongly does not keep the others from running.
    """
    import logging
    import signal
    import threading

    from argus_sched.errors import SchedulerError

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    scheduler = load(args.target)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    scheduler.start()
    if not scheduler.running:
        raise SchedulerError(f"nothing can run: {scheduler.status().problem}")
    stop.wait()
    return 0 if scheduler.stop() else 1


def migrate(args: argparse.Namespace) -> int:
    """Apply what is missing and say what that was."""
    from argus_sched.postgres import overview

    for name in overview.migrate(_dsn(args)):
        print(f"applied {name}")
    print("the tables are up to date")
    return 0


def show_leader(args: argparse.Namespace) -> int:
    """Print the leaders; 0 when each holds its lock, else 2."""
    from argus_sched.cli import tables
    from argus_sched.postgres import overview

    rows = overview.leaders(_dsn(args), args.namespace)
    columns = ("namespace", "epoch", "host", "pid", "elected_at", "lock_key", "holds")
    tables.show(rows, columns, args.output)
    return 0 if rows and all(row["holds"] for row in rows) else 2


def show_jobs(args: argparse.Namespace) -> int:
    """Print the jobs on record."""
    from argus_sched.cli import tables
    from argus_sched.postgres import overview

    rows = overview.jobs(_dsn(args), args.namespace)
    for row in rows:
        row["state"] = _state(row)
    columns = (
        "namespace",
        "job_id",
        "name",
        "trigger",
        "watermark",
        "next_due",
        "consecutive_failures",
        "state",
    )
    tables.show(rows, columns, args.output)
    return 0


def _state(row: dict[str, Any]) -> str:
    if not row["enabled"]:
        return f"off, by {row['disabled_by']}: {row['disabled_reason']}"
    return "on" if row["declared"] else "no longer declared"


def show_runs(args: argparse.Namespace) -> int:
    """Print the latest runs, by when they were claimed: the start is known only of those that ended."""
    from argus_sched.cli import tables
    from argus_sched.postgres import overview

    rows = overview.runs(_dsn(args), args.namespace, args.job, args.outcome, args.limit)
    columns = (
        "job_id",
        "due",
        "outcome",
        "attempt",
        "missed",
        "claimed_at",
        "finished_at",
        "worker",
        "error",
    )
    tables.show(rows, columns, args.output)
    return 0


def resign(args: argparse.Namespace) -> int:
    """Ask the leader to resign and say who it is."""
    from argus_sched.postgres import overview

    found = overview.resign(_dsn(args), args.namespace, args.cooldown)
    print(f"asked {found['host']}:{found['pid']} to let another worker lead for {args.cooldown:g} s")
    return 0


def pack(args: argparse.Namespace) -> int:
    """Write the pack, or compare with one: 0 when it fits the declared jobs, else 2 and what differs."""
    from argus_sched.cli import scheduler_pack
    from argus_sched.errors import SettingsError

    scheduler = load(args.target)
    if scheduler.problems:
        raise SettingsError("; ".join(scheduler.problems))
    if args.check is None:
        print(scheduler_pack.text_of(scheduler, args.container, args.dsn_env), end="")
        return 0
    differences = scheduler_pack.differences(scheduler, args.check)
    for line in differences:
        print(line)
    return 2 if differences else 0


def load(target: str) -> Scheduler:
    """The Scheduler at MODULE:ATTR, from the working directory on; SettingsError when there is none."""
    import importlib
    import sys

    from argus_sched.errors import SettingsError
    from argus_sched.scheduling.scheduler import Scheduler

    module_name, _, path = target.partition(":")
    if not module_name or not path:
        raise SettingsError(f"{target!r} names no scheduler: use MODULE:ATTR, such as app.jobs:scheduler")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module_name)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"there is no {target}: {error}") from error
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise SettingsError(f"{module_name} cannot be imported: {what}") from error
    if not isinstance(found, Scheduler):
        raise SettingsError(f"{target} is {type(found).__name__}, not a Scheduler")
    return found


def _dsn(args: argparse.Namespace) -> str:
    import os

    from argus_sched.errors import SettingsError

    dsn = args.dsn or os.environ.get(args.dsn_env)
    if not dsn:
        raise SettingsError(f"no database: give --dsn, or set {args.dsn_env}")
    return str(dsn)
