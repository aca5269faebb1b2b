"""A made-up run of 40 seconds with three workers, for the tests of its report."""

from __future__ import annotations

from argus_sched.harness.expected import Plan, due_times
from argus_sched.harness.history import (
    Belief,
    Born,
    Died,
    Event,
    Fault,
    Finished,
    Frozen,
    History,
    Holders,
    Started,
)
from argus_sched.harness.invariants import judge
from argus_sched.harness.profiles import PROFILES
from argus_sched.harness.report import Record
from argus_sched.harness.settings import RunSettings

T0 = 1_800_000_000
# worker, slot, born, died
LIVES = [
    ("w1.10", "w1", -3, 5.0),
    ("w1.40", "w1", 6.0, None),
    ("w2.11", "w2", -3, None),
    ("w3.12", "w3", -3, 30.0),
    ("w3.41", "w3", 30.9, None),
]
# worker, role, epoch, at
ROLES = [
    ("w1.10", "leader", 1, -2.5),
    ("w2.11", "heir", 0, -2.0),
    ("w3.12", "standby", 0, -2.4),
    ("w2.11", "leader", 2, 5.009),
    ("w3.12", "heir", 0, 5.6),
    ("w1.40", "standby", 0, 6.5),
    ("w2.11", "standby", 2, 12.001),
    ("w3.12", "leader", 3, 12.004),
    ("w2.11", "heir", 0, 12.8),
    ("w2.11", "leader", 4, 22.9),
    ("w3.12", "standby", 3, 24.005),
    ("w3.12", "heir", 0, 24.6),
    ("w1.40", "heir", 0, 30.7),
    ("w3.41", "standby", 0, 31.3),
]
FAULTS = [
    Fault(T0 + 5, T0 + 5, "kill", "w1.10", True, T0 + 5, "on w1.10"),
    Fault(T0 + 12, T0 + 12, "terminate", "w2.11", True, T0 + 12, "on w2.11"),
    Fault(T0 + 20, T0 + 24, "freeze", "w3.12", True, T0 + 20, "for 4.0 s on w3.12"),
    Fault(T0 + 24.5, T0 + 26, "clock", "w2.11", True, T0 + 24.5, "by +2.00 s for 1.5 s on w2.11"),
    Fault(T0 + 30, T0 + 30, "kill", "w3.12", False, T0 + 30, "on w3.12 <not the leader>"),
]


def record(*, doubled: bool = False, plans: int = 8, seconds: int = 40) -> Record:
    """The run; with `doubled`, one fire of it ran twice."""
    chosen = tuple(Plan(f"job_{n}", f"Job {n}", every_ms=1000, phase_ms=113 * n) for n in range(plans))
    span = (T0 * 1000, (T0 + seconds) * 1000)
    history = History.of(_events(chosen, span, doubled))
    settings = RunSettings(
        workers=3, jobs=plans, duration=40, faults=("kill", "terminate", "freeze", "clock"), seed=4711
    )
    verdict = judge(history, chosen, span, PROFILES["default"].rules(), seed=4711)
    return Record(settings, chosen, span, history, verdict, ("Three plain processes.",))


def _events(plans: tuple[Plan, ...], span: tuple[int, int], doubled: bool) -> list[Event]:
    events: list[Event] = [*FAULTS, Frozen(T0 + 20, T0 + 24, "w3.12"), Holders(T0 + 1, (7,))]
    for worker, slot, born, died in LIVES:
        events.append(Born(T0 + born, worker, slot, int(worker[3:])))
        events += [Died(T0 + died, worker, "kill")] if died else []
    events += [Belief(T0 + at, worker, role, epoch) for worker, role, epoch, at in ROLES]
    terms = sorted((at, worker, epoch) for worker, role, epoch, at in ROLES if role == "leader")
    terms = [(20.0, "", 0) if at == 22.9 else (at, worker, epoch) for at, worker, epoch in terms] + [
        (22.9, "w2.11", 4)
    ]
    for plan in plans:
        for number, due in enumerate(due_times(plan, *span)):
            events += _run(plan, due, 0.0008 + (number * 37 % 11) / 4000, terms)
    if doubled:
        due = (T0 + 8) * 1000
        events += [Started(T0 + 8.4, "w1.40", "job_0", due, 1), Finished(T0 + 8.41, "w1.40", "job_0", due)]
    return events


def _run(plan: Plan, due: int, late: float, terms: list[tuple[float, str, int]]) -> list[Event]:
    at = due / 1000.0 - T0 + late
    _, worker, epoch = max(term for term in terms if term[0] <= at)
    if not worker:  # caught up by the next leader
        at, (_, worker, epoch) = 22.905 + (due % 10_000) / 20_000, terms[-1]
    return [Started(T0 + at, worker, plan.job, due, epoch), Finished(T0 + at + 0.004, worker, plan.job, due)]
