"""How each cell of the matrix is acted out; the names are the table's."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from argus_sched import due_times
from argus_sched.agent.packs import JobSpec
from argus_sched.agent.status import Status
from argus_sched.cli import main
from tests.fakes.bot_api import Answer, Drop, refusal
from tests.fakes.docker_daemon import UNREADABLE, CutOff, DaemonError, Damage, Hang
from tests.matrix.play import DATABASE, HOUR, LOCK, MINUTE, SECOND, Play
from tests.matrix.stage import spoil
from tests.matrix.world import Job, holder

Plan = Callable[[Play], None]
PLANS: dict[str, Plan] = {}


def plan(*names: str) -> Callable[[Plan], Plan]:
    """The function acts out these cells."""

    def enter(function: Plan) -> Plan:
        PLANS.update(dict.fromkeys(names, function))
        return function

    return enter


def given(name: str, *arguments: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The function acts out cell `name` with these arguments."""

    def enter(function: Callable[..., None]) -> Callable[..., None]:
        PLANS[name] = functools.partial(_with, function, arguments)
        return function

    return enter


def _with(function: Callable[..., None], arguments: tuple[object, ...], play: Play) -> None:
    function(play, *arguments)


# jobs


@plan("healthy", "lock held by one")
def healthy(play: Play) -> None:
    play.begin()
    play.passes(25)


@plan("job dead")
def dead(play: Play) -> None:
    play.begin()
    play.dies()
    play.comes_back()


@plan("cron job dead")
def cron_dead(play: Play) -> None:
    play.job = play.add(
        Job("cron", "cron", 5 * MINUTE, play.rng.choice((2, 3, 6)) * MINUTE, cron="*/5 * * * *")
    )
    dead(play)


@plan("late inside grace")
def late(play: Play) -> None:
    play.begin()
    job = play.job
    job.alive = False
    # Between two passes a little more than a minute goes by.
    play.passes_until(lambda: play.world.now + MINUTE + 5 * SECOND > job.runs[-1] + job.limit)
    play.world.run(job, play.world.now)
    job.alive = True
    play.passes(10)


@plan("early by a second")
def early(play: Play) -> None:
    play.begin()
    play.job.early = timedelta(seconds=1)
    cron = next(job for job in play.watched if job.cron)
    play.passes_until(lambda: play.world.now.minute == 30)
    cron.early = timedelta(seconds=1)
    play.passes(20)


@plan("long-running")
def long_running(play: Play) -> None:
    play.begin()
    play.job.takes = play.job.interval * 0.9
    play.passes(15)


@plan("running longer than max_run")
def overrunning(play: Play) -> None:
    job = play.job
    job.interval = job.grace = 10 * MINUTE
    job.max_run = 3 * MINUTE
    play.begin()
    job.takes = 7 * MINUTE
    runs = len(job.runs)
    play.passes_until(lambda: len(job.runs) > runs, 40)
    job.takes = MINUTE
    play.passes(9)


@plan("overlapping")
def overlapping(play: Play) -> None:
    play.begin()
    play.job.takes = play.job.interval * 1.2
    if play.job.interval * 2 > play.job.limit:
        play.job.takes = play.job.interval * 0.99
    play.passes(20)


@plan("raising once")
def raising_once(play: Play) -> None:
    play.begin()
    _raise(play, 1)
    play.job.raises = False
    _next_end(play)
    play.unsay(play.subject)
    play.make_pass()
    play.passes(3)


@plan("raising for ever")
def raising(play: Play) -> None:
    play.begin()
    _raise(play, 4)
    play.job.raises = False
    _next_end(play)
    play.unsay(play.subject)
    play.make_pass()
    play.passes(3)


def _raise(play: Play, times: int) -> None:
    while play.job.id in play.world.running:
        play.world.advance(play.world.now + timedelta(seconds=1))
    play.job.raises = True
    for count in range(1, times + 1):
        _next_end(play)
        play.say(play.subject, Status.CRIT if count >= 3 else Status.WARN)
        play.make_pass()


def _next_end(play: Play) -> None:
    """Go on until a run that is to come has ended, without a pass in the last minute."""
    job, runs = play.job, len(play.job.runs)
    while len(job.runs) == runs or job.id in play.world.running:
        play.world.advance(play.world.now + timedelta(seconds=2))
        if (play.world.now - (play.oracle.last_pass or play.world.now)) > MINUTE and len(job.runs) == runs:
            play.make_pass()


@plan("duplicate in two containers")
def duplicate(play: Play) -> None:
    play.by_label()
    other = play.world.create("web-2")
    play.begin()
    job = play.job
    before = len(job.runs)
    play.passes_until(lambda: len(job.runs) > before)
    play.world.repeat(job, other)
    told = play.world.now
    play.say(play.subject, Status.WARN)
    play.make_pass()
    play.passes_until(lambda: play.world.now + MINUTE > told + HOUR)
    play.world.advance(told + HOUR + timedelta(seconds=30))
    play.unsay(play.subject)
    play.make_pass()
    play.passes(3)


@plan("same name, two jobs")
def same_name(play: Play) -> None:
    twin = play.add(Job("twin", play.job.name, play.job.interval, play.job.grace))
    twin.runs = play.job.runs
    play.world.jobs.remove(twin)
    play.begin()
    # Due at the same instant they could not be told from one job that is fired twice.
    play.world.plan_after(twin, play.world.now + timedelta(seconds=play.rng.uniform(1, 20)))
    play.passes(int(twin.interval / MINUTE) + 1)
    play.job.alive = False
    play.passes(20)


@plan("scheduler paused")
def paused(play: Play) -> None:
    _only_short(play)
    play.begin()
    play.world.paused = True
    play.world.say("INFO:apscheduler.scheduler:Paused scheduler job processing")
    play.passes_until(lambda: all(job.is_stale(play.world.now) for job in play.watched))
    play.passes(2)
    play.world.paused = False
    play.world.say("INFO:apscheduler.scheduler:Resumed scheduler job processing")
    play.passes_until(lambda: not any(job.is_stale(play.world.now) for job in play.watched))
    play.passes(2)


def _no_cron(play: Play) -> None:
    """No job that is due at a time of day: one that falls into a deploy is missed, which is no false alarm."""
    play.watched = [job for job in play.watched if not job.cron]
    play.world.jobs = list(play.watched)


def _quiet_moment(play: Play) -> None:
    """Go on until no such job is due while a deploy lasts."""
    while not _is_quiet(play):
        play.passes(1)


def _is_quiet(play: Play) -> bool:
    now = play.world.now
    return all(job.next_due(now) - now > 3 * MINUTE for job in play.watched if job.cron)


def _only_short(play: Play) -> None:
    """Only jobs whose death shows soon."""
    _no_cron(play)
    for job in play.watched:
        job.interval, job.grace = min(job.interval, 5 * MINUTE), min(job.grace, 4 * MINUTE)


@given("disabled by a person", "disabled by ops: not this week", Status.OK)
@given("disabled by the scheduler", "auto-disabled after 5 failures in a row: ValueError", Status.WARN)
def disabled(play: Play, words: str, status: Status) -> None:
    play.job.name = "sync orders"
    play.begin()
    play.job.alive = False
    play.world.say(f'WARNING:argus_sched:Job "{play.job.name}" (id={play.job.id}) {words}')
    play.say(play.subject, status)
    play.passes(15)
    play.job.alive = True
    play.world.say(f'WARNING:argus_sched:Job "{play.job.name}" (id={play.job.id}) enabled by ops: mended')
    play.world.run(play.job, play.world.now)
    play.unsay(play.subject)
    play.passes(3)


@plan("switched off in the pack")
def switched_off(play: Play) -> None:
    play.begin()
    play.job.alive = False
    play.say(play.subject, Status.OK)
    play.stage.packs = (
        play.world.pack([replace(job.spec(), enabled=job is not play.job) for job in play.watched]),
    )
    play.passes(15)


@plan("dead, then removed from the pack")
def removed(play: Play) -> None:
    play.begin()
    play.dies()
    play.watched.remove(play.job)
    play.publish()
    play.loose = True
    for _ in range(26):
        play.world.advance(play.world.now + 59 * MINUTE)
        play.passes(2)


@plan("new job")
def new_job(play: Play) -> None:
    play.begin()
    _quiet_moment(play)
    play.add(Job("new", "a new job", 5 * MINUTE, 5 * MINUTE, since=play.world.now + MINUTE))
    play.world.recreate(timedelta(seconds=3))
    play.publish()
    play.passes(15)


@plan("new job that never runs")
def new_dead(play: Play) -> None:
    play.begin()
    job = play.add(Job("new", "a new job", 3 * MINUTE, 2 * MINUTE, alive=False))
    play.publish()
    play.new_since = play.world.now + MINUTE
    job.since = play.world.now - job.limit  # the log shows that it did not run before either
    play.passes(10)


@plan("renamed")
def renamed(play: Play) -> None:
    play.begin()
    job = play.job
    # The truth is about the name in the pack, under which nothing runs any more.
    job.alive = False
    heir = Job("heir", "another name", job.interval, job.grace)
    play.world.jobs.append(heir)
    play.world.plan(heir)
    play.passes_until(lambda: job.is_stale(play.world.now))
    play.passes(2)
    play.stage.packs = (
        play.world.pack(
            [replace(one.spec(), name=heir.name) if one is job else one.spec() for one in play.watched]
        ),
    )
    job.runs = heir.runs
    play.passes(3)


# clocks


@given("DST forward", datetime(2026, 3, 29, 0, 20, tzinfo=UTC))
@given("DST back", datetime(2026, 10, 25, 0, 20, tzinfo=UTC))
def daylight(play: Play, start: datetime) -> None:
    zone = ZoneInfo("Europe/Berlin")
    text = play.rng.choice(("30 2 * * *", "15 2 * * *", "30 * * * *", "0 3 * * *", "59 1 * * *"))
    trigger = due_times.cron(text, "Europe/Berlin")
    play.world.now = start - 26 * HOUR
    job = Job("daily", "daily", timedelta(days=1), 5 * MINUTE)
    play.watched, play.world.jobs = [], []
    play.world.start()
    play.watched = [job]
    play.say("labs/daily", Status.OK)
    spec = JobSpec("daily", "daily", trigger, job.grace, due_times.longest_gap(trigger, play.world.now))
    play.world.zone = zone
    fire = trigger.next_after(play.world.now)
    play.stage.packs = (play.world.pack([spec]),)
    while fire is not None and fire < start + 5 * HOUR:
        # A scheduler may take the other reading of a wall-clock time that the day has twice, or not at all.
        play.world.at(fire, functools.partial(_fire_daily, play, job, fire))
        fire = trigger.next_after(fire)
    play.world.advance(start)
    for _ in range(100):
        play.world.advance(play.world.now + 2 * MINUTE)
        play.make_pass()


def _fire_daily(play: Play, job: Job, due: datetime) -> None:
    play.world.run(job, due)


@given("host clock 5 s ahead", 4.4)
@given("host clock 5 s behind", -4.4)
@given("host clock 1 h ahead", 3600.0)
@given("host clock 1 h behind", -3600.0)
def skewed(play: Play, seconds: float) -> None:
    play.by_daemon()
    play.world.host_ahead = timedelta(seconds=seconds)
    play.begin()
    play.passes(20)


@given("job dead, host clock 1 h behind", -3600.0)
@given("job dead, host clock 1 h ahead", 3600.0)
def skewed_dead(play: Play, seconds: float) -> None:
    play.by_daemon()
    play.world.host_ahead = timedelta(seconds=seconds)
    play.skewed = play.loose = True
    dead(play)


@given("agent's clock stepped 1 h forward and back", 3600.0)
@given("agent's clock stepped 1 h back and forward", -3600.0)
def stepped(play: Play, seconds: float) -> None:
    play.by_daemon()
    play.begin()
    play.passes(3)
    play.world.agent_ahead = timedelta(seconds=seconds)
    play.passes(8)
    play.world.agent_ahead = timedelta(0)
    play.passes(8)


@plan("host's clock set back by 1 h")
def set_back(play: Play) -> None:
    play.by_daemon()
    _only_short(play)
    play.world.host_ahead = HOUR
    play.begin()
    play.world.stop()
    play.world.host_ahead = timedelta(0)
    play.world.keeps_phase = False
    play.world.start()
    # Until each job has run again, its stamps of an hour to come are not believed, and others are not the truth.
    play.doubt = True
    play.passes(12)
    play.doubt = False
    play.passes(8)


@plan("host in a wrong time zone")
def wrong_zone(play: Play) -> None:
    play.world.zone = ZoneInfo(play.rng.choice(("Asia/Kathmandu", "America/St_Johns", "Europe/Moscow")))
    play.begin()
    play.passes(20)


# the log and its daemon


@plan("daemon down")
def daemon_down(play: Play) -> None:
    play.begin()
    with play.blindness():
        play.stage.daemon_up = False
        play.passes(play.rng.randint(2, 25))
    play.stage.daemon_up = True
    play.passes(5)


@plan("daemon down while a job dies")
def daemon_down_dead(play: Play) -> None:
    play.begin()
    # The job is not the cell's subject; it is told by the oracle's reckoning, and counted apart.
    with play.blindness():
        play.stage.daemon_up = False
        play.job.alive = False
        play.passes_until(lambda: play.job.is_stale(play.world.now))
        play.passes(2)
    play.stage.daemon_up = True
    play.passes(3)
    play.comes_back()
    told = [line.label for line in play.oracle.told if line.subject == play.subject]
    assert told == ["CRIT", "OK"], told
    play.oracle.told = [line for line in play.oracle.told if line.subject != play.subject]


@plan("daemon never ends its answer")
def daemon_hangs(play: Play) -> None:
    play.by_daemon()
    play.begin()
    play.stage.hangs = True
    play.world.web.faults = [Hang()]
    with play.blindness():
        play.passes(2)
    play.stage.hangs = False
    play.world.web.faults = []
    play.passes(3)


@given("EOF inside a frame, once", CutOff)
@given("frame of type 3, once", DaemonError)
def broken_once(play: Play, fault: type[CutOff] | type[DaemonError]) -> None:
    play.by_daemon()
    play.begin()
    for _ in range(8):
        play.world.web.faults = [fault(after=play.rng.randrange(1, 150), times=1)]
        play.passes(1)
        play.world.web.faults = []
        play.passes(1)


@given("EOF inside a frame", CutOff)
@given("frame of type 3", DaemonError)
def broken(play: Play, fault: type[CutOff] | type[DaemonError]) -> None:
    play.by_daemon()
    play.begin()
    play.world.web.faults = [fault(after=0)]
    with play.blindness():
        play.passes(play.rng.randint(2, 6))
    play.world.web.faults = []
    play.passes(5)


@plan("corrupt record")
def corrupt(play: Play) -> None:
    play.by_daemon()
    play.begin()
    play.passes(2)
    play.world.web.faults = [Damage(at=len(play.world.web.stored))]
    # The record behind the damage may be the end of a longer line, so it is not believed.
    play.world.write("INFO: something else")
    play.passes(20)


@plan("corrupt record in the file")
def corrupt_file(play: Play) -> None:
    play.by_reading_files()
    play.begin()
    with play.world.log_file.open("ab") as file:
        file.write(b"\x00" * 300 + b"\n")
    play.passes(20)


@plan("partial line")
def partial(play: Play) -> None:
    play.begin()
    for _ in range(10):
        play.world.write("a line whose end is still to come", ended=False)
        play.passes(1)
        play.world.write(", and here it is")
        play.passes(1)


@plan("run line behind 40 KiB")
def long_line(play: Play) -> None:
    play.begin()
    for _ in range(6):
        play.world.write("x" * play.rng.randint(16000, 41000))
        play.passes(2)


@plan("forged run line in a long line")
def forged(play: Play) -> None:
    play.begin()
    job = play.job
    job.alive = False
    # Where the pieces of a long line are cut, a run line seems to begin.
    text = f'INFO:apscheduler.executors.default:Running job "{job.name} (trigger: {job.trigger_text}, next run at: '
    while not job.is_stale(play.world.now + MINUTE):
        due = play.world.now
        play.world.write(
            "x" * 16384 + f'{text}{due:%Y-%m-%d %H:%M:%S} UTC)" (scheduled at {due:%Y-%m-%d %H:%M:%S}+00:00)'
        )
        play.passes(1)
    play.loose = True
    play.dies()
    play.comes_back()
    told = [line.label for line in play.oracle.told if line.subject == play.subject]
    assert told == ["CRIT", "OK"], f"a forged line kept a dead job well: {told}"
    play.oracle.told = []


@plan("TTY")
def terminal(play: Play) -> None:
    play.by_daemon()
    play.world.tty = play.world.web.tty = True
    play.begin()
    play.passes(15)


@plan("rotation now")
def rotation(play: Play) -> None:
    play.by_reading_files()
    play.world.driver_options = play.world.web.driver_options = {"max-size": "1m", "max-file": "3"}
    play.begin()
    for _ in range(3):
        play.passes(play.rng.randint(2, 5))
        play.world.rotate(kept=3)
    play.passes(6)


@plan("max-file 1 vanishes")
def vanishing(play: Play) -> None:
    play.world.driver_options = play.world.web.driver_options = {"max-size": "1m"}
    for job in play.watched:
        job.grace = max(job.grace, job.interval + 5 * MINUTE)
    play.begin()
    for _ in range(3):
        play.passes(play.rng.randint(2, 5))
        play.world.advance(play.world.now + timedelta(seconds=play.rng.uniform(0, 40)))
        play.world.rotate(kept=1)
    play.passes(12)


@plan("truncated file")
def truncated(play: Play) -> None:
    play.by_reading_files()
    play.begin()
    play.passes(play.rng.randint(2, 5))
    play.world.log_file.write_bytes(b"")
    play.passes(15)


@plan("driver none")
def no_driver(play: Play) -> None:
    play.by_daemon()
    play.begin()
    play.world.web.faults = [UNREADABLE]
    with play.blindness():
        play.passes(play.rng.randint(2, 15))
    play.world.web.faults = []
    play.passes(3)


@plan("non-blocking loss")
def losing(play: Play) -> None:
    play.by_daemon()
    play.begin()
    for job in play.watched:
        job.grace = max(job.grace, job.interval * 2 + 5 * MINUTE)
    play.publish()
    for _ in range(8):
        kept = len(play.world.web.stored)
        play.world.advance(play.world.now + timedelta(seconds=20))
        del play.world.web.stored[kept:]
        play.passes(2)


@plan("INFO off since a deploy")
def info_off(play: Play) -> None:
    _only_short(play)
    play.begin()
    play.world.speaks = False
    play.loose = play.muted = True
    play.world.recreate(timedelta(seconds=2))
    play.passes(18)
    play.world.speaks = True
    play.world.recreate(timedelta(seconds=2))
    play.world.run_all()
    play.muted = False
    play.passes(14)


@plan("log flood")
def flood(play: Play) -> None:
    play.by_daemon()
    play.begin()
    for _ in range(3):
        for _ in range(3000):
            play.world.write("noise, noise, noise: nothing but noise")
        play.passes(2)


# containers


@plan("recreated")
def recreated(play: Play) -> None:
    play.begin()
    play.passes(play.rng.randint(0, 6))
    _quiet_moment(play)
    play.world.advance(play.world.now + timedelta(seconds=play.rng.uniform(0, 40)))
    play.world.recreate(timedelta(seconds=play.rng.uniform(0, 12)))
    play.passes(18)


@plan("recreated again and again")
def recreated_often(play: Play) -> None:
    play.begin()
    for _ in range(4):
        play.passes(play.rng.randint(1, 7))
        _quiet_moment(play)
        play.world.recreate(timedelta(seconds=play.rng.uniform(0, 12)))
        play.world.run_all()
    play.passes(15)


@plan("recreated just before a run")
def recreated_before(play: Play) -> None:
    _no_cron(play)
    job = play.job
    job.interval = job.grace = play.rng.choice((5, 10, 15)) * MINUTE
    play.world.keeps_phase = False
    play.begin(warm=100 * MINUTE)
    due = job.runs[-1] + job.interval
    while play.world.now + MINUTE < due - timedelta(seconds=5):
        play.passes(1)
    play.world.advance(max(play.world.now, due - timedelta(seconds=5)))
    play.world.recreate(timedelta(seconds=play.rng.uniform(6, 15)))
    play.passes(2 * int(job.interval / MINUTE) + 3)


@plan("recreated while a job is dead")
def recreated_dead(play: Play) -> None:
    play.begin()
    play.dies()
    _quiet_moment(play)
    play.world.recreate(timedelta(seconds=play.rng.uniform(0, 12)))
    play.passes(play.rng.randint(3, 8))
    play.comes_back()


@plan("restarted")
def restarted(play: Play) -> None:
    play.begin()
    # Two restarts within one interval starve a job whose scheduler counts from its start, which is no false alarm.
    for _ in range(2 if play.world.keeps_phase else 1):
        play.passes(play.rng.randint(1, 5))
        _quiet_moment(play)
        play.world.stop()
        play.world.advance(play.world.now + timedelta(seconds=play.rng.uniform(1, 12)))
        play.world.start()
    play.passes(15)


@plan("stopped")
def stopped(play: Play) -> None:
    _only_short(play)
    play.begin()
    play.world.stop()
    play.passes_until(lambda: all(job.is_stale(play.world.now) for job in play.watched))
    play.passes(2)
    play.world.start()
    play.passes_until(lambda: not any(job.is_stale(play.world.now) for job in play.watched))
    play.passes(2)


@plan("removed")
def container_gone(play: Play) -> None:
    _no_cron(play)
    play.begin()
    play.world.stop()
    play.world.docker.remove("web")
    with play.blindness():
        play.passes(play.rng.randint(2, 4))
    play.world.web = play.world.create("web")
    play.world.start()
    play.world.run_all()
    play.passes(6)


@plan("scaled to 3")
def scaled(play: Play) -> None:
    play.by_label()
    play.begin()
    for name in ("web-2", "web-3"):
        play.passes(2)
        other = play.world.create(name)
        play.world.write("INFO: Application startup complete.", other)
    play.passes(12)
    play.world.docker.remove("web-3")
    play.passes(6)


# the lock and its database


@given(
    "database down", "cannot reach the database at db:5432: connection refused: start it, or correct the DSN"
)
@given("wrong password", 'password authentication failed for user "argus" at db:5432: correct the DSN')
def no_database(play: Play, problem: str) -> None:
    play.begin()
    play.world.database_problem = problem
    play.say(DATABASE, Status.UNKNOWN)
    play.unknown_lock = True
    play.passes(play.rng.randint(2, 8))
    play.world.database_problem = ""
    play.unsay(DATABASE)
    play.unknown_lock = False
    play.passes(3)


@plan("no pg_monitor")
def no_monitor(play: Play) -> None:
    _lock(play, [holder(4711, state=None, state_seconds=None)], Status.UNKNOWN)


@plan("lock held by nobody", "lock's key in another database")
def nobody(play: Play) -> None:
    _lock(play, [], Status.CRIT, patience=75)


@plan("lock held by two")
def two(play: Play) -> None:
    _lock(play, [holder(4711), holder(4712)], Status.CRIT)


@plan("holder through a pooler")
def pooled(play: Play) -> None:
    _lock(play, [holder(4711, application_name="pgbouncer")], Status.CRIT)


@plan("holder active")
def active(play: Play) -> None:
    _lock(play, [holder(4711, state="active", state_seconds=play.rng.uniform(4, 900))], Status.WARN)


@plan("holder in a short statement")
def ticking(play: Play) -> None:
    play.begin()
    for _ in range(12):
        play.world.next_holders += [[holder(4711, state="active", state_seconds=0.002)]] * play.rng.randint(
            0, 2
        )
        play.passes(1)


@plan("holder idle in transaction")
def transaction(play: Play) -> None:
    play.begin()
    for age, status in ((10.0, Status.WARN), (70.0, Status.CRIT), (130.0, Status.CRIT)):
        play.world.holders = [
            holder(4711, state="idle in transaction", transaction_seconds=age, state_seconds=age)
        ]
        play.say(LOCK, status)
        play.passes(1)
    play.world.holders = [holder(4711)]
    play.unsay(LOCK)
    play.passes(3)


def _lock(play: Play, holders: list[object], status: Status, patience: float = 0.0) -> None:
    play.begin()
    play.world.holders = holders  # type: ignore[assignment]
    play.say(LOCK, status, timedelta(seconds=patience))
    play.passes(play.rng.randint(3, 8))
    play.world.holders = [holder(4712)]
    play.unsay(LOCK)
    play.passes(3)


@plan("failover in progress")
def failover(play: Play) -> None:
    play.begin()
    for pid in (4712, 4713):
        play.world.holders = []
        play.say(LOCK, Status.CRIT, timedelta(seconds=75))
        play.passes(1)
        play.world.holders = [holder(pid)]
        play.unsay(LOCK)
        play.passes(4)


# the agent


@plan("agent asleep for six hours")
def asleep(play: Play) -> None:
    play.begin()
    play.world.advance(play.world.now + 6 * HOUR + timedelta(seconds=play.rng.uniform(0, 600)))
    play.make_pass()
    play.passes(12)


@plan("agent asleep for six hours, deployed meanwhile")
def asleep_deployed(play: Play) -> None:
    play.begin()
    play.world.advance(play.world.now + 6 * HOUR)
    while not _is_quiet(play):
        play.world.advance(play.world.now + MINUTE)
    play.world.recreate(timedelta(seconds=play.rng.uniform(0, 12)))
    play.world.advance(play.world.now + timedelta(seconds=play.rng.uniform(0, 120)))
    play.make_pass()
    play.passes(15)


@plan("agent asleep while a job dies")
def asleep_dead(play: Play) -> None:
    play.begin()
    play.job.alive = False
    play.world.advance(play.world.now + 6 * HOUR)
    play.make_pass()
    play.passes(3)
    play.comes_back()


@given("agent killed before the send", "before")
@given("agent killed after the send", "after")
@given("agent killed in the middle of a pass", "deciding")
def killed(play: Play, where: str) -> None:
    play.begin()
    play.loose = True
    play.job.alive = False
    play.stage.kill = where
    play.passes_until(lambda: play.job.is_stale(play.world.now))
    play.passes(3)
    play.comes_back()


@plan("state file lost")
def state_lost(play: Play) -> None:
    play.begin()
    play.lose_state()
    play.passes(15)


@plan("state file lost during an incident")
def state_lost_wrong(play: Play) -> None:
    play.begin()
    play.dies()
    play.loose = True
    play.lose_state()
    play.passes(2)
    play.comes_back()


@plan("state file corrupt", "state file of a newer version", "disk full")
def state_unusable(play: Play) -> None:
    play.begin()
    play.loose = True
    play.stage.leave()
    if play.cell.name == "state file corrupt":
        spoil(play.stage.state)
    elif play.cell.name == "disk full":
        play.stage.disk_full = True
    else:
        play.age_schema(+1000)
    play.passes(2)
    play.dies()
    play.stage.leave()
    if play.cell.name == "disk full":
        play.stage.disk_full = False
    elif play.cell.name == "state file corrupt":
        play.lose_state()
    else:
        play.age_schema(-1000)
    play.passes(2)
    play.comes_back()


@plan("config invalid")
def invalid(play: Play) -> None:
    play.begin()
    path = play.world.folder / "argus.yaml"
    path.write_text("evry: 1m\ntelegram:\n  chat_id: x\n")
    with redirect_stderr(io.StringIO()) as said:
        assert main(["check", "--config", str(path), "--no-notify"]) == 3
    assert "did you mean 'every'?" in said.getvalue()
    play.passes(3)


@plan("one pack of two invalid")
def half_invalid(play: Play) -> None:
    play.begin()
    right = "app: other\nlogs: {docker: {container: web}}\nchecks:\n"
    right += "  - {kind: scheduler_jobs, jobs: [{id: rollup, name: roll up, every: 5m}]}\n"
    play.write_pack(right.replace("every", "evry"))
    play.say(play.pack, Status.UNKNOWN)
    play.passes(play.rng.randint(1, 5))
    play.write_pack(right)
    play.say(play.pack, Status.OK)
    play.passes(3)


# the channel


@given("Telegram 400", refusal(400, "Bad Request: can't parse entities: byte offset 7"))
@given("Telegram 500", refusal(500, "Internal Server Error"))
@given("Telegram 429", refusal(429, "Too Many Requests: retry after 34", retry_after=34))
@given(
    "Telegram chat migrated", refusal(400, "Bad Request: group chat was upgraded", migrate_to_chat_id=-100777)
)
@given("Telegram topic deleted", refusal(400, "Bad Request: message thread not found"))
@given("Telegram times out but delivers", Drop(delivered=True))
@given("Telegram 401", refusal(401, "Unauthorized"))
@given("Telegram 403", refusal(403, "Forbidden: bot was kicked from the supergroup chat"))
def channel(play: Play, answer: Answer | Drop) -> None:
    play.begin()
    play.loose = True
    play.stage.bot.answer(answer)
    play.dies()
    # A chat that refused for good is asked again once an hour.
    play.passes_until(lambda: bool(play.oracle.told), 70)
    play.passes(2)
    play.comes_back()


@plan("Telegram away for an hour")
def channel_away(play: Play) -> None:
    play.begin()
    play.loose = True
    play.stage.bot.answer(*[Drop()] * 12)
    play.dies()
    play.passes_until(lambda: bool(play.oracle.told), 90)
    play.passes(2)
    play.comes_back()
