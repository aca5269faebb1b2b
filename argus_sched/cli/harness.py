"""Kill, freeze and cut real workers of the scheduler, and judge from outside what became of their jobs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argus_sched.harness.report import Record
    from argus_sched.harness.settings import RunSettings

HELD, VIOLATED = 0, 1


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the four commands."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=type(parser))
    _configure_run(commands.add_parser("run", help="start workers, do faults, judge"))
    listing = commands.add_parser("list", help="every fault, profile and guard, and what it is")
    listing.set_defaults(run=_list)
    replay = commands.add_parser("replay", help="the same run again: same seed, same order")
    replay.add_argument("report", metavar="REPORT", type=Path, help="the folder that run --report wrote")
    replay.add_argument("--dsn", help="the database, where the first run used one of yours")
    _configure_output(replay)
    replay.set_defaults(run=_replay)
    _configure_failover(
        commands.add_parser("failover", help="one fault by hand against a running application")
    )


def _configure_run(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--workers", metavar="N", type=int, default=3)
    add("--jobs", metavar="N", type=int, default=20)
    add(
        "--duration",
        metavar="TIME",
        type=_seconds,
        default=60.0,
        help="go on with faults for so long (30s, 10m, 1h)",
    )
    add("--faults", metavar="NAMES", help="comma separated, or none; without it all that this machine can do")
    add("--seed", metavar="N", type=int, help="order and spacing of the faults; without it a random one")
    add("--profile", choices=("default", "fast", "recipe"), default="default")
    add("--coordination", choices=("leader", "claims", "redis"), default="leader")
    add("--dsn", help="a database to use; without it a throw-away Postgres is started")
    add(
        "--lines", choices=("proxy", "namespaces"), default="proxy", help="how a line goes silent; see `list`"
    )
    add("--without", metavar="GUARDS", default="", help="comma separated guards to switch off; see `list`")
    add("--uvicorn", action="store_true", help="two workers under one uvicorn instead of plain processes")
    add("--agent", action="store_true", help="run the monitoring agent beside it, and judge it too")
    add("--docker", action="store_true", help="each worker in a container")
    _configure_output(parser)
    parser.set_defaults(run=_run)


def _configure_output(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--report",
        metavar="DIR",
        type=Path,
        dest="into",
        help="write report.html, report.json and history.jsonl",
    )
    add("--output", choices=("text", "json"), default="text")
    add("--strict", action="store_true", help="a missed bound is a violation too")


def _configure_failover(parser: argparse.ArgumentParser) -> None:
    faults = parser.add_mutually_exclusive_group(required=True)
    faults.add_argument(
        "--kill", action="store_const", const="kill", dest="fault", help="kill -9 of the leader"
    )
    faults.add_argument(
        "--terminate", action="store_const", const="terminate", dest="fault", help="end its session"
    )
    faults.add_argument(
        "--freeze", action="store_const", const="freeze", dest="fault", help="SIGSTOP, then SIGCONT"
    )
    faults.add_argument(
        "--partition", action="store_const", const="partition", dest="fault", help="drop its packets"
    )
    parser.add_argument("--dsn", required=True, help="the application's database")
    parser.add_argument("--key", type=int, help="the scheduler's lock (default 911000001)")
    parser.add_argument("--seconds", type=float, default=30.0, help="give up waiting after so many seconds")
    parser.set_defaults(run=_failover)


def _run(args: argparse.Namespace) -> int:
    import random

    from argus_sched.harness.arena import possible_faults
    from argus_sched.harness.settings import RunSettings

    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1, 1_000_000)
    elects = args.coordination == "leader"
    faults = possible_faults(args.dsn, elects=elects) if args.faults is None else _names(args.faults)
    settings = RunSettings(
        workers=args.workers,
        jobs=args.jobs,
        duration=args.duration,
        faults=faults,
        seed=seed,
        profile=args.profile,
        coordination=args.coordination,
        dsn=args.dsn,
        lines=args.lines,
        without=_names(args.without),
        uvicorn=args.uvicorn,
        docker=args.docker,
        agent=args.agent,
    )
    return _carry_out(settings, args)


def _replay(args: argparse.Namespace) -> int:
    from argus_sched.harness.archive import settings_of

    return _carry_out(settings_of(args.report, args.dsn), args)


def _carry_out(settings: RunSettings, args: argparse.Namespace) -> int:
    from contextlib import ExitStack

    from argus_sched.errors import ArgusError
    from argus_sched.harness import archive
    from argus_sched.harness.aftermath import one_folder
    from argus_sched.harness.console import Console, ending_cleanly
    from argus_sched.harness.run import run

    console = Console(sys.stderr if args.output == "json" else sys.stdout)
    with ExitStack() as stack:
        stack.enter_context(ending_cleanly())
        into = stack.enter_context(archive.place(args.into, "")) if args.into else None
        folder = stack.enter_context(one_folder("argus-run-"))
        try:
            record = run(settings, folder, console.tell)
        except ArgusError:
            if into is not None and (logs := archive.keep_logs(folder / "logs", into)):
                console.tell(f"the workers' logs are in {logs}")
            raise
        # The verdict of an hour is told before the disk has its chance to refuse the report.
        _print(record, args.output)
        if into is not None:
            page = archive.keep(record, into, folder / "logs")
            print(f"report        {page}", file=sys.stderr if args.output == "json" else sys.stdout)
    bad = not record.verdict.held or (args.strict and record.verdict.slow)
    return VIOLATED if bad else HELD


def _print(record: Record, output: str) -> None:
    import json

    from argus_sched.harness import summary

    if output == "json":
        print(json.dumps(record.verdict.as_json(), indent=2), flush=True)
    else:
        print("\n" + summary.text(record), flush=True)


def _list(_: argparse.Namespace) -> int:
    from argus_sched.harness.lines import LINES
    from argus_sched.harness.profiles import PROFILES
    from argus_sched.harness.scenario import FAULTS
    from argus_sched.harness.settings import GUARDS
    from argus_sched.harness.summary import listing

    print(listing(list(FAULTS.items()), "faults, for --faults"))
    print("\n" + listing([(one.name, one.meaning) for one in PROFILES.values()], "profiles, for --profile"))
    print("\n" + listing(list(LINES.items()), "lines to the database, for --lines"))
    print("\n" + listing(list(GUARDS.items()), "guards, for --without: what happens when each is off"))
    return HELD


def _failover(args: argparse.Namespace) -> int:
    from argus_sched.advisory_keys import LEADER
    from argus_sched.harness.console import Console, ending_cleanly
    from argus_sched.harness.failover import fail_over

    key = LEADER.number if args.key is None else args.key
    with ending_cleanly():
        took_over = fail_over(args.dsn, key, args.fault, args.seconds, Console(sys.stdout, 3).tell)
    return HELD if took_over else VIOLATED


def _seconds(text: str) -> float:
    from argus_sched.agent.config.durations import parse_duration

    try:
        return parse_duration(text).total_seconds()
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in (part.strip() for part in text.split(",")) if name and name != "none")
