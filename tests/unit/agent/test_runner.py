"""One pass: what is kept, what is told, and that one broken part never speaks for another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from argus_sched.agent.check import OwnState, PassReport
from argus_sched.agent.logevents import Container, Coverage, Cursor, Record
from argus_sched.agent.packs import JobsCheck, LogSpec, Pack, PackFile
from argus_sched.agent.ports import LockView, LogSource, Reading
from argus_sched.agent.reading.stamps import format_stamp, nanoseconds
from argus_sched.agent.render import summary, table
from argus_sched.agent.runner import Agent, run_pass
from argus_sched.agent.sources import open_source
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.store.sqlite import Store
from argus_sched.agent.tasks import Edges
from argus_sched.agent.tree import verdict
from argus_sched.clock import ManualClock
from argus_sched.errors import DeliveryError, SourceError, StoreError
from tests.unit.agent.judging.evidence_cases import every

START = datetime(2026, 3, 14, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def run_line(at: datetime, name: str = "sync orders") -> str:
    return (
        f"{format_stamp(nanoseconds(at))} INFO:apscheduler.executors.default:Running job "
        f'"{name} (trigger: interval[0:15:00], next run at: {at:%Y-%m-%d %H:%M:%S} UTC)" '
        f"(scheduled at {at:%Y-%m-%d %H:%M:%S}+00:00)\n"
    )


def pack(app: str, path: Path, *jobs: Any) -> Pack:
    jobs = jobs or (every(15 * MINUTE, 10 * MINUTE),)
    return Pack(app, "p.yaml", LogSpec(path=str(path)), (), (JobsCheck("scheduler_jobs", jobs),))


def real_source(clock: ManualClock) -> Callable[[LogSpec], LogSource]:
    return lambda spec: open_source(spec, clock=clock, timeout=10)


def no_locks(_: Pack) -> Sequence[LockView]:
    raise AssertionError("no lock is checked here")


class World:
    """A log, a clock and an agent that reads the one by the other."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(START)
        self.log = folder / "web.log"
        self.state = folder / "state.db"
        self.say(run_line(START - MINUTE))
        self.agent = Agent(
            packs=(pack("labs", self.log),),
            edges=Edges(self.clock, real_source(self.clock), no_locks, self.clock.now),
            store=Store(self.state),
            deadline=timedelta(seconds=20),
        )

    def say(self, line: str) -> None:
        with self.log.open("a") as file:
            file.write(line)

    def look_with(self, open_log: Callable[[LogSpec], LogSource], **more: Any) -> PassReport:
        edges = replace(self.agent.edges, open_log=open_log)
        return run_pass(replace(self.agent, edges=edges, **more))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.agent.close()


class Scripted:
    """A source with one container whose reads do what the test says."""

    node = "docker:web"

    def __init__(self, read: Callable[[Callable[[Iterable[Record]], None]], Reading]) -> None:
        self._read = read

    def containers(self) -> Sequence[Container]:
        return (WEB,)

    def read(
        self,
        container: Container,
        cursor: Cursor | None,
        horizon: datetime,
        take: Callable[[Iterable[Record]], None],
    ) -> Reading:
        return self._read(take)

    def close(self) -> None:
        pass


WEB = Container("web", "c1", "web", START - timedelta(days=9), running=True)


def record(line: str) -> Record:
    stamp, _, text = line.rstrip("\n").partition(" ")
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    moment = datetime.fromisoformat(whole + "+00:00")
    return Record(nanoseconds(moment) + int(fraction), text.encode(), "stderr")


def phases(report: PassReport) -> list[Phase]:
    return [result.phase for result in report.results]


def test_evidence_grows_from_pass_to_pass_and_outlives_the_log(world: World) -> None:
    first = run_pass(world.agent)
    assert phases(first) == [Phase.FRESH]
    assert first.complete
    assert first.state_saved
    world.log.write_text(run_line(START, "bystander"))
    world.clock.advance(14 * MINUTE)
    second = run_pass(world.agent)
    assert second.results[0].last_run == START - MINUTE


def test_a_run_that_comes_later_is_seen_by_the_next_pass(world: World) -> None:
    run_pass(world.agent)
    world.clock.advance(40 * MINUTE)
    assert phases(run_pass(world.agent)) == [Phase.STALE]
    world.say(run_line(START + 40 * MINUTE))
    world.clock.advance(MINUTE)
    report = run_pass(world.agent)
    assert phases(report) == [Phase.FRESH]
    assert report.results[0].last_run == START + 40 * MINUTE


def test_a_pass_that_does_not_save_leaves_no_trace(world: World) -> None:
    report = run_pass(replace(world.agent, saves=False))
    assert phases(report) == [Phase.FRESH]
    assert not world.state.exists()


def test_lines_from_the_future_are_set_aside_and_count_when_their_time_has_come(world: World) -> None:
    world.log.write_text(run_line(START + timedelta(hours=1)))
    report = run_pass(world.agent)
    assert phases(report) == [Phase.BLIND]
    assert "in the future" in report.results[0].reason
    world.clock.advance(timedelta(hours=1, minutes=1))
    assert phases(run_pass(world.agent)) == [Phase.FRESH]


def test_a_source_that_cannot_be_opened_is_unknown_with_its_own_words(world: World) -> None:
    def refuse(_: LogSpec) -> LogSource:
        raise SourceError("no such container: web")

    report = world.look_with(refuse)
    assert (phases(report), report.results[0].blind_by) == ([Phase.BLIND], f"file:{world.log}")
    assert report.results[0].reason == "no such container: web"
    assert verdict(report) is Status.UNKNOWN


def test_a_bug_in_a_kind_is_unknown_for_its_targets_with_the_traceback_in_the_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def burst(_: object) -> Reading:
        raise ZeroDivisionError("a bug")

    packs = (*world.agent.packs, pack("other", world.log.with_name("gone.log")))
    other = real_source(world.clock)
    report = world.look_with(
        lambda spec: Scripted(burst) if spec == packs[0].logs else other(spec), packs=packs
    )
    assert [result.status for result in report.results] == [Status.UNKNOWN, Status.UNKNOWN]
    assert "a bug" in report.results[0].reason
    assert "cannot read the log" in report.results[1].reason
    assert "ZeroDivisionError" in caplog.text
    assert "burst" in caplog.text
    assert not report.complete


def test_a_pack_that_does_not_finish_in_time_is_unknown_and_the_others_are_judged(world: World) -> None:
    never = threading.Event()

    def hang(_: object) -> Reading:
        never.wait(60)
        raise AssertionError("released")

    packs = (pack("slow", world.log.with_name("slow")), *world.agent.packs)
    fast = real_source(world.clock)
    report = world.look_with(
        lambda spec: Scripted(hang) if spec == packs[0].logs else fast(spec),
        packs=packs,
        deadline=timedelta(seconds=3),
    )
    never.set()
    assert phases(report) == [Phase.BLIND, Phase.FRESH]
    assert "deadline" in report.results[0].reason
    assert not report.complete
    assert verdict(report) is Status.UNKNOWN


def test_a_file_that_holds_no_pack_is_a_source_that_cannot_be_read_and_leaves_the_pass_incomplete(
    world: World,
) -> None:
    files = (PackFile("labs.yaml", world.agent.packs[0]), PackFile("shop.yaml", None, "line 2: wrong"))
    report = run_pass(replace(world.agent, files=files))
    assert phases(report) == [Phase.FRESH]
    assert [(node.source, node.up, node.problem) for node in report.nodes if not node.app] == [
        ("pack:labs.yaml", True, ""),
        ("pack:shop.yaml", False, "line 2: wrong"),
    ]
    assert not report.complete


def test_a_failed_read_keeps_what_earlier_passes_knew(world: World) -> None:
    run_pass(world.agent)
    broken = Reading(WEB, None, None, 0, 0, 0.1, problem="error from daemon in stream")
    assert phases(world.look_with(lambda _: Scripted(lambda take: broken))) == [Phase.BLIND]
    world.clock.advance(MINUTE)
    assert run_pass(world.agent).results[0].last_run == START - MINUTE


def test_on_the_edge_to_critical_the_source_is_read_once_more(world: World) -> None:
    run_pass(world.agent)
    world.clock.advance(40 * MINUTE)
    reads = []
    inner = real_source(world.clock)

    def counting(spec: LogSpec) -> LogSource:
        reads.append(spec)
        if len(reads) == 2:
            world.say(run_line(world.clock.now()))
        return inner(spec)

    report = world.look_with(counting)
    assert (len(reads), phases(report)) == (2, [Phase.FRESH])
    world.clock.advance(40 * MINUTE)
    reads.clear()
    assert (phases(world.look_with(inner)), phases(world.look_with(counting))) == (
        [Phase.STALE],
        [Phase.STALE],
    )
    assert len(reads) == 1


def test_a_read_that_stops_early_does_not_make_a_silent_job_fresh(world: World) -> None:
    def early(take: Callable[[Iterable[Record]], None]) -> Reading:
        take([record(run_line(START - timedelta(hours=2)))])
        newest = nanoseconds(START - timedelta(hours=2))
        coverage = Coverage(nanoseconds(START - timedelta(hours=9)), newest, reached_end=False)
        return Reading(WEB, coverage, None, 1, 9, 0.1, problem="the answer ends before the newest line")

    report = world.look_with(lambda _: Scripted(early))
    assert (phases(report), report.results[0].blind_by) == ([Phase.BLIND], "docker:web")


def test_several_containers_are_one_job_and_an_unreadable_one_hides_only_absences(world: World) -> None:
    twins = [replace(WEB, key=name, name=name) for name in ("web-1", "web-2")]

    class Two(Scripted):
        def containers(self) -> Sequence[Container]:
            return twins

        def read(self, container: Container, *args: Any) -> Reading:
            if container is twins[1]:
                return Reading(container, None, None, 0, 0, 0.1, problem="driver none keeps no log")
            args[-1]([record(run_line(START - MINUTE))])
            reach = Coverage(nanoseconds(START - timedelta(days=2)), nanoseconds(START), reached_end=True)
            return Reading(container, reach, None, 1, 9, 0.1)

    jobs = (every(15 * MINUTE), replace(every(15 * MINUTE), id="mail", name="mail"))
    report = world.look_with(lambda _: Two(lambda take: None), packs=(pack("labs", world.log, *jobs),))  # type: ignore[arg-type,return-value]  # read is overridden
    assert phases(report) == [Phase.FRESH, Phase.BLIND]
    assert report.results[1].blind_by == "docker:web/web-2"
    assert {node.source: node.up for node in report.nodes} == {
        "docker:web": True,
        "docker:web/web-1": True,
        "docker:web/web-2": False,
        "scheduler-lines": True,
    }


class Telling:
    """A teller that notes what it was asked."""

    def __init__(self, failing: Exception | None = None) -> None:
        self.calls: list[str] = []
        self.refused: tuple[str, ...] = ()
        self._failing = failing

    def decide(self, connection: Any, report: PassReport, now: datetime) -> None:
        assert connection.in_transaction
        self.calls.append("decide")
        if self._failing:
            raise self._failing

    def deliver(self, now: datetime) -> Sequence[str]:
        self.calls.append("deliver")
        return ["telegram: resting"]

    def tell_unsaved(self, report: PassReport, now: datetime) -> Sequence[str]:
        self.calls.append(f"unsaved {report.state_saved}")
        return []

    def own_state(self) -> OwnState:
        return OwnState(refused=self.refused)

    def close(self) -> None:
        self.calls.append("close")


def test_what_must_be_told_is_decided_with_the_state_and_sent_after_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    beats: list[str] = []
    teller = Telling()
    run_pass(replace(world.agent, teller=teller, beat=lambda: beats.append("beat")))
    assert (teller.calls, beats) == (["decide", "deliver"], ["beat"])
    assert "telegram: resting" in caplog.text


def test_a_channel_that_refuses_is_unknown_and_said_at_every_pass(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    teller = Telling()
    teller.refused = ("telegram: chat -1: Forbidden: bot was kicked",)
    report = run_pass(replace(world.agent, teller=teller))
    assert (verdict(report), summary(report).partition(";")[0]) == (
        Status.UNKNOWN,
        "UNKNOWN: 1 OK, no alert gets through telegram",
    )
    assert "no alert gets through telegram: chat -1: Forbidden" in caplog.text


def test_a_reading_s_notes_are_shown_and_hide_nothing(world: World) -> None:
    def damaged(take: Callable[[Iterable[Record]], None]) -> Reading:
        take([record(run_line(START - MINUTE))])
        reach = Coverage(nanoseconds(START - timedelta(days=2)), nanoseconds(START), reached_end=True)
        return Reading(WEB, reach, None, 1, 9, 0.1, notes=("log damaged: zeros",))

    report = world.look_with(lambda _: Scripted(damaged))
    assert (phases(report), verdict(report)) == ([Phase.FRESH], Status.OK)
    assert report.notes == ("labs: web: log damaged: zeros",)
    assert "\nnote: labs: web: log damaged: zeros\n" in table(report)


@pytest.mark.parametrize("error", [StoreError("disk full"), ZeroDivisionError("a bug")])
def test_without_a_state_that_can_be_written_it_is_judged_told_and_marked(
    world: World, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    beats: list[str] = []
    teller = Telling(error)
    report = run_pass(replace(world.agent, teller=teller, beat=lambda: beats.append("beat")))
    assert phases(report) == [Phase.FRESH]
    assert (report.state_saved, verdict(report)) == (False, Status.UNKNOWN)
    assert (teller.calls, beats) == (["decide", "unsaved False"], [])
    assert "state not saved" in caplog.text


def test_no_sign_of_life_follows_a_pass_that_left_something_out(world: World) -> None:
    def refuse(_: LogSpec) -> LogSource:
        raise ZeroDivisionError

    beats: list[str] = []
    world.look_with(refuse, beat=lambda: beats.append("beat"))
    assert beats == []


def test_a_heartbeat_that_fails_is_a_warning(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise DeliveryError("the heartbeat at host was answered with 500")

    assert run_pass(replace(world.agent, beat=fail)).state_saved
    assert "answered with 500" in caplog.text


def test_the_whole_pass_is_made_exclusively(world: World) -> None:
    steps: list[str] = []

    @contextmanager
    def exclusively() -> Iterator[None]:
        steps.append("in")
        yield
        steps.append("out")

    class Watching(Telling):
        def deliver(self, now: datetime) -> Sequence[str]:
            steps.append("deliver")
            return []

    run_pass(replace(world.agent, exclusively=exclusively, teller=Watching()))
    assert steps == ["in", "deliver", "out"]
