"""A worker that only takes part in the election; every turn is one JSON line on standard output.

Lines carry `event`, `at` (CLOCK_MONOTONIC seconds, comparable between processes of one machine) and `pid`.
Commands arrive on standard input, a word each: stop, resign, stand, trust, fork, cfork.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import logging
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from argus_sched.postgres.leader_lock import open_leader_lock
from argus_sched.scheduling.elector import Elector
from argus_sched.scheduling.identity import Worker
from argus_sched.scheduling.leadership import Timing


def say(event: str, fields: Mapping[str, Any] | None = None) -> None:
    line = {"event": event, "at": time.monotonic(), "pid": os.getpid(), **(fields or {})}
    os.write(1, (json.dumps(line, default=str) + "\n").encode())


class SayLines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say("log", {"line": record.getMessage()})


def sleep_in_a_copy(fork: Any) -> None:
    pid = fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    say("forked", {"child": pid})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--namespace", default="labs")
    parser.add_argument("--key", type=int, default=911_000_001)
    parser.add_argument("--timing", default="default", choices=("default", "fast", "recipe"))
    parser.add_argument("--no-lease", action="store_true")
    parser.add_argument("--no-watch", action="store_true")
    parser.add_argument("--no-tick", action="store_true")
    parser.add_argument("--pooled", action="store_true", help="do not look for a pooler")
    arguments = parser.parse_args()
    timing: Timing = getattr(Timing, arguments.timing)()
    if arguments.no_lease:
        timing = Timing(lease=None)
    logging.getLogger("argus_sched.scheduling").addHandler(SayLines())
    logging.getLogger("argus_sched.scheduling").setLevel(logging.INFO)
    worker = Worker(arguments.namespace, instance=str(uuid.uuid4()))

    elector = Elector(
        lambda: open_leader_lock(arguments.dsn, arguments.key, timing, worker, direct=not arguments.pooled),
        timing,
        namespace=arguments.namespace,
        instance=worker.instance,
        key=arguments.key,
        on_promote=lambda term: say("promote", {"epoch": term.epoch, "backend_pid": term.backend_pid}),
        on_demote=lambda term, cause: say("demote", {"epoch": term.epoch, "cause": cause}),
        emit=say,
        watch=not arguments.no_watch,
        tick=not arguments.no_tick,
    )
    say("started", {"instance": worker.instance})
    elector.start()
    commands: dict[str, Callable[[], object]] = {
        "stop": lambda: elector.stop() and sys.exit(0),
        "resign": lambda: elector.resign(2.0),
        "stand": elector.stand,
        "trust": lambda: say("trust", {"role": elector.role, "trusted": elector.is_trusted()}),
        "fork": lambda: sleep_in_a_copy(os.fork),
        # A fork that Python is not told of, as a server written in C does it.
        "cfork": lambda: sleep_in_a_copy(ctypes.CDLL(None)["fork"]),
    }
    for line in sys.stdin:
        commands[line.strip()]()
    elector.stop()


if __name__ == "__main__":
    main()
