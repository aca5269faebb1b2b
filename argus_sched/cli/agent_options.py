"""What the agent's commands share: settings and packs, `--now`, and the last resort against hanging."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from argus_sched.agent.config.settings import AgentSettings
    from argus_sched.agent.packs import Pack, PackFile

UNKNOWN = 3

# From every instant between these, the longest window and the longest limit stay within the calendar.
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def add(parser: argparse.ArgumentParser) -> None:
    """The options every command that looks needs."""
    add_config(parser)
    parser.add_argument(
        "--pack", metavar="FILE", nargs="+", action="extend", help="packs, instead of the settings'"
    )
    parser.add_argument(
        "--now",
        metavar="TIME",
        type=instant,
        help="judge as if it were TIME; writes no state, sends nothing",
    )
    add_timeout(parser)


def add_config(parser: argparse.ArgumentParser) -> None:
    """The option that says whose settings."""
    parser.add_argument(
        "--config", metavar="FILE", help="settings; else $ARGUS_CONFIG, /etc/argus-sched/argus.yaml"
    )


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """The option that bounds looking."""
    parser.add_argument(
        "--timeout", metavar="LENGTH", type=_length, help="deadline of the whole pass, such as 30s"
    )


def load(args: argparse.Namespace) -> tuple[AgentSettings, tuple[Pack, ...], Mapping[str, str]]:
    """Settings with the command line's say, their packs, and the environment they are read from."""
    from argus_sched.agent.config.pack_files import load_packs

    settings, environ = _settings(args)
    packs = load_packs(settings, environ)
    _show_warnings(packs)
    return settings, packs, environ


def load_what_is_right(
    args: argparse.Namespace,
) -> tuple[AgentSettings, tuple[PackFile, ...], Mapping[str, str]]:
    """The same with every pack of the settings, right or wrong; one that a person names must be right."""
    from argus_sched.agent.config.pack_files import read_packs
    from argus_sched.agent.packs import PackFile

    if args.pack:
        settings, packs, environ = load(args)
        return settings, tuple(PackFile(pack.path, pack) for pack in packs), environ
    settings, environ = _settings(args)
    files = read_packs(settings, environ)
    _show_warnings(tuple(file.pack for file in files if file.pack))
    return settings, files, environ


def _settings(args: argparse.Namespace) -> tuple[AgentSettings, Mapping[str, str]]:
    from dataclasses import replace

    from argus_sched.agent.config.secret_sources import Environment
    from argus_sched.agent.config.settings import load_settings

    environ = Environment()
    settings = load_settings(args.config, environ)
    if args.pack:
        settings = replace(settings, packs=tuple(args.pack))
    if args.timeout:
        shorter = min(settings.read_timeout, args.timeout)
        settings = replace(settings, deadline=args.timeout, read_timeout=shorter)
    return settings, environ


def _show_warnings(packs: Iterable[Pack]) -> None:
    """On a terminal only: cron would send a mail with them at every run."""
    if sys.stderr.isatty():
        for warning in (warning for pack in packs for warning in pack.warnings):
            print(f"argus-sched: warning: {warning}", file=sys.stderr)


def log_to_stderr() -> None:
    """Let what the agent logs appear on standard error, as this program's; of its libraries only errors."""
    import logging

    logging.basicConfig(level=logging.ERROR, stream=sys.stderr, format="argus-sched: %(message)s")
    logging.getLogger("argus_sched").setLevel(logging.WARNING)


def wants_colour(stream: TextIO) -> bool:
    """Whether `stream` is a terminal whose owner did not ask for plain text (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


@contextlib.contextmanager
def hard_limit(settings: AgentSettings) -> Iterator[None]:
    """End the process with exit code 3 should the body outlast its own deadlines."""
    from argus_sched.agent.app import hard_limit as limit

    seconds = limit(settings).total_seconds()
    timer = threading.Timer(seconds, _give_up, [seconds])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _give_up(seconds: float) -> None:
    sys.stderr.write(f"argus-sched: no verdict within {seconds:g} s, although the deadline is shorter\n")
    sys.stderr.flush()
    os._exit(UNKNOWN)


def instant(text: str) -> datetime:
    """The type of an argument that is an instant."""
    from argus_sched.agent.instants import parse_rfc3339

    try:
        instant = parse_rfc3339(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no instant with an offset: write for example 2026-03-14T10:00:00Z"
        ) from None
    if not EARLIEST <= instant <= LATEST:
        raise argparse.ArgumentTypeError(f"{text} is not between {EARLIEST:%Y} and {LATEST:%Y}")
    return instant


def _length(text: str) -> timedelta:
    from argus_sched.agent.config.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
