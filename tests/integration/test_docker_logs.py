"""Reading the logs of real containers, through a real daemon and from its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from argus_sched.agent.logevents import Cursor, Event, EventKind
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.ports import Reading
from argus_sched.agent.reading.loglines import LineParser
from argus_sched.agent.sources import open_source
from argus_sched.clock import SystemClock
from argus_sched.errors import SourceError
from tests.integration.docker_host import DockerHost

pytestmark = pytest.mark.docker

RUN = (
    'Running job "{name} (trigger: interval[0:05:00], next run at: 2026-03-14 09:05:00 UTC)"'
    " (scheduled at 2026-03-14 09:00:00+00:00)"
)
APSCHEDULER = """
import logging, time
from apscheduler.schedulers.background import BackgroundScheduler
logging.basicConfig(level=logging.INFO)
scheduler = BackgroundScheduler(timezone="UTC")
def tick(): pass
scheduler.add_job(tick, "interval", seconds=1, name='sync "orders" \\u2192 dwh', max_instances=1)
scheduler.start()
time.sleep(600)
"""


@dataclass
class Look:
    """One read and what it gave."""

    reading: Reading
    events: list[Event] = field(default_factory=list)

    @property
    def runs(self) -> list[str | None]:
        return [event.name for event in self.events if event.kind is EventKind.RUNNING]


def look(host: str, spec: LogSpec, cursor: Cursor | None = None, timeout: float = 60.0) -> Look:
    clock = SystemClock()
    source = open_source(spec, clock=clock, timeout=timeout, docker_host=host)
    try:
        (container,) = source.containers()
        parser, events = LineParser(container.name), []

        def take(records: Any) -> None:
            for record in records:
                events.extend(parser.feed(record))

        reading = source.read(container, cursor, clock.now() - timedelta(hours=26), take)
        return Look(reading, events)
    finally:
        source.close()


def printing(*lines: str, then: str = "") -> str:
    body = "\n".join(f"print({line!r}, file=sys.stderr, flush=True)" for line in lines)
    return f"import sys, time\n{body}\n{then}"


@pytest.fixture(params=["as_remote", "host"], ids=["daemon", "json-file"])
def way(request: pytest.FixtureRequest, docker_host: DockerHost) -> str:
    """Both ways to the same log."""
    host: str = getattr(docker_host, request.param)
    return host


def test_runs_of_a_real_apscheduler_are_read_and_the_next_read_goes_on(
    docker_host: DockerHost, way: str
) -> None:
    docker_host.run_python("aps", APSCHEDULER)
    docker_host.wait_for_log("aps", b"executed successfully")
    first = look(way, LogSpec(container="aps"))
    assert first.runs
    assert set(first.runs) == {'sync "orders" \u2192 dwh'}
    assert EventKind.SCHEDULER_STARTED in {event.kind for event in first.events}
    assert first.reading.problem == ""
    assert first.reading.coverage is not None
    assert first.reading.coverage.reached_end

    docker_host.kill("aps")
    second = look(way, LogSpec(container="aps"), first.reading.cursor)
    everything = look(way, LogSpec(container="aps"))
    assert _said(first.events + second.events) == _said(everything.events)
    assert second.reading.coverage is not None
    assert not second.reading.coverage.gap


def _said(events: list[Event]) -> list[tuple[Any, ...]]:
    return [(event.kind, event.stamp_ns, event.name) for event in events]


def test_a_request_body_over_16_kib_cannot_forge_a_run(docker_host: DockerHost, way: str) -> None:
    # The text stands exactly where the second stored piece begins.
    body = "DEBUG:app.http:body=".ljust(16384, "A") + RUN.format(name="ghost") + "B" * 40000
    docker_host.run_python("body", printing(body, RUN.format(name="real"), *["filler"] * 198))
    docker_host.wait_for_exit("body")
    assert look(way, LogSpec(container="body")).runs == ["real"]


def test_a_terminal_is_read_too(docker_host: DockerHost, way: str) -> None:
    text = "\\x1b[32mINFO\\x1b[0m:     " + RUN.format(name="tty_job")
    code = f"import sys\nsys.stdout.write('progress 10%\\rprogress 100%\\n'); print('''{text}''')"
    docker_host.run_python("tty", code, tty=True)
    docker_host.wait_for_exit("tty")
    assert look(way, LogSpec(container="tty")).runs == ["tty_job"]


def test_zeros_in_the_middle_hide_nothing_that_came_after(docker_host: DockerHost, way: str) -> None:
    code = printing(
        RUN.format(name="before"),
        then=(
            "import signal\n"
            "signal.signal(signal.SIGUSR1, lambda *_: [print('after %d' % n, file=sys.stderr, flush=True)"
            " for n in range(300)] + [print("
            + repr(RUN.format(name="after"))
            + ", file=sys.stderr, flush=True)])\n"
            "print('ready', file=sys.stderr, flush=True)\n"
            "while True: time.sleep(0.05)"
        ),
    )
    docker_host.run_python("zeros", code)
    docker_host.wait_for_log("zeros", b"ready")
    with docker_host.log_path("zeros").open("ab") as log:
        log.write(b"\0" * 300 + b"\n")
    docker_host.kill("zeros", "USR1")
    path = docker_host.log_path("zeros")
    docker_host._wait_until(lambda: b"after (trigger" in path.read_bytes(), "the run after the damage")
    docker_host.kill("zeros")

    seen = look(way, LogSpec(container="zeros"))
    assert seen.runs[-1] == "after"
    assert "damaged" in " ".join(seen.reading.notes)
    assert seen.reading.coverage is not None
    assert seen.reading.coverage.gap
    assert seen.reading.coverage.reached_end


def test_a_restarted_container_joins_on_and_a_recreated_one_does_not(
    docker_host: DockerHost, way: str
) -> None:
    docker_host.run_python("again", printing(RUN.format(name="one")))
    docker_host.wait_for_exit("again")
    first = look(way, LogSpec(container="again"))
    docker_host.api.start("again")
    docker_host.wait_for_exit("again")
    restarted = look(way, LogSpec(container="again"), first.reading.cursor)
    assert restarted.runs == ["one"]
    assert restarted.reading.coverage is not None
    assert not restarted.reading.coverage.gap

    docker_host.run_python("again", printing("nothing yet"))
    docker_host.wait_for_exit("again")
    recreated = look(way, LogSpec(container="again"), restarted.reading.cursor)
    assert recreated.runs == []
    assert recreated.reading.coverage is not None
    assert recreated.reading.coverage.gap


def test_a_rotated_log_covers_only_what_is_left(docker_host: DockerHost, way: str) -> None:
    lines = [f"filler {number}" for number in range(400)]
    options = {"max-size": "10k", "max-file": "3", "compress": "true"}
    docker_host.run_python("rotated", printing(*lines, RUN.format(name="late")), log_options=options)
    docker_host.wait_for_exit("rotated")
    seen = look(way, LogSpec(container="rotated"))
    assert seen.runs == ["late"]
    assert seen.reading.coverage is not None
    assert 0 < seen.reading.records < 401
    started = docker_host.api.inspect_container("rotated")["Created"]
    assert seen.reading.coverage.from_ns > _ns(started)


def _ns(text: str) -> int:
    from argus_sched.agent.reading.stamps import parse_stamp

    stamp = parse_stamp(text.encode())
    assert stamp is not None
    return stamp[0]


def test_the_local_driver_passes_raw_bytes_through(docker_host: DockerHost) -> None:
    data = RUN.format(name="caf\u00e9").encode("latin-1")
    code = f"import sys\nsys.stderr.buffer.write(b'first\\n' + {data!r} + b'\\n')"
    docker_host.run_python("local", code, driver="local")
    docker_host.wait_for_exit("local")
    assert look(docker_host.host, LogSpec(container="local")).runs == ["caf\ufffd"]


def test_a_driver_that_cannot_be_read_is_named_as_the_cause(docker_host: DockerHost) -> None:
    docker_host.run_python("silent", "import time; time.sleep(600)", driver="none")
    seen = look(docker_host.host, LogSpec(container="silent"))
    docker_host.remove("silent")
    assert seen.reading.coverage is None
    assert "does not support reading" in seen.reading.problem


def test_compose_labels_find_every_replica_and_no_one_off(docker_host: DockerHost) -> None:
    project = {"com.docker.compose.project": "labs", "com.docker.compose.service": "backend"}
    for name, number, one_off in (("r1", "1", "False"), ("r2", "2", "False"), ("run", "3", "True")):
        labels = project | {
            "com.docker.compose.container-number": number,
            "com.docker.compose.oneoff": one_off,
        }
        docker_host.run_python(name, "print('up')", labels=labels)
        docker_host.wait_for_exit(name)
    spec = LogSpec(compose_project="labs", compose_service="backend")
    source = open_source(spec, clock=SystemClock(), timeout=60.0, docker_host=docker_host.host)
    found = source.containers()
    source.close()
    assert [(one.key, one.name, one.running) for one in found] == [
        ("labs/backend/1", "r1", False),
        ("labs/backend/2", "r2", False),
    ]


def test_a_missing_container_and_a_missing_daemon_have_a_sentence_each(docker_host: DockerHost) -> None:
    with pytest.raises(SourceError, match="no such container: nosuch"):
        look(docker_host.host, LogSpec(container="nosuch"))
    with pytest.raises(SourceError, match="is away"):
        look("unix:///nowhere/docker.sock", LogSpec(container="nosuch"))
