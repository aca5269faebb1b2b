"""The command line: finds the command, loads only its module, turns errors into one line and exit code 3."""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from argus_sched.cli import streams
from argus_sched.errors import ArgusError
from argus_sched.version import __version__

UNKNOWN = 3
# New objects between two searches for garbage: with Python's own 700 a tenth of a check goes into searching,
# since imports, which are most of it, make objects and no garbage.
OBJECTS_BETWEEN_COLLECTIONS = 50_000

# command -> (module that defines `configure(parser)`, one line of help); a module is imported only when its
# command was named, since `check` runs every minute and most of a short process's time is imports.
COMMANDS: dict[str, tuple[str, str]] = {
    "check": ("argus_sched.cli.check", "look at every job and lock once; exit 0/1/2/3"),
    "explain": ("argus_sched.cli.explain", "show the evidence and the arithmetic behind one target"),
    "simulate": ("argus_sched.cli.simulate", "tell what would be graded when, with nothing touched"),
    "events": ("argus_sched.cli.events", "print what was understood of a log, one JSON object a line"),
    "validate": ("argus_sched.cli.validate", "check config and packs without touching anything"),
    "discover": ("argus_sched.cli.discover", "write a pack from the jobs seen in a log"),
    "notify-test": ("argus_sched.cli.notify_test", "send one test message"),
    "silence": ("argus_sched.cli.silence", "keep targets from being told for a while"),
    "silences": ("argus_sched.cli.silences", "list the silences that hold"),
    "unsilence": ("argus_sched.cli.unsilence", "end a silence before its time"),
    "ack": ("argus_sched.cli.ack", "stop the reminders of an open incident"),
    "history": ("argus_sched.cli.history", "list the last incidents and what was told of them"),
    "scheduler": ("argus_sched.cli.scheduler", "run, migrate, inspect and steer the scheduler"),
    "harness": ("argus_sched.cli.harness", "kill, freeze and cut real workers, and judge"),
    "demo": ("argus_sched.cli.demo", "the whole story in under a minute"),
}


class Parser(argparse.ArgumentParser):
    """An argument parser whose usage errors exit 3: argparse's 2 would read as CRIT in a monitor."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(UNKNOWN, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(arguments)
        sys.stdout.flush()  # when the interpreter ends, it is too late for an exit code of ours
        return code
    except ArgusError as error:
        print(f"argus-sched: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()
        return UNKNOWN
    except KeyboardInterrupt:
        print("argus-sched: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        print(f"argus-sched: unexpected {type(error).__name__}: {error}", file=sys.stderr)
        return UNKNOWN


def _run(arguments: list[str]) -> int:
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        _top_parser().parse_args(arguments)
        _top_parser().error("name a command; --help lists them")
    module = importlib.import_module(COMMANDS[name][0])
    parser = Parser(prog=f"argus-sched {name}", description=module.__doc__)
    module.configure(parser)
    args = parser.parse_args(arguments[1:])
    code: int = args.run(args)
    return code


def _top_parser() -> Parser:
    parser = Parser(
        prog="argus-sched", description="Runs scheduled jobs once, watches that they run, proves both."
    )
    parser.add_argument("--version", action="version", version=f"argus-sched {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for name, (_, text) in COMMANDS.items():
        commands.add_parser(name, help=text)
    return parser


def entry() -> NoReturn:
    """Run as a program."""
    streams.prepare()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    code = main()
    gc.freeze()  # spares the interpreter's last search, over all that ends with the process anyway
    sys.exit(code)
