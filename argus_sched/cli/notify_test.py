"""Send one message to every channel of the settings and say what became of it: exit 0 when all took it."""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import TYPE_CHECKING

from argus_sched.cli import agent_state

if TYPE_CHECKING:
    from argus_sched.agent.config.settings import AgentSettings
    from argus_sched.agent.store.sqlite import Store


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    agent_state.add_config(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one line for each channel."""
    from argus_sched.agent.config.secret_sources import Environment
    from argus_sched.agent.config.settings import load_settings
    from argus_sched.agent.notifiers import open_notifiers
    from argus_sched.agent.telling.delivery import Delivery
    from argus_sched.cli.agent_options import log_to_stderr
    from argus_sched.errors import SettingsError

    log_to_stderr()
    environ = Environment()
    settings = load_settings(args.config, environ)
    notifiers = open_notifiers(settings, environ)
    if not notifiers:
        raise SettingsError("no channel is set: give the settings telegram, webhook or alertmanager")
    problems = 0
    with contextlib.closing(_store(settings)) as store:
        for notifier in notifiers:
            with contextlib.closing(notifier):
                problem = Delivery(store, notifier).send_sample(agent_state.now())
            print(problem or f"{notifier.name}: {notifier.chat} took the message")
            problems += problem is not None
    return 3 if problems else 0


def _store(settings: AgentSettings) -> Store:
    """The agent's state, which knows where a chat moved to; one in memory when it cannot be used."""
    from argus_sched.agent.store.sqlite import Store
    from argus_sched.agent.store.stand_in import IN_MEMORY
    from argus_sched.errors import StoreError

    store = Store(settings.state)
    try:
        with store.transaction():
            return store
    except StoreError as error:
        print(f"argus-sched: {error}; sending all the same", file=sys.stderr)
        return Store(IN_MEMORY)
