"""Write a check pack to standard output from the jobs seen in a log; what is inferred is marked so."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from argus_sched.agent.discovery.sightings import Sightings
    from argus_sched.agent.packs import LogSpec
    from argus_sched.agent.ports import LogSource


TOO_FEW_RUNS = (
    "no job ran often enough to tell its trigger: try again when each ran twice, or complete the pack by hand"
)
NO_RUN = "no run of a job was read: is the logger `apscheduler` at INFO, and is this its log?"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--container", metavar="NAME", help="read this container's log")
    source.add_argument("--file", metavar="PATH", help="read this file")
    parser.add_argument(
        "--host", metavar="NAME", default="local", help="of --container: a host of the config"
    )
    parser.add_argument("--config", metavar="FILE", help="settings that name the host; else as in check")
    parser.add_argument("--format", choices=("docker", "json-file"), default="docker", help="of --file")
    parser.add_argument("--app", metavar="NAME", help="the application (else named after container or file)")
    parser.add_argument(
        "--window", metavar="LENGTH", help="how far back to read (default 26h, all of a file)"
    )
    parser.add_argument("--timezone", metavar="ZONE", default="UTC", help="of cron triggers (default UTC)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the pack; 3 when no job's trigger could be told, and standard error says so."""
    import sys
    from pathlib import Path

    from argus_sched import due_times
    from argus_sched.agent.config.secret_sources import Environment
    from argus_sched.agent.config.settings import load_settings
    from argus_sched.agent.discovery.pack_text import app_from, write_pack
    from argus_sched.agent.sources import open_source
    from argus_sched.clock import SystemClock
    from argus_sched.errors import SettingsError

    due_times.cron("@daily", args.timezone)  # refuses an unknown zone before anything is read
    logs, clock = _log_spec(args), SystemClock()
    hosts = load_settings(args.config, Environment()).hosts
    if logs.host not in hosts:
        raise SettingsError(f"--host: no host {logs.host!r} in the config: it has {', '.join(hosts)}")
    source = open_source(logs, clock=clock, timeout=60.0, host=hosts[logs.host])
    everything = args.file and not args.window
    seen = _read(source, due_times.EPOCH if everything else clock.now() - logs.window)
    app = app_from(args.app or args.container or Path(args.file).stem)
    jobs = seen.jobs()
    text, certain = write_pack(app, logs, jobs, args.timezone)
    print(text, end="")
    if not certain:
        print(f"argus-sched: {TOO_FEW_RUNS if jobs else NO_RUN}", file=sys.stderr)
    return 0 if certain else 3


def _log_spec(args: argparse.Namespace) -> LogSpec:
    from pathlib import Path

    from argus_sched.agent.config.durations import parse_duration
    from argus_sched.agent.packs import DEFAULT_WINDOW, LogSpec
    from argus_sched.errors import SettingsError

    path = str(Path(args.file).absolute()) if args.file else None
    try:
        window = parse_duration(args.window) if args.window else DEFAULT_WINDOW
    except ValueError as error:
        raise SettingsError(f"--window: {error}") from None
    return LogSpec(container=args.container, path=path, format=args.format, window=window, host=args.host)


def _read(source: LogSource, horizon: datetime) -> Sightings:
    """All runs of every container; raises SourceError when one cannot be read."""
    from collections.abc import Iterable

    from argus_sched.agent.discovery.sightings import Sightings
    from argus_sched.agent.logevents import Record
    from argus_sched.agent.reading.loglines import LineParser
    from argus_sched.errors import SourceError

    seen = Sightings()
    try:
        for container in source.containers():
            parser = LineParser(container.key)

            def take(records: Iterable[Record], parser: LineParser = parser) -> None:
                for record in records:
                    seen.add(parser.feed(record))

            reading = source.read(container, None, horizon, take)
            seen.add(parser.flush())
            if reading.problem:
                raise SourceError(f"{source.node}: {reading.problem}")
    finally:
        source.close()
    return seen
