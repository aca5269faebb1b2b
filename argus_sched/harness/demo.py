"""The whole story in under a minute: two workers, one leader, two failovers, a forgotten job and its alert.

Everything runs on this machine and is gone at the end: a throw-away Postgres, two worker processes, the
agent as cron would run it, and a stand-in for Telegram where no bot is configured.
"""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import replace
from pathlib import Path

from argus_sched.harness import archive, faults, invariants, labs_at_speed, run
from argus_sched.harness.expected import Plan
from argus_sched.harness.figures import Sample, samples
from argus_sched.harness.live import Pages, Scene
from argus_sched.harness.reigns import reigns
from argus_sched.harness.report import Record
from argus_sched.harness.scenario import Step
from argus_sched.harness.settings import RunSettings
from argus_sched.harness.stage import Say, Stage, called, set_up, show

FORGOTTEN = "booking_reminders"
PATIENCE = 60.0
OK, CRIT = 0, 2
# While the page is open: seconds until it shows who leads, and after how many of them the agent looks again.
MOMENT, MOMENTS = 0.5, 6
SHOWN_MESSAGES = 3


def play(say: Say, report: Path, pages: Pages | None = None) -> int:
    """Tell the story, and leave its report in `report`; 0 when everything came as it should.

    With `pages` everything goes on after the story, and can be looked at, until Ctrl-C.
    """
    with set_up(say) as stage:
        since = _meet(stage)
        _kill(stage)
        _terminate(stage)
        record = _judge(stage, since)
        page = archive.keep(record, report)
        told = _forget_a_job(stage) and _bring_it_back(stage)
        _sum_up(stage, record)
        if pages is not None:
            _stay_open(stage, pages, page)
    say(f"The two failovers as a picture: {page}\nAll else is gone: the processes, the database, the files.")
    return 0 if record.verdict.held and told else 1


def _meet(stage: Stage) -> float:
    stage.say("Two workers of one application start. Each has the same twelve jobs; one of them must lead.")
    since = run.begin(stage.ground, labs_at_speed.plans(), lambda _: None)
    stage.say(f"{stage.leader()} leads. Once a job runs, the log says so; here are its last lines:")
    show(_last_runs(stage, 3))
    stage.say(
        "The agent reads that log and looks at the lock in Postgres, as cron would have it do each minute:"
    )
    stage.cluster.rest(1.0)
    _check(stage, told=True)
    return since


def _kill(stage: Stage) -> None:
    old = stage.leader()
    stage.say(f"Now {old} is killed, with kill -9: it can tell nobody.")
    faults.kill(stage.ground, Step(0, "kill"))
    cost = _cost(stage)
    stage.say(
        f"{stage.leader()} leads {_ms(cost.promotion_ms)} after the kill. "
        "A new process takes the dead one's place and stands by."
    )
    stage.cluster.wait_until(stage.cluster.complete, PATIENCE, "the killed worker did not come back")
    stage.cluster.rest(2.0)


def _terminate(stage: Stage) -> None:
    old = stage.leader()
    stage.say(
        f"Next, Postgres ends the leader's session (pg_terminate_backend), while {old} itself lives on."
    )
    faults.terminate(stage.ground, Step(0, "terminate"))
    stage.cluster.rest(1.5)
    cost = _cost(stage)
    stage.say(
        f"{old} noticed and stopped firing after {_ms(cost.demotion_ms)}; "
        f"{stage.leader()} leads {_ms(cost.promotion_ms)} after the cut."
    )
    stage.cluster.rest(2.0)


def _forget_a_job(stage: Stage) -> bool:
    """Deploy a version without one job and wait for the agent; True when it said so."""
    name = next(plan.name for plan in labs_at_speed.plans() if plan.job == FORGOTTEN)
    stage.say(f'A new version is deployed, worker by worker, and it forgot one job: "{name}". Nothing fails.')
    _deploy(stage, tuple(plan for plan in labs_at_speed.plans() if plan.job != FORGOTTEN))
    stage.say("Only the agent can notice, by what is missing from the log. It looks again and again:")
    if not _check_until(stage, CRIT):
        stage.say("The agent did not notice, and should have: please report that.")
        return False
    _tell_message(stage, "It is critical now, and one message went out")
    _check(stage, told=True)
    return True


def _bring_it_back(stage: Stage) -> bool:
    """Deploy the job again and wait for the agent; True when it said that all is well."""
    stage.say("The next version has the job again.")
    _deploy(stage, labs_at_speed.plans())
    if not _check_until(stage, OK):
        stage.say("The agent did not see it come back, and should have: please report that.")
        return False
    _tell_message(stage, "All is well, and the recovery was told too")
    return True


def _deploy(stage: Stage, plans: tuple[Plan, ...]) -> None:
    replace(stage.cluster.settings, plans=plans).write(stage.folder)
    faults.deploy(stage.ground)


def _check_until(stage: Stage, wanted: int) -> bool:
    """Run the agent until it exits with `wanted` and its message has come; False when that takes too long."""
    deadline, owed = time.monotonic() + PATIENCE, stage.owed
    while True:
        code = _check(stage, told=False)
        print(f"    argus-sched check: exit code {code}", flush=True)
        # A chat of yours does not say what it got; the agent knows what it had to tell.
        told = code == wanted and (bool(stage.messages) if stage.stand_in else stage.owed > owed)
        if told or time.monotonic() > deadline:
            print(flush=True)
            return told
        stage.cluster.rest(1.2)


def _tell_message(stage: Stage, what: str) -> None:
    if stage.stand_in:
        stage.say(f"{what}. This is what Telegram would show:")
        show(stage.messages.pop().splitlines())
    elif stage.delivered < stage.owed:
        stage.say("This was to be told to your chat, which could not be reached: the agent keeps trying.")
    else:
        stage.say(f"{what}, to your chat.")


def _check(stage: Stage, *, told: bool) -> int:
    """One look of the agent; `told` shows what it prints."""
    done = stage.look()
    lines = ["$ argus-sched check", *done.stdout.rstrip().splitlines()] if told else []
    if lines or done.stderr.strip():
        show([*lines, *done.stderr.rstrip().splitlines()])
    return done.returncode


def _cost(stage: Stage) -> Sample:
    """What the last fault cost, once the next leader is known."""
    stage.ground.leader()
    history = stage.cluster.history()
    return samples(history, reigns(history), time.time())[-1]


def _judge(stage: Stage, since: float) -> Record:
    plans, span = labs_at_speed.plans(), (round(since * 1000), round(time.time() * 1000))
    run.drain(stage.ground, plans, span, lambda _: None)
    history = stage.cluster.history(run.claims(stage.ground, plans, span))
    verdict = invariants.judge(history, plans, span, stage.ground.profile.rules())
    settings = RunSettings(workers=2, jobs=len(plans), duration=0, faults=("kill", "terminate"), seed=0)
    return Record(settings, plans, span, history, verdict, ("This was the demo: argus-sched demo",))


def _sum_up(stage: Stage, record: Record) -> None:
    verdict = record.verdict
    stage.say(
        f"Until the deploy, {verdict.expected} runs were due: {verdict.lost} were lost, "
        f"{verdict.doubled} ran twice, and {verdict.interrupted} died with the killed worker. "
        "That is the judgement of code that shares nothing with the scheduler."
    )


def _stay_open(stage: Stage, pages: Pages, report: Path) -> None:
    """Go on, and show it, until Ctrl-C; a worker that ended, by whatever hand, is started again."""
    stage.say(
        f"It goes on until Ctrl-C, and you can watch it: {pages.url}\n"
        "Try it yourself: kill -9 the leader's process and look who leads."
    )
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            table, at = stage.look().stdout, time.time()
            for _ in range(MOMENTS):
                pages.scene = _scene(stage, table, at, report)
                stage.cluster.rest(MOMENT)
                _start_ended(stage)


def _scene(stage: Stage, table: str, at: float, report: Path) -> Scene:
    leader = stage.cluster.in_role("leader")
    return Scene(
        leader=called(leader.name) if leader else "nobody, for the moment",
        workers=tuple(f"{called(worker.name)}: {worker.role}" for worker in stage.cluster.live()),
        table=table,
        at=at,
        metrics=stage.metrics.read_bytes(),
        messages=tuple(stage.messages[-SHOWN_MESSAGES:]),
        report=report,
    )


def _start_ended(stage: Stage) -> None:
    for slot in stage.cluster.slots.values():
        if slot.process is not None and slot.process.poll() is not None:
            stage.cluster.refill(slot.name)


def _last_runs(stage: Stage, count: int) -> list[str]:
    log = stage.cluster.log_path(next(iter(stage.cluster.slots)))
    lines = (json.loads(line)["log"].rstrip() for line in log.read_text().splitlines())
    return [line for line in lines if "Running job" in line][-count:]


def _ms(value: float | None) -> str:
    return "an unknown time" if value is None else f"{value:.1f} ms"
