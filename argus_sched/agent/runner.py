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

from argus_sched.agent.check import Node, PassReport, Result
from argus_sched.agent.evidence import Evidence
from argus_sched.agent.fan_out import fan_out
from argus_sched.agent.kinds.scheduler_jobs import LogLook, judge_log
from argus_sched.agent.notify_ports import Teller
from argus_sched.agent.packs import Pack
from argus_sched.agent.status import Status
from argus_sched.agent.store.run_lock import StoreBusyError
from argus_sched.agent.store.sqlite import Memory, Store, remember
from argus_sched.agent.tasks import Edges, LogTask, Look, Task, Verdicts, tasks_of
from argus_sched.errors import ArgusError, DeliveryError, StoreError

log = logging.getLogger(__name__)

Looks = Mapping[str, Look | Exception]  # by task; a task that was late has no entry


@dataclass(frozen=True)
class Agent:
    """One deployment's agent, ready for passes; `app.build_agent` makes it.

    `deadline` bounds the looking of a pass. Without `saves` a pass reads the store and leaves no trace: it
    writes nothing and tells nobody. `exclusively` keeps a second run out meanwhile.
    """

    packs: tuple[Pack, ...]
    edges: Edges
    store: Store
    deadline: timedelta
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
    began = agent.edges.clock.elapsed()
    memory, readable = _recall(agent.store)
    tasks = list(tasks_of(agent.packs))
    looks = look(agent, tasks, memory.evidence)
    report = decide(agent, tasks, looks)
    if doubtful := _turned_critical(tasks, report, memory):
        # Before anyone is paged, the source is read once more: a run may have come while it was read.
        looks = {**looks, **look(agent, doubtful, evidence_of(looks))}
        report = decide(agent, tasks, looks)
    seconds = agent.edges.clock.elapsed() - began
    return replace(report, seconds=seconds, state_saved=readable), looks


def look(agent: Agent, tasks: Sequence[Task], evidence: Mapping[str, Evidence]) -> Looks:
    """Read logs and locks side by side, until the deadline."""
    work: dict[str, Callable[[], Look]] = {
        task.key: partial(task.look, agent.edges, evidence.get(task.app, Evidence())) for task in tasks
    }
    return fan_out(work, agent.deadline.total_seconds())


def decide(agent: Agent, tasks: Sequence[Task], looks: Looks) -> PassReport:
    """The verdict on every target, in the order of the packs."""
    results: list[Result] = []
    nodes: dict[Node, None] = {}
    complete = True
    for task in tasks:
        verdicts = _verdicts(task, looks.get(task.key), agent.deadline)
        results += verdicts.results
        nodes |= dict.fromkeys(verdicts.nodes)
        complete &= isinstance(looks.get(task.key), LogLook | Verdicts)
    return PassReport(agent.edges.clock.now(), tuple(results), tuple(nodes), complete, seconds=0.0)


def settle(agent: Agent, looks: Looks, report: PassReport) -> PassReport:
    """Keep evidence and verdicts, record in the same transaction what must be told, then tell it."""
    saved = report.state_saved and _keep(agent, looks, report)
    report = replace(report, state_saved=saved)
    if agent.teller:
        _tell(agent.teller, report)
    if agent.beat and report.complete and report.state_saved:
        _beat(agent.beat)
    return report


def evidence_of(looks: Looks) -> dict[str, Evidence]:
    """The evidence after a pass, by application; none for a log that was not looked at."""
    return {found.app: found.evidence for found in looks.values() if isinstance(found, LogLook)}


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


def _verdicts(task: Task, found: Look | Exception | None, deadline: timedelta) -> Verdicts:
    if found is None:
        return _unseen(task, f"no answer within {deadline.total_seconds():g} s, the deadline of the pass")
    try:
        if isinstance(found, LogLook):
            return Verdicts(*judge_log(found))
    except Exception as error:
        found = error
    return found if isinstance(found, Verdicts) else _unseen(task, _explain(task, found))


def _explain(task: Task, error: Exception) -> str:
    if isinstance(error, ArgusError):
        return str(error)
    log.error("the check of %s failed", task.key, exc_info=error)
    return f"the check itself failed, see its traceback in the log ({type(error).__name__}: {error})"


def _unseen(task: Task, problem: str) -> Verdicts:
    return task.unseen(Node(task.app, task.source, None, False, problem))


def _turned_critical(tasks: Sequence[Task], report: PassReport, memory: Memory) -> list[Task]:
    """The logs of applications with a job that is CRIT and was not at the last pass."""
    crit = Status.CRIT
    turned = [one for one in report.results if one.status is crit is not memory.statuses.get(one.target)]
    apps = {(result.app, result.check) for result in turned}
    return [task for task in tasks if isinstance(task, LogTask) and (task.app, task.checks[0].kind) in apps]


def _tell(teller: Teller, report: PassReport) -> None:
    tell = teller.deliver if report.state_saved else partial(teller.tell_unsaved, report)
    try:
        for problem in tell(report.at):
            log.warning("%s", problem)
    except Exception:
        # What is owed stays in the store, and the verdicts of this pass are right all the same.
        log.exception("notices could not be delivered")


def _beat(beat: Callable[[], None]) -> None:
    try:
        beat()
    except DeliveryError as error:
        log.warning("%s", error)
