"""Runs commands of argus-sched in this process with every logger at its loudest, and shows whatever can be shown.

The argument is JSON: `commands`, and `broken`, names of functions that raise when they are called, so that
there is a traceback through each way out. Every traceback is shown with the local variables of its frames.
"""

from __future__ import annotations

import json
import logging
import pkgutil
import sys
import traceback
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from argus_sched import cli
from argus_sched.agent.app import build_agent
from argus_sched.agent.config.pack_files import load_packs
from argus_sched.agent.config.secret_sources import Environment
from argus_sched.agent.config.settings import load_settings
from argus_sched.agent.notifiers import open_notifiers
from argus_sched.agent.runner import Agent


class Loud(logging.Formatter):
    """Shows local variables in tracebacks."""

    def formatException(self, ei: Any) -> str:
        """The traceback that was logged."""
        return rendered(*ei)


def rendered(kind: Any, error: Any, frames: Any) -> str:
    """A traceback with local variables, of its causes too."""
    return "".join(traceback.TracebackException(kind, error, frames, capture_locals=True).format())


def settings_and_agent(config: str) -> tuple[Any, Agent]:
    """What the agent is made of."""
    environ = Environment()
    settings = load_settings(config, environ)
    return settings, build_agent(settings, load_packs(settings, environ), environ)


def show_parts(config: str) -> None:
    """Print the settings, and the agent and its channels with their attributes."""
    settings, agent = settings_and_agent(config)
    teller: Any = agent.teller
    print(repr(settings))
    for part in (agent, agent.edges, teller, *teller._deliveries, *open_notifiers(settings, Environment())):
        print(repr(part), vars(part))


def loudly(command: list[str]) -> None:
    """Run one command; what escapes from it is shown before it is swallowed."""
    print(f"== {command}", flush=True)
    try:
        print("exit", cli._run(command))
    except (Exception, SystemExit):
        print(rendered(*sys.exc_info()))


def main() -> None:
    """Do as the argument says."""
    order = json.loads(sys.argv[1])
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(Loud())
    logging.basicConfig(level=logging.DEBUG, handlers=[handler])
    logging.getLogger("argus_sched").setLevel(logging.DEBUG)
    with ExitStack() as stack:
        for name in order["broken"]:
            owner, _, attribute = name.rpartition(".")
            stack.enter_context(
                patch.object(
                    pkgutil.resolve_name(owner), attribute, side_effect=RuntimeError(f"bug in {name}")
                )
            )
        show_parts("argus.yaml")
        for command in order["commands"]:
            loudly([*command, "--config", "argus.yaml"])


if __name__ == "__main__":
    main()
