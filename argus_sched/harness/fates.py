"""What became of each due time: it ran, ran twice, was interrupted by a kill, or was lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from argus_sched.harness import reigns
from argus_sched.harness.case import Case, Fire, Run
from argus_sched.harness.verdict import Violation, iso

# How long after its end a run may still be unknown to the scheduler's own ledger.
UNTOLD = 1.0


def doubled(case: Case) -> Iterator[Violation]:
    for fire, runs in case.runs.items():
        for earlier, later in pairwise(runs):
            if not _may_repeat(case, fire, earlier, later):
                workers = f"by {earlier.start.worker} and by {later.start.worker}"
                apart = (later.start.at - earlier.start.at) * 1000.0
                message = f"{fire[0]} due {iso(fire[1])} ran twice: {workers}, {apart:.0f} ms apart"
                yield case.violation("doubled", message, fire, later.start.at)


def _may_repeat(case: Case, fire: Fire, earlier: Run, later: Run) -> bool:
    """True for an `at_least_once` job whose worker was killed, frozen or cut off before the later run."""
    plan, worker, began = case.plans.get(fire[0]), earlier.start.worker, earlier.start.at
    if plan is None or not plan.at_least_once or later.start.attempt <= earlier.start.attempt:
        return False
    # A worker that dies, freezes or is cut off just after its body has not told anybody that it ran.
    ended = later.start.at if earlier.end is None else earlier.end
    untold_until = min(later.start.at, ended + UNTOLD)
    killed = began <= case.kills.get(worker, 0.0) <= untold_until
    frozen = any(began <= f.until and f.at <= untold_until for f in case.frozen[worker])
    return killed or frozen or case.cut_off_during(worker, began, untold_until)


@dataclass
class Fates:
    """What became of the due times that did not simply run."""

    lost: list[Violation] = field(default_factory=list)
    unexplained: list[Violation] = field(default_factory=list)
    interrupted: int = 0
    beyond_window: int = 0


def fates_of(case: Case) -> Fates:
    fates = Fates()
    leaderless = reigns.spans_with(case.reigns, range(1), case.seconds[0], case.seconds[1])
    for job, dues in case.expected.items():
        for due in dues:
            runs = case.runs.get((job, due))
            if runs is None:
                _fate_of_missing(case, (job, due), leaderless, fates)
            elif all(run.end is None for run in runs):
                _fate_of_unfinished(case, (job, due), runs, fates)
    return fates


def _fate_of_missing(case: Case, fire: Fire, leaderless: Iterable[tuple[float, float]], fates: Fates) -> None:
    claim, due = case.claims.get(fire), fire[1] / 1000.0
    if claim is not None and claim.outcome == "interrupted":
        # The database may carry out what it was sent before the kill, some time after it.
        if case.killed_during(claim.worker, claim.at - case.rules.in_flight, claim.ended):
            fates.interrupted += 1
        else:
            said = (
                f"{fire[0]} due {iso(fire[1])} is recorded as interrupted, "
                f"but {claim.worker} was not killed between its claim and that record"
            )
            fates.unexplained.append(case.violation("interrupted", said, fire, claim.at))
    elif any(left <= due and due + case.rules.catch_up_window <= right for left, right in leaderless):
        fates.beyond_window += 1
    else:
        state = f"the ledger says {claim.outcome or 'open'!r}" if claim else "it was never claimed"
        message = f"{fire[0]} due {iso(fire[1])} was lost: no body ran and {state}"
        fates.lost.append(case.violation("lost", message, fire))


def _fate_of_unfinished(case: Case, fire: Fire, runs: Sequence[Run], fates: Fates) -> None:
    last = runs[-1].start
    plan, claim = case.plans[fire[0]], case.claims.get(fire)
    what = f"{fire[0]} due {iso(fire[1])} began on {last.worker} and never finished"
    if not case.killed_during(last.worker, last.at):
        fates.unexplained.append(
            case.violation("interrupted", f"{what}, and nobody killed it", fire, last.at)
        )
    elif plan.at_least_once:
        fates.unexplained.append(
            case.violation("interrupted", f"{what}, and it was not run again", fire, last.at)
        )
    elif claim is not None and claim.outcome != "interrupted":
        said = f"{what}; its worker was killed, but the ledger says {claim.outcome or 'open'!r}"
        fates.unexplained.append(case.violation("interrupted", said, fire, last.at))
    else:
        fates.interrupted += 1
