"""The judge: what must hold in every history, whatever was done to the cluster.

1. No fire runs twice, none earlier than it is due, none at a time that is not due.
2. No due time is lost: it ran, or the worker that had claimed it was killed before it finished
   (`interrupted`, and the scheduler's ledger says so), or nobody led for longer than the catch-up window.
3. Runs of one job never overlap beyond its `max_instances`.
4. At most one database session holds the key, and no two workers act as leader, or run the leader-only
   service, for longer than the rules allow.
5. Nobody leads for longer than the rules allow only while the database is away.
6. No worker ends by itself.

Nothing here is shared with the scheduler: the due times come from `expected`, the runs from what the job
bodies wrote, the leaders from every worker's own belief.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import inf

from argus_sched.harness import expected, fates, figures, reigns
from argus_sched.harness.case import Case, Run
from argus_sched.harness.expected import Plan
from argus_sched.harness.history import Died, Fault, Frozen, History, Holders, Skewed, Started
from argus_sched.harness.verdict import Rules, Verdict, Violation, iso


def judge(
    history: History, plans: Sequence[Plan], span: tuple[int, int], rules: Rules, seed: int = 0
) -> Verdict:
    """The verdict on `history` for the due times in `span` = (after, until], milliseconds since the epoch."""
    case = Case(history, plans, span, rules)
    doubled, fate = list(fates.doubled(case)), fates.fates_of(case)
    by_fault = figures.by_fault(figures.samples(history, case.reigns, case.seconds[1], case.jittered))
    two = reigns.spans_with(case.reigns, range(2, 1000), *case.seconds)
    late = list(_late_writes(case))
    return Verdict(
        seed=seed,
        expected=sum(map(len, case.expected.values())),
        lost=len(fate.lost),
        doubled=len(doubled),
        interrupted=fate.interrupted,
        beyond_window=fate.beyond_window,
        max_holders=max((len(sample.pids or ()) for sample in history.of_kind(Holders)), default=0),
        leaderless_seconds=reigns.seconds(reigns.spans_with(case.reigns, range(1), *case.seconds)),
        two_leader_seconds=reigns.seconds(two),
        unfenced_writes=len(late),
        lateness_ms=figures.Percentiles.of(_lateness(case)),
        faults=by_fault,
        slow=(*figures.slow(by_fault, rules.bounds), *_slow_to_stop(case), *_off_jitter(case)),
        violations=(*doubled, *fate.lost, *fate.unexplained, *_rules(case, two, late)),
    )


def _rules(case: Case, two: Sequence[tuple[float, float]], late: Sequence[Started]) -> Iterator[Violation]:
    yield from _untimely(case)
    yield from _overlaps(case)
    yield from _holders(case)
    yield from _two_leaders(case, two)
    yield from _two_services(case)
    yield from _leaderless(case)
    yield from _unfenced(case, late)
    yield from _ended_by_itself(case)


def _untimely(case: Case) -> Iterator[Violation]:
    """Fires that ran before their due time by their worker's clock, or at a time that is not due."""
    after, until = case.span
    due_sets = {job: set(dues) for job, dues in case.expected.items()}
    for (job, due), runs in case.runs.items():
        if after < due <= until and due not in due_sets.get(job, ()):
            message = f"{job} ran for {iso(due)}, which is no due time of it"
            yield case.violation("not_due", message, (job, due), runs[0].start.at)
        earliest = due / 1000.0 + _jitter(case, job, due) - case.rules.early
        for run in runs:
            if run.start.at < earliest and run.start.at < earliest - _ahead(case, run.start):
                ms = (due / 1000.0 - run.start.at) * 1000.0
                message = f"{job} due {iso(due)} ran {ms:.0f} ms before it was due on {run.start.worker}"
                yield case.violation("early", message, (job, due), run.start.at)


def _jitter(case: Case, job: str, due: int) -> float:
    plan = case.plans.get(job)
    return expected.jitter_seconds(plan, due) if plan else 0.0


def _ahead(case: Case, start: Started) -> float:
    """How far the worker's clock was ahead in the second before the run: the start may follow a step back."""
    own = [skew for skew in case.history.of_kind(Skewed) if skew.worker == start.worker]
    before = [skew.seconds for skew in own if skew.at <= start.at - 1.0]
    within = [skew.seconds for skew in own if start.at - 1.0 < skew.at <= start.at]
    return max([0.0, *before[-1:], *within])


def _overlaps(case: Case) -> Iterator[Violation]:
    by_job: dict[str, list[Run]] = defaultdict(list)
    for (job, _), runs in case.runs.items():
        by_job[job] += runs
    for job, runs in by_job.items():
        plan = case.plans.get(job)
        spells = [
            reigns.Spell(r.start.worker, r.start.due_ms, r.start.at, _occupied_until(case, r)) for r in runs
        ]
        crowded = range(plan.max_instances + 1, 10_000) if plan else range(0)
        for left, right in reigns.spans_with(spells, crowded, *case.seconds):
            running = [s for s in spells if s.start < right and s.end > left]
            dues = ", ".join(f"{iso(s.epoch)} on {s.worker}" for s in running[:3])
            message = (
                f"{job} ran {len(running)} times at once for {(right - left) * 1000.0:.0f} ms: due {dues}"
            )
            yield case.violation("overlap", message, (job, running[0].epoch), left)


def _occupied_until(case: Case, run: Run) -> float:
    """Until when a run counts as running: a killed or frozen worker may be taken for dead."""
    worker, began = run.start.worker, run.start.at
    if case.thawed(worker, began):
        return began
    ends = [run.end if run.end is not None else case.deaths.get(worker, began)]
    ends += [freeze.at for freeze in case.frozen[worker] if freeze.at >= began]
    return min(ends)


def _holders(case: Case) -> Iterator[Violation]:
    crowds = [sample for sample in case.history.of_kind(Holders) if len(sample.pids or ()) > 1]
    if crowds:
        first = crowds[0]
        count = len(first.pids or ())
        message = f"{count} sessions held the key at once, in {len(crowds)} samples: pids {first.pids}"
        yield case.violation("holders", message, at=first.at)


def _two_leaders(case: Case, spans: Iterable[tuple[float, float]]) -> Iterator[Violation]:
    for left, right in spans:
        if right - left > case.rules.two_leaders:
            message = (
                f"two workers acted as leader for {right - left:.2f} s, allowed {case.rules.two_leaders:g} s"
            )
            yield case.violation("two_leaders", message, at=left)


def _two_services(case: Case) -> Iterator[Violation]:
    for left, right in _services_at_once(case):
        limit = case.rules.thawed if _after_a_thaw(case, left) else case.rules.two_services
        if right - left > limit:
            message = f"the leader-only service ran twice for {(right - left) * 1000.0:.0f} ms"
            yield case.violation("two_services", message, at=left)


def _slow_to_stop(case: Case) -> Iterator[str]:
    """A sentence when the service of a thawed worker ran on for longer than is normal."""
    longest = max(
        (right - left for left, right in _services_at_once(case) if _after_a_thaw(case, left)), default=0.0
    )
    if longest > case.rules.two_services:
        bound = case.rules.two_services * 1000.0
        yield (
            f"freeze: the leader-only service ran on for up to {longest * 1000.0:.0f} ms after the thaw, "
            f"bound {bound:.0f} ms"
        )


def _services_at_once(case: Case) -> list[tuple[float, float]]:
    return reigns.spans_with(reigns.services(case.history), range(2, 1000), *case.seconds)


def _after_a_thaw(case: Case, at: float) -> bool:
    return any(freeze.until == at for freeze in case.history.of_kind(Frozen))


def _leaderless(case: Case) -> Iterator[Violation]:
    limit = case.rules.leaderless
    for left, right in reigns.spans_with(case.reigns, range(1), *case.seconds):
        for start, end in reigns.without(left, right, _database_away(case)):
            if limit is not None and end - start > limit:
                message = (
                    f"nobody led for {end - start:.2f} s although the database answered, allowed {limit:g} s"
                )
                yield case.violation("leaderless", message, at=start)


def _database_away(case: Case) -> Iterator[tuple[float, float]]:
    since: float | None = None
    for sample in case.history.of_kind(Holders):
        if sample.pids is None and since is None:
            since = sample.at
        elif sample.pids is not None and since is not None:
            yield since, sample.at
            since = None
    if since is not None:
        yield since, inf


def _late_writes(case: Case) -> Iterator[Started]:
    """Bodies that began under an older term after one of a newer term had begun."""
    newest = 0
    for start in case.history.of_kind(Started):
        if start.epoch < newest:
            yield start
        newest = max(newest, start.epoch)


def _unfenced(case: Case, late: Iterable[Started]) -> Iterator[Violation]:
    first_of: dict[int, float] = {}
    for start in case.history.of_kind(Started):
        first_of.setdefault(start.epoch, start.at)
    for start in late:
        newer = min(at for epoch, at in first_of.items() if epoch > start.epoch)
        if start.at - newer > case.rules.two_leaders and not case.thawed(start.worker, start.at):
            fire = (start.job, start.due_ms)
            late_by = start.at - newer
            message = f"{start.job} ran under term {start.epoch}, {late_by:.2f} s after a newer one had begun"
            yield case.violation("unfenced", message, fire, start.at)


def _ended_by_itself(case: Case) -> Iterator[Violation]:
    for death in case.history.of_kind(Died):
        if death.how == "itself":
            yield case.violation("worker_died", f"{death.worker} ended by itself", at=death.at)


def _off_jitter(case: Case) -> Iterator[str]:
    """A sentence for each job with a jitter whose fires came long after it while nothing was wrong."""
    troubled = [(fault.at, fault.until + case.rules.quiet_after) for fault in case.history.of_kind(Fault)]
    worst: dict[str, float] = {}
    for (job, due), runs in case.runs.items():
        start, wanted = runs[0].start.at, due / 1000.0 + _jitter(case, job, due)
        quiet = not any(left <= start and due / 1000.0 <= right for left, right in troubled)
        if job in case.jittered and case.span[0] < due <= case.span[1] and quiet:
            worst[job] = max(worst.get(job, 0.0), start - wanted)
    for job, off in worst.items():
        if off > case.rules.off_jitter:
            yield f"{job}: started up to {off * 1000.0:.0f} ms after its computed jitter"


def _lateness(case: Case) -> Iterator[float]:
    after, until = case.span
    for (job, due), runs in case.runs.items():
        if after < due <= until and job not in case.jittered:
            yield max(0.0, (runs[0].start.at - due / 1000.0) * 1000.0)
