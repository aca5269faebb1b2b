"""What must be told: the difference between what holds and what people know, and the notices it makes.

A notice is one change of one incident, owed to one channel, kept until that channel accepted it. What waits
together is told together: `collapse` leaves one line for each subject, in its current state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby

from argus_sched.agent.config.notify_policy import NotifySettings
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.telling.incidents import Cause, Incident, Standing, incident_id, judge, remove
from argus_sched.agent.telling.observations import Observation

# A subject that no pass saw for this long was taken out of the packs. Not at once: two cron lines, each with
# packs of its own, may share one store.
FORGET_AFTER = timedelta(hours=24)
MISSED_PASSES = 3
SAMPLE_SUBJECT = "argus/notify-test"


class Change(StrEnum):
    """What is told of an incident."""

    FIRED = "fired"
    WORSE = "worse"
    EASED = "eased"
    REMINDER = "reminder"
    FLAPPING = "flapping"
    STEADY = "steady"
    RECOVERED = "recovered"
    DISABLED = "disabled"
    REMOVED = "removed"

    @property
    def is_silent(self) -> bool:
        """Whether the phone stays quiet."""
        return self in {Change.REMINDER, Change.EASED, Change.REMOVED}

    @property
    def is_end(self) -> bool:
        """Whether the incident is over."""
        return self in {Change.RECOVERED, Change.DISABLED, Change.REMOVED}


@dataclass(frozen=True)
class LastPass:
    """When the agent last decided, and how long after the time before that."""

    at: datetime
    gap: timedelta | None = None


@dataclass(frozen=True)
class Notice:
    """One change owed to one channel. `number` is its row, 0 before it has one; `status` what holds
    now, `changes` how many of the last twenty passes changed it."""

    channel: str
    change: Change
    status: Status
    incident: Incident
    at: datetime
    number: int = 0
    changes: int = 0


@dataclass(frozen=True)
class Line:
    """One subject in a digest: its newest notice, and the rows that it stands for.

    `was_told` is False when its first alert waits here too; `spells` counts the incidents it stands for.
    """

    notice: Notice
    covers: tuple[int, ...]
    was_told: bool = True
    spells: int = 1

    @property
    def shown(self) -> Change:
        """What it is told as: an alert nobody has seen yet is an alert, however often it changed since."""
        change = self.notice.change
        if self.was_told or change.is_end or change in {Change.FLAPPING, Change.STEADY}:
            return change
        return Change.FIRED


@dataclass(frozen=True)
class Decision:
    """What one pass does to one subject. `muted` says which silence or window keeps it from being told."""

    before: Standing
    after: Standing
    cause: Cause
    change: Change | None
    incident: Incident | None
    muted: str | None = None

    @property
    def is_transition(self) -> bool:
        """Whether the history should show it."""
        return self.before.state is not self.after.state or self.before.level is not self.after.level


def decide(
    standings: Mapping[str, Standing],
    observations: Iterable[Observation],
    at: datetime,
    policy: NotifySettings,
    *,
    quiet: bool = False,
    whole: bool = True,
    muted: Callable[[str], str | None] = lambda _: None,
) -> tuple[Decision, ...]:
    """What a pass at `at` does to each subject with something to remember; `muted` gives the silence of a
    subject, if there is one. After a pass that is not `whole` nothing counts as removed."""
    decisions = []
    missing = dict(standings)
    for seen in observations:
        before = missing.pop(seen.subject, None) or Standing(seen.subject)
        if before.is_blank and seen.status is Status.OK:
            continue
        judged, cause = judge(before, seen, at, policy, quiet=quiet)
        still = quiet or cause is Cause.BLIND
        decisions.append(_decision(before, judged, cause, at, policy, muted(seen.subject), still=still))
    if whole and not quiet:
        decisions += [_removal(standing, at, policy) for standing in _forgotten(missing, at)]
    return tuple(found for found in decisions if not (found.before.is_blank and found.after.is_blank))


def is_quiet(last: LastPass | None, at: datetime, every: timedelta) -> bool:
    """Whether the agent itself was away: more than three times its period since the last pass.

    The period is what the settings say, or the gap before where that was longer, so that a timer slower than
    the settings claim costs one quiet pass and not every alert.
    """
    if last is None:
        return False
    return at - last.at > MISSED_PASSES * max(every, last.gap or every)


def owe(standing: Standing, cause: Cause, at: datetime, policy: NotifySettings) -> Change | None:
    """What people must be told of `standing` at `at`; None when they know it."""
    if standing.is_flapping and not standing.told_flapping:
        return Change.FLAPPING
    if standing.told_flapping and not standing.is_flapping:
        return Change.STEADY
    if standing.told is not standing.level and not standing.is_flapping:
        return _difference(standing, cause)
    return Change.REMINDER if _needs_reminder(standing, at, policy) else None


def mark_told(standing: Standing, change: Change, at: datetime) -> Standing:
    """The standing after `change` became owed: what people know is what holds."""
    reminders = standing.reminders + 1 if change is Change.REMINDER else 0
    ended = standing.level is Status.OK and not standing.is_flapping
    return replace(
        standing,
        told=standing.level,
        told_flapping=standing.is_flapping,
        told_at=at,
        reminders=reminders,
        incident=None if ended else standing.incident,
    )


def collapse(notices: Iterable[Notice]) -> tuple[Line, ...]:
    """One line for each subject, worst first, from notices in the order they were owed."""
    ordered = sorted(notices, key=lambda notice: (notice.incident.subject, notice.number))
    groups = groupby(ordered, key=lambda notice: notice.incident.subject)
    lines = [_line(tuple(group)) for _, group in groups]
    return tuple(sorted(lines, key=_rank))


def sample_line(at: datetime) -> Line:
    """A line about nothing, to try a channel with; where alerts must end, it ends a minute later."""
    incident = Incident(
        incident_id(SAMPLE_SUBJECT, at),
        SAMPLE_SUBJECT,
        at,
        Status.WARN,
        Phase.FRESH,
        "a message of argus-sched notify-test; alerts look like this one",
        closed_at=at + timedelta(minutes=1),
    )
    return Line(Notice("", Change.FIRED, Status.WARN, incident, at), covers=(), was_told=False)


def _decision(
    before: Standing,
    judged: Standing,
    cause: Cause,
    at: datetime,
    policy: NotifySettings,
    muted: str | None,
    *,
    still: bool,
) -> Decision:
    change = None if still or muted else owe(judged, cause, at, policy)
    after = mark_told(judged, change, at) if change else _drop_untold_end(judged)
    return Decision(before, after, cause, change, judged.incident, muted)


def _removal(standing: Standing, at: datetime, policy: NotifySettings) -> Decision:
    removed, cause = remove(standing, at)
    return _decision(standing, removed, cause, at, policy, None, still=False)


def _forgotten(standings: Mapping[str, Standing], at: datetime) -> list[Standing]:
    return [found for found in standings.values() if found.seen_at and at - found.seen_at > FORGET_AFTER]


def _drop_untold_end(standing: Standing) -> Standing:
    """Without an incident that began and ended while it was muted: nobody knows of it."""
    over = standing.incident is not None and standing.incident.closed_at is not None
    if over and standing.told is Status.OK and not standing.told_flapping:
        return replace(standing, incident=None)
    return standing


def _difference(standing: Standing, cause: Cause) -> Change:
    if standing.level is Status.OK:
        return {Cause.DISABLED: Change.DISABLED, Cause.REMOVED: Change.REMOVED}.get(cause, Change.RECOVERED)
    if standing.told is Status.OK:
        return Change.FIRED
    return Change.WORSE if standing.level.severity > standing.told.severity else Change.EASED


def _needs_reminder(standing: Standing, at: datetime, policy: NotifySettings) -> bool:
    """WARN is told once; CRIT, UNKNOWN and flapping are told again, ever more rarely, until someone acks."""
    wrong = standing.is_flapping or standing.level in {Status.CRIT, Status.UNKNOWN}
    if not wrong or standing.acked or standing.told_at is None or not policy.reminders:
        return False
    wait = policy.reminders[min(standing.reminders, len(policy.reminders) - 1)]
    return at - standing.told_at >= wait


def _line(notices: Sequence[Notice]) -> Line:
    newest = notices[-1]
    spell = [notice for notice in notices if notice.incident.id == newest.incident.id]
    return Line(
        newest,
        tuple(notice.number for notice in notices),
        was_told=all(notice.change is not Change.FIRED for notice in spell),
        spells=len({notice.incident.id for notice in notices}),
    )


def _rank(line: Line) -> tuple[bool, int, str]:
    incident, flaps = line.notice.incident, line.shown is Change.FLAPPING
    status = incident.status if flaps else line.notice.status
    return (line.shown.is_end, -status.severity, incident.subject)
