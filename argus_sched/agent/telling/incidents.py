"""The life of an incident: one continuous spell of a subject being wrong, with one beginning and one end.

A subject is a target (`app/job`) or a failed node of the target tree (`app/docker:web`). Between two passes
nothing is kept of it but its Standing; one pass over it is `judge`, which takes the standing and what was
seen, and returns the next standing with the cause. Nothing here knows about chats: what must be told follows
from the difference between `level`, what holds, and `told`, what people know (notices.py).

    state      level   means
    ok         OK      nothing to remember
    pending    OK      seen wrong, not yet for long enough (`fire_after` passes, a hold, a quiet pass)
    firing     worse   an incident is open
    resolved   OK      an incident ended within the last twenty passes
    flapping   any     it went up and down too often; one incident covers the whole spell

One counter moves it: the streak of passes that saw something worse, or something better, than the level.
Upward the level becomes what is seen now; downward it becomes the worst of the streak. Blindness moves
nothing: behind a failed node, and after a CRIT, an UNKNOWN says only that nobody can see.
"""

from __future__ import annotations

import hashlib
from base64 import b32encode
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from argus_sched.agent.config.notify_policy import NotifySettings
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.telling import flapping
from argus_sched.agent.telling.observations import Observation


class State(StrEnum):
    """Where a subject stands; derived, see the table above."""

    OK = "ok"
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"
    FLAPPING = "flapping"


class Cause(StrEnum):
    """Why a pass did what it did to a subject: the word of log, metric, history and message."""

    STILL_OK = "still_ok"
    STILL_WRONG = "still_wrong"
    COUNTING = "counting"  # seen, not yet in enough passes
    HELD = "held"  # wrong for less than its hold
    QUIET = "quiet"  # the agent itself was away; one pass is only watched
    BLIND = "blind"  # behind a failed node, so nothing changed
    UNSEEN = "unseen"  # was CRIT, and its own evidence ends now
    PASSED = "passed"  # it went away before it counted
    FIRED = "fired"
    WORSE = "worse"
    EASED = "eased"
    RECOVERED = "recovered"
    DISABLED = "disabled"
    REMOVED = "removed"
    FLAPPING_BEGAN = "flapping_began"
    FLAPPING = "flapping"
    FLAPPING_ENDED = "flapping_ended"


@dataclass(frozen=True)
class Incident:
    """One spell: `status` is the worst it reached, the words are the last that were seen while wrong."""

    id: str
    subject: str
    opened_at: datetime
    status: Status
    phase: Phase
    summary: str
    reason: str = ""
    name: str = ""
    closed_at: datetime | None = None

    @property
    def duration(self) -> timedelta | None:
        """How long it lasted; None while it is open."""
        return None if self.closed_at is None else self.closed_at - self.opened_at


@dataclass(frozen=True)
class Streak:
    """Passes in a row that saw something on one side of the level; `course` +1 is worse, -1 is better."""

    course: int
    passes: int
    since: datetime
    worst: Status


@dataclass(frozen=True)
class Standing:
    """All that is known of one subject between two passes.

    `level` holds since `level_since`; `told` is what people were last told, `told_at` when, `reminders` how
    often since. `changes` has one bit for each of the last twenty judged passes. `incident` stays until its
    end was told.
    """

    subject: str
    level: Status = Status.OK
    level_since: datetime | None = None
    told: Status = Status.OK
    told_flapping: bool = False
    told_at: datetime | None = None
    reminders: int = 0
    acked: bool = False
    changes: int = 0
    is_flapping: bool = False
    streak: Streak | None = None
    incident: Incident | None = None
    seen_at: datetime | None = None

    @property
    def state(self) -> State:
        """The state, by the table at the top."""
        if self.is_flapping:
            return State.FLAPPING
        if self.level is not Status.OK:
            return State.FIRING
        if self.streak is not None:
            return State.PENDING
        return State.RESOLVED if self.changes else State.OK

    @property
    def is_blank(self) -> bool:
        """Whether nothing needs to be remembered."""
        return self.state is State.OK and self.told is Status.OK and not self.told_flapping


def judge(
    standing: Standing, seen: Observation, at: datetime, policy: NotifySettings, *, quiet: bool = False
) -> tuple[Standing, Cause]:
    """The next standing after a pass at `at` saw `seen`, and why; a `quiet` pass confirms nothing."""
    standing = replace(_not_after(standing, at), seen_at=at)
    if seen.blind_by is not None:
        return standing, Cause.BLIND
    if seen.status is Status.UNKNOWN and standing.level is Status.CRIT:
        return standing, Cause.UNSEEN
    streak = _prolong(standing, seen, at, counted=not quiet)
    if streak is None:
        return _stay(standing, seen, policy, quiet)
    waiting = replace(standing, streak=streak)
    if quiet:
        return waiting, Cause.QUIET
    if streak.passes < (policy.fire_after if streak.course > 0 else policy.resolve_after):
        return _pass_by(waiting, policy), Cause.COUNTING
    if streak.course > 0 and (seen.waits or at - streak.since < seen.hold):
        return _pass_by(waiting, policy), Cause.HELD
    return _confirm(waiting, streak, seen, at, policy)


def remove(standing: Standing, at: datetime) -> tuple[Standing, Cause]:
    """The standing of a subject that is watched no more: whatever was wrong with it ends at `at`."""
    ended = replace(standing, level=Status.OK, level_since=at, streak=None, changes=0, is_flapping=False)
    return _close(ended, at), Cause.REMOVED


def incident_id(subject: str, at: datetime) -> str:
    """Eight characters that name the spell of `subject` first seen at `at`; a letter first, so that a chat
    makes it a tag that can be tapped, and no counter, so that a lost store repeats none."""
    digest = hashlib.sha256(f"{subject}\x1f{at.isoformat()}".encode(errors="surrogatepass")).digest()
    return "i" + b32encode(digest)[:7].decode().lower()


def _not_after(standing: Standing, at: datetime) -> Standing:
    """What a clock wrote that has been set back since, brought back to `at`: else a hold would end, and a
    reminder come, only in that future."""
    streak, told_at = standing.streak, standing.told_at
    if streak and streak.since > at:
        standing = replace(standing, streak=replace(streak, since=at))
    return replace(standing, told_at=at) if told_at and told_at > at else standing


def _prolong(standing: Standing, seen: Observation, at: datetime, *, counted: bool) -> Streak | None:
    """The streak with this pass in it; None when the level is what was seen."""
    difference = seen.status.severity - standing.level.severity
    if difference == 0:
        return None
    course = 1 if difference > 0 else -1
    earlier = standing.streak
    if earlier is None or earlier.course != course:
        return Streak(course, int(counted), at, seen.status)
    worst = max(earlier.worst, seen.status, key=lambda status: status.severity)
    return replace(earlier, passes=earlier.passes + counted, worst=worst)


def _stay(
    standing: Standing, seen: Observation, policy: NotifySettings, quiet: bool
) -> tuple[Standing, Cause]:
    """What was seen is what holds already."""
    steady = replace(_describe(standing, seen), streak=None)
    if quiet:
        return steady, Cause.QUIET
    steady = _pass_by(steady, policy)
    if standing.is_flapping:
        return steady, Cause.FLAPPING if steady.is_flapping else Cause.FLAPPING_ENDED
    if standing.level is not Status.OK:
        return steady, Cause.STILL_WRONG
    return steady, Cause.STILL_OK if standing.streak is None else Cause.PASSED


def _pass_by(standing: Standing, policy: NotifySettings) -> Standing:
    """One pass without a change; flapping ends only here, since every change adds to it. The incident then
    goes on when the subject is wrong, and ended at its last change when not."""
    changes = flapping.push(standing.changes, changed=False)
    still = standing.is_flapping and flapping.is_flapping(changes, True, policy.flapping)
    passed = replace(standing, changes=changes, is_flapping=still)
    ended = standing.is_flapping and not still and standing.level is Status.OK
    return _close(passed, standing.level_since) if ended and standing.level_since else passed


def _confirm(
    standing: Standing, streak: Streak, seen: Observation, at: datetime, policy: NotifySettings
) -> tuple[Standing, Cause]:
    """The level moves to what the streak says."""
    level = seen.status if streak.course > 0 else streak.worst
    changes = flapping.push(standing.changes, changed=True)
    flaps = flapping.is_flapping(changes, standing.is_flapping, policy.flapping)
    since = _began(seen, streak, standing.incident)
    moved = replace(standing, level=level, level_since=since, changes=changes, is_flapping=flaps, streak=None)
    moved = replace(moved, acked=standing.acked and streak.course < 0)
    if level is not Status.OK:
        moved = _open(moved, seen, since, at)
    elif not flaps:
        moved = _close(moved, since)
    return moved, _cause_of(standing, moved, seen)


def _began(seen: Observation, streak: Streak, incident: Incident | None) -> datetime:
    """When the level began: what the evidence says (a deadline, a run), never later than the first pass that
    saw it, and for a better level never before the incident."""
    if seen.since is None or (streak.course < 0 and incident and seen.since <= incident.opened_at):
        return streak.since
    return min(seen.since, streak.since)


def _open(standing: Standing, seen: Observation, since: datetime, at: datetime) -> Standing:
    """With an incident: a new one, or the one that goes on (other severity, flapping, an untold end)."""
    if standing.incident is None:
        opened = Incident(
            incident_id(standing.subject, at), standing.subject, since, seen.status, seen.phase, seen.summary
        )
        standing = replace(standing, incident=opened)
    return _describe(standing, seen)


def _describe(standing: Standing, seen: Observation) -> Standing:
    """With the words of the latest pass, while it is wrong."""
    incident = standing.incident
    if incident is None or standing.level is Status.OK:
        return standing
    worst = max(incident.status, standing.level, key=lambda status: status.severity)
    told = replace(
        incident,
        status=worst,
        phase=seen.phase,
        summary=seen.summary,
        reason=seen.reason,
        name=seen.name,
        closed_at=None,
    )
    return replace(standing, incident=told)


def _close(standing: Standing, at: datetime) -> Standing:
    incident = standing.incident
    if incident is None:
        return standing
    return replace(standing, incident=replace(incident, closed_at=max(at, incident.opened_at)))


def _cause_of(before: Standing, after: Standing, seen: Observation) -> Cause:
    if after.is_flapping:
        return Cause.FLAPPING if before.is_flapping else Cause.FLAPPING_BEGAN
    if before.level is Status.OK:
        return Cause.FIRED
    if after.level is Status.OK:
        return Cause.DISABLED if seen.phase is Phase.DISABLED else Cause.RECOVERED
    return Cause.WORSE if after.level.severity > before.level.severity else Cause.EASED
