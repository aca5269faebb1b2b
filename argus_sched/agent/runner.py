"""One pass: look at every log and lock, decide what it means, settle what must be kept and told.

`look` reads and never judges, `decide` judges and never reads, `settle` writes in one transaction and sends
after it. A task that is late, or that fails for a reason nobody foresaw, makes its own targets UNKNOWN and no
others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from argus_sched.agent.check import Node, OwnState, PassReport
from argus_sched.agent.fan_out import fan_out
from argus_sched.agent.hosts import Roll, agreed
from argus_sched.agent.judging.evidence import Evidence
from argus_sched.agent.kinds.scheduler_jobs import LogLook, judge_log
from argus_sched.agent.packs import JobsCheck, Pack, PackFile
from argus_sched.agent.status import Status
from argus_sched.agent.store.run_lock import StoreBusyError
from argus_sched.agent.store.sqlite import Memory, Store, remember
from argus_sched.agent.tasks import Edges, LogTask, Look, Task, Verdicts, tasks_of
from argus_sched.agent.telling.notify_ports import Teller
from argus_sched.errors import DeliveryError, StoreError

log = logging.getLogger(__name__)

Looks = Mapping[str, Look | Exception]  # by task; a task that was late has no entry


@dataclass(frozen=True)
class Agent:
    """One deployment's agent, ready for passes; `app.build_agent` makes it.

    `deadline` bounds the looking of a pass. `files` are those the packs were read from; one that holds none
    is told as a source that cannot be read. Without `saves` a pass reads the store and leaves no trace: it
    writes nothing and tells nobody. `exclusively` keeps a second run out meanwhile.
    """

    packs: tuple[Pack, ...]
    edges: Edges
    store: Store
    deadline: timedelta
    files: tuple[PackFile, ...] = ()
    saves: bool = True
    teller: Teller | None = None
    beat: Callable[[], None] | None = None
    exclusively: Callable[[], AbstractContextManager[None]] = field(default=nullcontext)

    def close(self) -> None:
        """Give the state file and the channels' connections back."""
        self.store.close()
        if self.teller:
            self.teller.close()


def run_pass(agent: Agent) -> PassReport:
    """Look, decide, settle; raises StoreBusyError when another run does not end in time."""
    with _alone(agent):
        report, looks = observe(agent)
        return settle(agent, looks, report) if agent.saves else report


def observe(agent: Agent) -> tuple[PassReport, Looks]:
    """The first two thirds of a pass, which leave no trace: look and decide."""
    clock = agent.edges.clock
    began = clock.elapsed()
    memory, readable = _recall(agent.store)
    tasks = list(tasks_of(agent.packs))
    looks = look(agent, tasks, memory.evidence, agent.deadline)
    report = decide(agent, tasks, looks, memory.evidence)
    if doubtful := _turned_critical(tasks, report, memory):
        # Before anyone is paged, the source is read once more: a run may have come while it was read.
        left = agent.deadline - timedelta(seconds=clock.elapsed() - began)
        again = look(agent, doubtful, evidence_of(looks), left)
        looks = {**looks, **{key: found for key, found in again.items() if isinstance(found, LogLook)}}
        report = decide(agent, tasks, looks, memory.evidence)
    return replace(report, seconds=clock.elapsed() - began, state_saved=readable), looks


def look(agent: Agent, tasks: Sequence[Task], evidence: Mapping[str, Evidence], limit: timedelta) -> Looks:
    """Read logs and locks side by side, for at most `limit`; no host waits for another."""
    roll = Roll()
    work: dict[str, Callable[[], Look]] = {
        task.key: partial(_look, task, agent.edges, evidence.get(task.app, Evidence()), roll)
        for task in tasks
    }
    lanes = {task.key: task.lane(agent.edges) for task in tasks}
    return fan_out(work, limit.total_seconds(), lanes=lanes)


def _look(task: Task, edges: Edges, evidence: Evidence, roll: Roll) -> Look:
    absences = [roll.absent(host) for host in task.hosts(edges)]
    if absences and all(absences):
        return task.away(edges, absences[0], evidence)
    found = task.look(edges, evidence)
    roll.note(found.nodes)
    return found


def decide(agent: Agent, tasks: Sequence[Task], looks: Looks, evidence: Mapping[str, Evidence]) -> PassReport:
    """The verdict on every target, in the order of the packs; by `evidence` where nothing was seen."""
    now = agent.edges.clock.now()
    verdicts, complete = [], not any(file.problem for file in agent.files)
    for task in tasks:
        found = _judge(task, looks.get(task.key), agent.deadline)
        if isinstance(found, str):
            complete = False
            found = _verdicts(task.unseen(found, evidence.get(task.app, Evidence()), now))
        verdicts.append(found)
    results = tuple(result for found in verdicts for result in found.results)
    files = [Node("", file.node, None, not file.problem, file.problem) for file in agent.files]
    nodes = agreed([*files, *(node for found in verdicts for node in found.nodes)])
    return PassReport(now, results, nodes, complete, seconds=0.0, notes=_notes(looks))


def settle(agent: Agent, looks: Looks, report: PassReport) -> PassReport:
    """Keep evidence and verdicts, record in the same transaction what must be told, then tell it."""
    saved = report.state_saved and _keep(agent, looks, report)
    report = replace(report, state_saved=saved)
    if agent.teller:
        _tell(agent.teller, report)
        report = replace(report, own=_own_state(agent.teller))
    if agent.beat and report.complete and report.state_saved:
        _beat(agent.beat)
    return report


def evidence_of(looks: Looks) -> dict[str, Evidence]:
    """The evidence after a pass, by application; none for a log that was not looked at."""
    return {found.app: found.evidence for found in looks.values() if isinstance(found, LogLook)}


def _notes(looks: Looks) -> tuple[str, ...]:
    found = (look for look in looks.values() if isinstance(look, LogLook))
    return tuple(dict.fromkeys(f"{look.app}: {note}" for look in found for note in look.notes))


@contextmanager
def _alone(agent: Agent) -> Iterator[None]:
    """Keep other runs out; where that cannot be, neither can the state be written, which is told there."""
    with ExitStack() as stack:
        try:
            stack.enter_context(agent.exclusively())
        except StoreBusyError:
            raise
        except StoreError as error:
            log.debug("%s", error)
        yield


def _recall(store: Store) -> tuple[Memory, bool]:
    try:
        return store.recall(), True
    except StoreError as error:
        log.error("state not read, so it is not written, and only what the logs hold is judged: %s", error)
        return Memory(), False


def _keep(agent: Agent, looks: Looks, report: PassReport) -> bool:
    """Write one pass; False, and told, when that failed."""
    try:
        with agent.store.transaction() as connection:
            remember(connection, evidence_of(looks), report)
            if agent.teller:
                agent.teller.decide(connection, report, report.at)
        return True
    except Exception as error:
        log.error("state not saved: %s", error, exc_info=not isinstance(error, StoreError))
        return False


def _judge(task: Task, found: Look | Exception | None, deadline: timedelta) -> Verdicts | str:
    """The verdicts on what `task` found, or the problem that left it without any."""
    if found is None:
        return f"no answer within {deadline.total_seconds():g} s, the deadline of the pass"
    try:
        if not isinstance(found, Exception):
            return _verdicts(found)
    except Exception as error:
        found = error
    log.error("the check of %s failed", task.key, exc_info=found)
    return f"the check itself failed, see its traceback in the log ({type(found).__name__}: {found})"


def _verdicts(found: Look) -> Verdicts:
    return Verdicts(*judge_log(found)) if isinstance(found, LogLook) else found


def _turned_critical(tasks: Sequence[Task], report: PassReport, memory: Memory) -> list[Task]:
    """The logs of applications with a job that is CRIT and was not at the last pass."""
    apps = {
        result.app
        for result in report.results
        if result.check == JobsCheck.kind
        and result.status is Status.CRIT
        and memory.statuses.get(result.target) is not Status.CRIT
    }
    return [task for task in tasks if isinstance(task, LogTask) and task.app in apps]


def _tell(teller: Teller, report: PassReport) -> None:
    tell = teller.deliver if report.state_saved else partial(teller.tell_unsaved, report)
    try:
        for problem in tell(report.at):
            log.warning("%s", problem)
    except Exception:
        # What is owed stays in the store, and the verdicts of this pass are right all the same.
        log.exception("notices could not be delivered")


def _own_state(teller: Teller) -> OwnState | None:
    """How the agent itself is; None, which metrics show as unknown, when the store does not say."""
    try:
        own = teller.own_state()
    except StoreError as error:
        log.debug("%s", error)
        return None
    for refusal in own.refused:
        log.warning("no alert gets through %s", refusal)
    return own


def _beat(beat: Callable[[], None]) -> None:
    try:
        beat()
    except DeliveryError as error:
        log.warning("%s", error)
