"""Telling about a pass: decide inside the store's transaction, deliver after its commit."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from argus_sched.agent.check import OwnState, PassReport
from argus_sched.agent.config.notify_policy import MaintenanceWindow, NotifySettings
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.store.incident_rows import (
    forget_everything,
    load_last_pass,
    load_standings,
    prune,
    save_decision,
    save_last_pass,
)
from argus_sched.agent.store.notice_rows import Chat, add_notice, backlog, load_chat
from argus_sched.agent.store.own_rows import GAPS, INCOMPLETE, count_up, load_counts
from argus_sched.agent.store.silence_rows import active_silences
from argus_sched.agent.telling import flapping
from argus_sched.agent.telling.delivery import Delivery
from argus_sched.agent.telling.notices import Decision, Notice, decide, is_quiet
from argus_sched.agent.telling.notify_ports import Notifier, Transactions
from argus_sched.agent.telling.observations import Observation, observe
from argus_sched.agent.telling.silences import muting
from argus_sched.errors import StoreError

# The app of what the agent says about itself; `argus/telegram` is the channel telegram.
OWN = "argus"

log = logging.getLogger(__name__)


class IncidentTeller:
    """The runner's Teller: incidents and notices in the store, one delivery for each channel.

    `every` is how often passes are meant to run; `notifiers` in the order they are called; `stand_in` is the
    store for passes whose own store takes nothing.
    """

    def __init__(
        self,
        store: Transactions,
        notifiers: Sequence[Notifier],
        policy: NotifySettings,
        every: timedelta,
        windows: Sequence[MaintenanceWindow] = (),
        *,
        stand_in: Transactions | None = None,
        state_saved: bool = True,
    ) -> None:
        self._store = store
        self._stand_in = stand_in
        self._notifiers = tuple(notifiers)
        self._deliveries = [Delivery(store, one, state_saved=state_saved) for one in notifiers]
        self._policy = policy
        self._every = every
        self._windows = tuple(windows)

    def decide(self, connection: sqlite3.Connection, report: PassReport, now: datetime) -> None:
        """Record what the pass changes and who must be told; nothing is sent."""
        last = load_last_pass(connection)
        quiet = is_quiet(last, now, self._every)
        for name in ((GAPS,) if quiet else ()) + (() if report.complete else (INCOMPLETE,)):
            count_up(connection, name)
        silences = active_silences(connection, now)
        decisions = decide(
            load_standings(connection),
            [*observe(report), *map(channel_state, self._chats(connection))],
            now,
            self._policy,
            quiet=quiet,
            whole=report.complete,
            muted=lambda subject: muting(subject, now, silences, self._windows),
        )
        for decision in decisions:
            self._record(connection, decision, now)
        save_last_pass(connection, now, now - last.at if last else None)
        prune(connection, now)

    def deliver(self, now: datetime) -> Sequence[str]:
        """Send what is owed, one attempt for each channel; the problems, one sentence each."""
        problems = [_delivered(delivery, now) for delivery in self._deliveries]
        return tuple(problem for problem in problems if problem)

    def tell_unsaved(self, report: PassReport, now: datetime) -> Sequence[str]:
        """Decide and deliver by the stand-in, for a pass whose store could not be written; the messages say
        so. What is told here is told again when the store is back, since it never learnt of it."""
        if self._stand_in is None:
            return ("the state cannot be saved and there is no stand-in, so nobody was told",)
        teller = IncidentTeller(
            self._stand_in, self._notifiers, self._policy, self._every, self._windows, state_saved=False
        )
        try:
            with self._stand_in.transaction() as connection:
                if is_quiet(load_last_pass(connection), now, self._every):
                    # What it knows is of an earlier trouble, and the store has gone on without it.
                    forget_everything(connection)
                teller.decide(connection, report, now)
        except StoreError as error:
            return (f"nobody was told: {error}",)
        return teller.deliver(now)

    def own_state(self) -> OwnState:
        """What is owed in all channels, which of them refuse, and what passes left out so far."""
        with self._store.transaction() as connection:
            waiting = backlog(connection, [one.name for one in self._notifiers])
            counts = load_counts(connection)
            refusing = [chat for chat in self._chats(connection) if chat.refused_why]
        return OwnState(
            waiting.waiting,
            waiting.oldest,
            tuple(f"{chat.channel}: {chat.refused_why}" for chat in refusing),
            counts.get(INCOMPLETE, 0),
            counts.get(GAPS, 0),
        )

    def close(self) -> None:
        """Give the channels' connections back."""
        for notifier in self._notifiers:
            notifier.close()

    def _record(self, connection: sqlite3.Connection, decision: Decision, now: datetime) -> None:
        save_decision(connection, decision, now)
        if decision.is_transition:
            log.info("%s: %s (%s)", decision.after.subject, decision.after.state, decision.cause)
        for notice in self._notices(decision, now):
            add_notice(connection, notice)

    def _notices(self, decision: Decision, now: datetime) -> Iterator[Notice]:
        """One for each channel; a channel is not asked to carry the news that it is broken."""
        if decision.change is None or decision.incident is None:
            return
        for notifier in self._notifiers:
            if decision.after.subject != own_subject(notifier.name):
                yield Notice(
                    notifier.name,
                    decision.change,
                    decision.after.level,
                    decision.incident,
                    now,
                    changes=flapping.count(decision.after.changes),
                )

    def _chats(self, connection: sqlite3.Connection) -> list[Chat]:
        """Each channel's chat as it was left, and refusing as well when it shows that nothing can be sent."""
        chats = [(load_chat(connection, one.name, one.chat), one.trouble) for one in self._notifiers]
        return [replace(chat, refused_why=chat.refused_why or trouble or None) for chat, trouble in chats]


def _delivered(delivery: Delivery, now: datetime) -> str | None:
    """What went wrong; a fault in one channel, of whatever kind, keeps nothing from the next one."""
    try:
        return delivery.deliver(now)
    except Exception as error:
        log.exception("the delivery failed")
        return f"{delivery.channel}: the delivery itself failed, see the log ({type(error).__name__})"


def own_subject(channel: str) -> str:
    """The subject under which the agent watches its own channel."""
    return f"{OWN}/{channel}"


def channel_state(chat: Chat) -> Observation:
    """A channel as a subject of its own: CRIT from the moment it refused for good until it accepts again."""
    subject = own_subject(chat.channel)
    if not chat.refused_why:
        return Observation(subject, Status.OK, Phase.FRESH, "accepts messages")
    return Observation(
        subject,
        Status.CRIT,
        Phase.FAILING,
        f"no alert gets through: {chat.refused_why}",
        name=f"the agent's own channel {chat.channel}",
        since=chat.refused_at,
    )
