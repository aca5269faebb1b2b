"""Reading through a daemon that speaks the real protocol and fails on demand."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argus_sched.agent.logevents import Container, Coverage, Cursor, EventKind, Record
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.ports import Reading
from argus_sched.agent.reading.loglines import parse
from argus_sched.agent.reading.stamps import nanoseconds
from argus_sched.agent.sources import open_source, tail
from argus_sched.clock import ManualClock
from argus_sched.errors import SourceError
from tests.fakes.docker_daemon import (
    UNREADABLE,
    CutOff,
    DaemonError,
    Damage,
    FakeContainer,
    FakeDocker,
    Fault,
    Hang,
    LeaveOut,
    Refuse,
    Trickle,
)

T0 = datetime(2026, 3, 14, 8, tzinfo=UTC)
CREATED = nanoseconds(T0)
RUN = (
    'INFO:apscheduler.executors.default:Running job "{} (trigger: interval[0:05:00],'
    ' next run at: 2026-03-14 09:05:00 UTC)" (scheduled at 2026-03-14 09:00:00+00:00)'
)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def ns(seconds: float) -> int:
    return nanoseconds(at(seconds))


@dataclass
class Look:
    reading: Reading
    container: Container
    records: list[Record] = field(default_factory=list)

    @property
    def runs(self) -> list[str | None]:
        return [event.name for event in parse(self.records) if event.kind is EventKind.RUNNING]

    @property
    def coverage(self) -> Coverage:
        assert self.reading.coverage is not None
        return self.reading.coverage


def look(
    docker: FakeDocker,
    now: float,
    cursor: Cursor | None = None,
    *,
    timeout: float = 60.0,
    window: timedelta = timedelta(hours=26),
    name: str = "web",
) -> Look:
    clock = ManualClock(at(now))
    source = open_source(LogSpec(container=name), clock=clock, timeout=timeout, docker_host=docker.host)
    try:
        (container,) = source.containers()
        records: list[Record] = []
        reading = source.read(container, cursor, clock.now() - window, records.extend)
    finally:
        source.close()
    return Look(reading, container, records)


@pytest.fixture
def docker() -> Iterator[FakeDocker]:
    with FakeDocker() as daemon:
        yield daemon


@pytest.fixture
def web(docker: FakeDocker) -> FakeContainer:
    """A container with 1,000 lines, one a second; every hundredth is a run."""
    container = docker.add("web")
    for second in range(1000):
        container.log(RUN.format(second) if second % 100 == 0 else f"line {second}", at(second))
    return container


ALL_RUNS = [str(second) for second in range(0, 1000, 100)]


def tails(docker: FakeDocker) -> list[int]:
    return [int(path.rpartition("tail=")[2]) for path in docker.requests if "/logs" in path]


def test_a_first_read_grows_its_tail_until_the_log_is_whole(docker: FakeDocker, web: FakeContainer) -> None:
    seen = look(docker, 1010)
    assert seen.runs == ALL_RUNS
    assert seen.coverage == Coverage(CREATED, ns(1010), reached_end=True)
    assert (seen.reading.problem, seen.reading.notes, seen.reading.records) == ("", (), 1000)
    # The newest record, two growing tails, one that begins alike, and the proof that none is left out.
    assert tails(docker) == [1, 200, 1600, 12800, 1000]
    assert not [path for path in docker.requests if "since" in path]


def test_the_next_read_asks_for_one_short_tail(docker: FakeDocker, web: FakeContainer) -> None:
    first = look(docker, 1010)
    docker.requests.clear()
    web.log(RUN.format("new"), at(1011))
    second = look(docker, 1020, first.reading.cursor)
    assert second.runs == ["new"]
    assert second.coverage == Coverage(ns(999), ns(1020), reached_end=True)
    assert tails(docker) == [1, 200]


def test_records_of_one_stamp_are_counted_and_not_lost(docker: FakeDocker, web: FakeContainer) -> None:
    for number in range(3):
        web.log(RUN.format(f"a{number}"), at(1000))
    first = look(docker, 1010)
    assert first.reading.cursor == Cursor(ns(1000), 3)
    web.log(RUN.format("a3"), at(1000))
    assert look(docker, 1020, first.reading.cursor).runs == ["a3"]


def test_a_window_is_covered_and_no_more(docker: FakeDocker, web: FakeContainer) -> None:
    seen = look(docker, 1000, window=timedelta(seconds=350))
    assert seen.runs == ["700", "800", "900"]
    assert seen.coverage.from_ns == ns(650)


def test_a_tail_that_begins_inside_a_body_forges_no_run(docker: FakeDocker) -> None:
    web = docker.add("web", driver="local")
    ghost = RUN.format("ghost").removeprefix("INFO:apscheduler.executors.default:")
    web.log("DEBUG:body=".ljust(16384, "A") + ghost, at(0), "stdout")
    for second in range(199):
        web.log(f"line {second}", at(second))
    del web.stored[0]  # rotated away
    assert [stored.text[:11] for stored in web.stored[:1]] == [b"Running job"]
    assert look(docker, 1000).runs == []


def test_a_rare_stream_is_believed_when_its_first_record_is_younger(docker: FakeDocker) -> None:
    web = docker.add("web", driver="local")
    for second in range(500):
        web.log(f"chatter {second}", at(second), "stdout")
    web.log(RUN.format("rare"), at(500), "stderr")
    assert look(docker, 1000).runs == ["rare"]


def test_a_line_that_is_being_written_waits_and_one_of_a_dead_container_does_not(docker: FakeDocker) -> None:
    web = docker.add("web")
    web.log("x", at(0))
    web.log(RUN.format("cut").ljust(16384), at(1), ended=False)
    first = look(docker, 10)
    assert first.runs == []
    assert first.coverage.reached_end
    web.running = False
    assert look(docker, 20, first.reading.cursor).runs == ["cut"]


def test_a_terminal_is_read_without_frames(docker: FakeDocker) -> None:
    web = docker.add("web", tty=True)
    web.log("\x1b[32mINFO\x1b[0m:     " + RUN.format("tty").split(":", 2)[2], at(0), "stdout")
    web.log("DEBUG:body=".ljust(16384, "A") + RUN.format("ghost"), at(1), "stdout")
    web.log(RUN.format("last"), at(2), "stdout")
    assert look(docker, 10).runs == ["tty", "last"]


# --- the handed answers of a docker program (field/docker/cli_cases.json), as the daemon gives them


def test_nul_full_a_silent_early_end_is_seen_and_the_rest_is_read(
    docker: FakeDocker, web: FakeContainer
) -> None:
    web.faults.append(Damage(at=850))
    seen = look(docker, 1010)
    assert seen.runs == ALL_RUNS
    assert seen.coverage == Coverage(ns(855), ns(1010), reached_end=True, gap=True)
    assert "damaged" in seen.reading.notes[0]
    assert seen.reading.problem == ""
    # Going on from behind the damage, nothing is wrong any more.
    later = look(docker, 1020, seen.reading.cursor)
    assert (later.coverage.gap, later.reading.notes) == (False, ())


def test_nul_since_an_answer_without_records_is_not_believed(docker: FakeDocker, web: FakeContainer) -> None:
    web.faults.append(Damage(at=0))
    web.faults.append(DaemonError(text="", after=0, times=2))
    seen = look(docker, 1010)
    assert seen.reading.coverage is None or not seen.coverage.reached_end or seen.coverage.gap


def test_nul_other_daemon_the_error_frame_is_no_line_and_names_the_cause(
    docker: FakeDocker, web: FakeContainer
) -> None:
    web.faults.append(
        DaemonError("Error grabbing logs: invalid character '\\x00' looking for beginning of value\n", 3)
    )
    seen = look(docker, 1010)
    assert "invalid character" in seen.reading.problem
    assert not seen.coverage.reached_end
    assert all(b"Error grabbing" not in record.text for record in seen.records)


def test_half_record_the_lines_count_and_the_end_is_not_claimed(docker: FakeDocker) -> None:
    web = docker.add("web")
    web.log(RUN.format("0"), at(0))
    web.log(RUN.format("1"), at(1))
    web.faults.append(DaemonError())
    seen = look(docker, 10)
    assert seen.runs == ["0", "1"]
    assert seen.coverage == Coverage(ns(0), ns(1), reached_end=False)
    assert "unexpected EOF" in seen.reading.problem


def test_half_record_one_failure_mends_itself_at_the_second_try(
    docker: FakeDocker, web: FakeContainer
) -> None:
    web.faults += [DaemonError(after=500, times=5)]
    seen = look(docker, 1010)
    assert seen.runs == ALL_RUNS
    assert seen.coverage.reached_end
    assert not seen.coverage.gap
    assert seen.reading.problem == ""


def test_rotated_short_only_what_is_left_is_covered(docker: FakeDocker, web: FakeContainer) -> None:
    web.driver_options = {"max-size": "10m", "max-file": "3"}
    del web.stored[:600]
    assert look(docker, 1010).coverage == Coverage(ns(600), ns(1010), reached_end=True)
    assert look(docker, 1010, Cursor(ns(10), 1)).coverage == Coverage(
        ns(600), ns(1010), reached_end=True, gap=True
    )


@pytest.mark.parametrize("fault", [Hang(), Hang(after=10), Trickle(pause=0.01)])
def test_hang_a_daemon_that_stalls_blinds_one_container_only(
    docker: FakeDocker, web: FakeContainer, fault: Fault
) -> None:
    web.faults.append(fault)
    docker.add("other").log(RUN.format("other"), at(0))
    stalled = look(docker, 1010, timeout=1.0)
    assert "1 s" in stalled.reading.problem
    assert stalled.reading.coverage is None or not stalled.coverage.reached_end
    assert look(docker, 1010, name="other").runs == ["other"]


def test_flood_memory_does_not_grow_with_the_answer(docker: FakeDocker) -> None:
    web = docker.add("web")
    for second in range(2000):
        web.log("x" * 16000, at(second), "stdout")
    clock = ManualClock(at(2010))
    source = open_source(LogSpec(container="web"), clock=clock, timeout=60.0, docker_host=docker.host)
    (container,) = source.containers()
    # The daemon of this test lives in the same process; only what our own modules allocate is looked at.
    only_ours = tracemalloc.Filter(True, "*/argus_sched/*")
    peak = 0

    def take(records: Any) -> None:
        nonlocal peak
        list(records)

    tracemalloc.start()
    try:
        reading = source.read(container, None, T0, take)
        peak = sum(
            one.size for one in tracemalloc.take_snapshot().filter_traces([only_ours]).statistics("filename")
        )
    finally:
        tracemalloc.stop()
        source.close()
    assert reading.bytes > 30_000_000
    assert reading.records == 2000
    assert peak < 2_000_000


def test_flood_a_log_that_cannot_be_read_in_time_is_read_from_its_end(
    docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = docker.add("web")
    for second in range(1000):
        web.log(RUN.format(second), at(second))
    monkeypatch.setattr(tail, "RECORDS_PER_SECOND", 500 / 60)
    seen = look(docker, 1010, timeout=60.0)
    assert seen.runs == [str(second) for second in range(501, 1000)]
    assert seen.coverage == Coverage(ns(500), ns(1010), reached_end=True)
    assert "newest 500 records" in seen.reading.notes[0]


def test_recreated_empty_is_covered_from_its_creation(docker: FakeDocker) -> None:
    docker.add("web", created="2026-03-14T10:04:00Z", started="2026-03-14T10:04:01Z")
    now = 2 * 3600 + 5 * 60
    assert look(docker, now).coverage == Coverage(ns(now - 60), ns(now), reached_end=True)
    after_another = look(docker, now, Cursor(ns(100), 1))
    assert after_another.coverage == Coverage(ns(now - 60), ns(now), reached_end=True, gap=True)
    assert after_another.container.started_at == at(now - 59)


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (UNREADABLE, "does not support reading: use json-file, local or journald"),
        (Refuse(500, "disk on fire"), "answered 500: disk on fire"),
        (Refuse(404, "No such container: web"), "No such container: web"),
    ],
)
def test_driver_none_and_other_refusals_say_what_to_do(
    docker: FakeDocker, web: FakeContainer, refusal: Refuse, words: str
) -> None:
    web.faults.append(refusal)
    seen = look(docker, 1010)
    assert seen.reading.coverage is None
    assert words in seen.reading.problem


def test_no_such_container_is_told_apart_from_a_daemon_that_is_away(docker: FakeDocker) -> None:
    with pytest.raises(SourceError, match="no such container: nosuch"):
        look(docker, 0, name="nosuch")
    docker.stop()
    with pytest.raises(
        SourceError, match=r"the docker daemon at unix://.*docker\.sock is away: .*No such file"
    ):
        look(docker, 0)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("garbage", "garbage cannot be the address of a docker daemon: set unix:///PATH, tcp://HOST:PORT or"),
        ("/var/run/docker.sock", "/var/run/docker.sock cannot be the address"),
        ("tcp://", "tcp:// cannot be the address"),
        ("unix://", "unix:// cannot be the address"),
        ("unix://var/run/docker.sock", "unix://var/run/docker.sock cannot be the address"),
        ("http://me:hunter2@127.0.0.1:1", "http://me:***@127.0.0.1:1 cannot be the address"),
        ("ssh://me:hunter2@example", "ssh://me:***@example cannot be the address"),
        ("tcp://me:hunter2@example:port", "tcp://me:***@example:port cannot be the address"),
    ],
)
@pytest.mark.parametrize("way", ["DOCKER_HOST", "hosts"])
def test_an_address_that_cannot_be_one_is_told_with_the_forms_and_without_its_password(
    monkeypatch: pytest.MonkeyPatch, address: str, shown: str, way: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    named = address if way == "hosts" else None
    source = open_source(LogSpec(container="web"), clock=ManualClock(T0), timeout=5.0, docker_host=named)
    with pytest.raises(SourceError) as caught:
        source.containers()
    assert shown in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("form", ["unix://{}", "http+unix://{}"])
def test_a_socket_is_named_in_every_form_that_docker_takes(
    docker: FakeDocker, web: FakeContainer, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    path = docker.host.removeprefix("unix://")
    monkeypatch.setenv("DOCKER_HOST", form.format(path))
    source = open_source(LogSpec(container="web"), clock=ManualClock(at(1010)), timeout=60.0)
    assert [one.name for one in source.containers()] == ["web"]
    source.close()


def test_a_socket_without_permission_is_told_as_such(
    docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    with pytest.raises(SourceError, match="permission denied on unix://"):
        look(docker, 0)


def test_an_answer_cut_in_the_middle_of_a_record_is_tried_again(
    docker: FakeDocker, web: FakeContainer
) -> None:
    web.faults.append(CutOff(after=500, times=4))
    assert look(docker, 1010).runs == ALL_RUNS
    web.faults[:] = [CutOff(after=500)]
    seen = look(docker, 1010)
    assert "middle of a record" in seen.reading.problem
    assert not seen.coverage.reached_end


def test_records_left_out_of_the_middle_are_noticed_by_their_number(
    docker: FakeDocker, web: FakeContainer
) -> None:
    web.faults.append(LeaveOut(400, 450))
    seen = look(docker, 1010)
    assert seen.coverage == Coverage(ns(999), ns(1010), reached_end=True, gap=True)
    assert "leaves records out" in seen.reading.notes[0]
    # A shorter tail began where records are now missing.
    web.faults[:] = [LeaveOut(790, 810)]
    assert look(docker, 1010).coverage.gap


def test_replicas_are_found_by_labels_newest_of_each_and_without_one_offs(docker: FakeDocker) -> None:
    def add(name: str, number: str, **more: Any) -> None:
        labels = {
            "com.docker.compose.project": "labs",
            "com.docker.compose.service": "api",
            "com.docker.compose.container-number": number,
            "com.docker.compose.oneoff": more.pop("oneoff", "False"),
            "tier": "web",
        }
        docker.add(name, labels=labels, **more)

    add("labs-api-1", "1")
    add("old-labs-api-1", "1", created="2026-03-13T00:00:00Z")
    add("labs-api-2", "2", running=False)
    add("labs-run", "3", oneoff="True")
    docker.add("db", labels={"com.docker.compose.project": "labs", "com.docker.compose.service": "db"})
    for spec in (LogSpec(compose_project="labs", compose_service="api"), LogSpec(label="tier=web")):
        source = open_source(spec, clock=ManualClock(), timeout=5.0, docker_host=docker.host)
        found = [(one.key, one.name, one.running) for one in source.containers()]
        source.close()
        assert found == [("labs/api/1", "labs-api-1", True), ("labs/api/2", "labs-api-2", False)]


def test_selectors_that_match_nothing_say_so(docker: FakeDocker) -> None:
    source = open_source(LogSpec(label="a=b"), clock=ManualClock(), timeout=5.0, docker_host=docker.host)
    with pytest.raises(SourceError, match="no container matches a=b"):
        source.containers()
    source.close()


def test_journald_is_asked_of_the_daemon_and_a_body_whose_pieces_differ_in_stamp_forges_no_run(
    docker: FakeDocker,
) -> None:
    web = docker.add("web", driver="journald", log_path="/proc/self/environ")
    web.log("started", at(0))
    web.log("DEBUG:body=".ljust(16384, "A"), at(1), ended=False)
    web.log(RUN.format("ghost").removeprefix("INFO:apscheduler.executors.default:"), at(1.001))
    web.log(RUN.format("real"), at(2))
    seen = look(docker, 10)
    assert (seen.container.driver, seen.runs) == ("journald", ["real"])
    assert seen.coverage.reached_end
    assert tails(docker)
