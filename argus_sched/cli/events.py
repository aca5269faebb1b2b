"""Print what was understood of a log, one JSON object a line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from argus_sched.cli import streams

if TYPE_CHECKING:
    from pathlib import Path

    from argus_sched.agent.hosts import HostSpec
    from argus_sched.agent.logevents import Event, Record
    from argus_sched.agent.packs import LogSpec

READ_SECONDS = 60.0
NOTHING_UNDERSTOOD = {
    "docker": "no line of a scheduler was found: is this the text of `docker logs -t`, with its times?",
    "json-file": "no line of a scheduler was found: is this the daemon's own json-file?",
}

# What an Event calls `detail` has a name of its own for these kinds.
_DETAIL_KEYS = {
    "skipped": "limit",
    "submit_error": "executor",
    "executor_lost": "executor",
    "added": "jobstore",
    "jobstore_error": "jobstore",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `argus-sched events`."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--pack", metavar="FILE", help="read the logs that this pack names")
    source.add_argument("--file", metavar="PATH", help="read this file; - is standard input")
    parser.add_argument(
        "--config", metavar="FILE", help="settings that name the pack's host; else as in check"
    )
    parser.add_argument(
        "--format",
        choices=("docker", "json-file"),
        default="docker",
        help="of --file: the text of `docker logs -t` (default), or the daemon's own json-file",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print events; 0, or 3 when a log could not be read to its end."""
    streams.speak_utf8()
    if args.pack:
        return _of_pack(args.pack, args.config)
    understood = False
    for event in _of_file(args.file, args.format):
        understood = True
        _print(event)
    if not understood:
        print(f"argus-sched: {NOTHING_UNDERSTOOD[args.format]}", file=sys.stderr)
    return 0


def _of_file(path: str, form: str) -> Iterator[Event]:
    from argus_sched.agent.reading.loglines import parse, split_docker_text
    from argus_sched.agent.sources.json_file import json_records

    records = json_records if form == "json-file" else split_docker_text
    yield from parse(records(_blocks(path)))


def _blocks(path: str) -> Iterator[bytes]:
    from pathlib import Path

    from argus_sched.agent.sources.blocks import blocks
    from argus_sched.errors import SourceError

    if path == "-":
        yield from blocks(sys.stdin.buffer)
        return
    try:
        with _opened(Path(path)) as file:
            yield from blocks(file)
    except OSError as error:
        raise SourceError(f"cannot read the log {path}: {error.strerror or error}") from error


def _opened(path: Path) -> Any:
    import gzip

    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _of_pack(path: str, config: str | None) -> int:
    from argus_sched.agent.config.pack_files import load_pack
    from argus_sched.agent.config.secret_sources import Environment
    from argus_sched.agent.config.settings import load_settings
    from argus_sched.errors import SettingsError

    environ = Environment()
    settings = load_settings(config, environ)
    pack = load_pack(path, environ, settings.defaults)
    if pack.logs is None:
        raise SettingsError(f"{path} names no logs: add a `logs:` section")
    return _of_source(pack.logs, settings.hosts[pack.logs.host])


def _of_source(spec: LogSpec, host: HostSpec) -> int:
    from argus_sched.agent.reading.loglines import LineParser
    from argus_sched.agent.sources import open_source
    from argus_sched.clock import SystemClock

    clock = SystemClock()
    source = open_source(spec, clock=clock, timeout=READ_SECONDS, host=host)
    code = 0
    for container in source.containers():
        parser = LineParser(container.name)

        def take(records: Iterable[Record], parser: LineParser = parser) -> None:
            for record in records:
                for event in parser.feed(record):
                    _print(event)

        reading = source.read(container, None, clock.now() - spec.window, take)
        for remark in (*reading.notes, *([reading.problem] if reading.problem else [])):
            print(f"argus-sched: {container.name}: {remark}", file=sys.stderr)
        code = 3 if reading.problem else code
    source.close()
    return code


def _print(event: Event) -> None:
    row = as_row(event)
    if row is not None:
        print(json.dumps(row, ensure_ascii=False))


def as_row(event: Event) -> dict[str, Any] | None:
    """One event as JSON; None for the scheduler's debug lines, which say nothing of a job."""
    from argus_sched.agent.logevents import EventKind
    from argus_sched.agent.reading.stamps import format_stamp

    if event.kind is EventKind.DEBUG:
        return None
    row = {
        "event": event.kind.value,
        "line": event.line,
        "logged_at": format_stamp(event.stamp_ns),
        "name": event.name,
        "trigger": event.trigger,
        "status": event.status,
        "next_run": event.next_run,
        "next_run_utc": _utc(event.next_run_utc, "seconds"),
        "scheduled_at": event.scheduled_at,
        "scheduled_at_utc": _utc(event.scheduled_at_utc, "microseconds"),
        "container": event.container,
    }
    return row | _own_keys(event)


def _own_keys(event: Event) -> dict[str, Any]:
    """The keys that only this kind of event has."""
    keys: dict[str, Any] = {}
    if event.job_id is not None:
        keys["job_id"] = event.job_id
    if event.missed_by_seconds is not None:
        keys["missed_by_seconds"] = event.missed_by_seconds
    if event.detail is not None:
        key = _DETAIL_KEYS.get(event.kind.value, "detail")
        keys[key] = int(event.detail) if key == "limit" else event.detail
    if event.kind.value == "jobstore_error":
        keys["jobstore"], _, keys["cause"] = str(event.detail).partition(": ")
    return keys


def _utc(moment: datetime | None, precision: str) -> str | None:
    return None if moment is None else moment.isoformat(timespec=precision).replace("+00:00", "Z")
