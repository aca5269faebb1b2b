"""Reading an application's log once for all its jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from argus_sched.agent.judging.coverage import Span
from argus_sched.agent.judging.evidence import STRANGERS_KEPT, Evidence
from argus_sched.agent.kinds.scheduler_jobs import LogLook, judge_log, look_at_log
from argus_sched.agent.logevents import Container, Coverage, Cursor, Record
from argus_sched.agent.packs import JobsCheck
from argus_sched.agent.ports import Reading
from argus_sched.agent.reading.stamps import nanoseconds
from argus_sched.agent.status import Phase, Status
from argus_sched.clock import ManualClock
from argus_sched.errors import SourceError
from tests.unit.agent.judging.evidence_cases import LONG_AGO, NOON, WEB, ago, every

CHECK = JobsCheck("scheduler_jobs", (every(timedelta(minutes=15)),))
NOTHING = Evidence()
Take = Callable[[Iterable[Record]], None]


class Log:
    """A source of one container whose lines are given."""

    node = "docker:web"

    def __init__(self, batches: Iterable[Iterable[Record]], to_ns: int, problem: str = "") -> None:
        self.batches = batches
        self.reading = Reading(
            WEB,
            Coverage(nanoseconds(LONG_AGO), to_ns, reached_end=True),
            Cursor(to_ns, 1),
            records=1,
            bytes=1,
            seconds=0.1,
            problem=problem,
        )

    def containers(self) -> Sequence[Container]:
        if self.reading.problem:
            raise SourceError(self.reading.problem)
        return (WEB,)

    def read(self, container: Container, cursor: Cursor | None, horizon: object, take: Take) -> Reading:
        for batch in self.batches:
            take(batch)
        return self.reading

    def close(self) -> None:
        pass


def line(name: str, stamp_ns: int) -> Record:
    text = (
        f'INFO:apscheduler.executors.default:Running job "{name} (trigger: interval[0:15:00], next run at: '
        '2026-03-14 12:00:00 UTC)" (scheduled at 2026-03-14 11:45:00+00:00)'
    )
    return Record(stamp_ns, text.encode(), "stderr")


def look(log: Log, evidence: Evidence = NOTHING) -> LogLook:
    return look_at_log(log, "labs", (CHECK,), evidence, ManualClock(NOON), LONG_AGO)


def test_a_flood_of_names_keeps_the_evidence_small_and_the_watched_job() -> None:
    old = nanoseconds(ago(minutes=10))
    flood = ([line(f"job {batch}/{n}", old + batch) for n in range(1000)] for batch in range(12))
    found = look(Log([[line("sync orders", old - 1)], *flood], nanoseconds(NOON)))
    assert len(found.evidence.jobs) == STRANGERS_KEPT + 1
    assert judge_log(found)[0][0].phase is Phase.FRESH


def test_a_reach_into_the_future_covers_nothing_beyond_the_clock_and_keeps_the_cursor_back() -> None:
    ahead = nanoseconds(NOON + timedelta(days=365))
    found = look(Log([[line("sync orders", ahead)]], ahead))
    assert found.evidence.containers[WEB.key].spans == (Span(nanoseconds(LONG_AGO), nanoseconds(NOON)),)
    assert found.evidence.cursor(WEB) is None
    assert found.sight.watermark == NOON
    (result,), _ = judge_log(found)
    assert (result.status, result.phase) == (Status.UNKNOWN, Phase.BLIND)


def test_a_line_of_no_meaning_from_the_future_hides_nothing_neither_before_nor_after_it() -> None:
    ahead, ran = nanoseconds(NOON + timedelta(days=400)), nanoseconds(ago(minutes=40))
    found = look(Log([[line("sync orders", ran)]], ahead))
    # Its stamp would stay the newest for 400 days, and whatever comes until then would pass for known.
    cursor = found.evidence.cursor(WEB)
    assert cursor is not None
    assert nanoseconds(ago(minutes=11)) < cursor.stamp_ns < nanoseconds(NOON)
    (result,), _ = judge_log(found)
    assert (result.status, result.phase) == (Status.CRIT, Phase.STALE)


def test_what_is_written_while_a_slow_read_goes_on_is_not_read_again() -> None:
    clock, newest = ManualClock(NOON), nanoseconds(NOON + timedelta(seconds=30))

    def slowly() -> Iterable[list[Record]]:
        clock.advance(timedelta(seconds=30))
        yield [line("sync orders", newest)]

    found = look_at_log(Log(slowly(), newest), "labs", (CHECK,), NOTHING, clock, LONG_AGO)
    assert found.evidence.cursor(WEB) == Cursor(newest, 1)


def test_a_moment_ahead_is_no_future() -> None:
    soon = nanoseconds(NOON + timedelta(seconds=5))
    (result,), _ = judge_log(look(Log([[line("sync orders", soon)]], soon)))
    assert (result.phase, result.age_seconds) == (Phase.FRESH, 0.0)


def test_a_source_that_is_away_makes_all_jobs_blind_with_what_was_known_of_them() -> None:
    known = look(Log([[line("sync orders", nanoseconds(ago(minutes=1)))]], nanoseconds(NOON))).evidence
    gone = look(Log([], 0, problem="the daemon is away"), known)
    (result,), nodes = judge_log(gone)
    assert (result.status, result.blind_by, result.reason) == (
        Status.UNKNOWN,
        "docker:web",
        "the daemon is away",
    )
    assert result.last_run == ago(minutes=1)
    assert gone.evidence == known
    assert [node.up for node in nodes] == [False]


def test_the_lines_of_the_scheduler_are_a_node_that_is_down_when_there_are_none() -> None:
    health = Record(nanoseconds(ago(minutes=1)), b'INFO: "GET /health HTTP/1.1" 200 OK', "stdout")
    results, nodes = judge_log(look(Log([[health]], nanoseconds(NOON))))
    assert {result.blind_by for result in results} == {"scheduler-lines"}
    assert {node.source: node.up for node in nodes} == {"docker:web": True, "scheduler-lines": False}
    assert "INFO" in nodes[1].problem
