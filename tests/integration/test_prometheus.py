"""What Prometheus' own programs say of our rules, our text and our file."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from argus_sched.agent.check import Node, PassReport, Result
from argus_sched.agent.metrics import render
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.textfile import write_textfile
from argus_sched.postgres.embedded import free_port

pytestmark = [
    pytest.mark.prometheus,
    pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed"),
]

RULES = Path(__file__).parents[2] / "config" / "prometheus"
AT = datetime(2026, 3, 14, 10, tzinfo=UTC)
HOSTILE_NAMES = (
    'say "hi"',
    r"C:\temp",
    "two\nlines",
    "→ ledger 🧾",
    "bell\x07",
    "half\ud83e",
    "",
    "rollup",
    "rollup",
)


def report(jobs: int = 0, at: datetime = AT) -> PassReport:
    """A pass with hostile names, a job nobody ever saw, a lock nobody can see, and `jobs` plain jobs."""
    names = [*HOSTILE_NAMES, *(f"job {number}" for number in range(jobs))]
    results = [
        Result(
            "labs",
            "scheduler_jobs",
            f"labs/{n}",
            Status.OK,
            Phase.FRESH,
            "",
            name=name,
            last_run=at,
            deadline=at,
        )
        for n, name in enumerate(names)
    ]
    never = Result("labs", "scheduler_jobs", "labs/never", Status.CRIT, Phase.NEVER_RAN, "", name="never")
    lock = Result("labs", "scheduler_lock", "labs/scheduler_lock", Status.UNKNOWN, Phase.BLIND, "")
    nodes = (Node("labs", "docker:web", None, True), Node("labs", "database:labs", None, False))
    return PassReport(at, (*results, never, lock), nodes, complete=True, seconds=0.25)


def promtool(*arguments: str, given: bytes = b"") -> str:
    done = subprocess.run(["promtool", *arguments], input=given, capture_output=True, check=False)
    output = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, output
    return output


def test_the_rules_are_valid_and_their_tests_pass() -> None:
    assert "rules found" in promtool("check", "rules", str(RULES / "argus-rules.yml"))
    assert "SUCCESS" in promtool("test", "rules", str(RULES / "argus-rules.test.yml"))


def test_promtool_has_no_complaint_about_the_metrics() -> None:
    assert promtool("check", "metrics", given=render(report(50))) == ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that the node exporter of `exporter` reads."""
    return tmp_path


@pytest.fixture
def exporter(folder: Path) -> Iterator[Callable[[], str]]:
    """A real node exporter with the textfile collector alone; call it to scrape."""
    program = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
    if program is None:
        pytest.skip("node_exporter is not installed")
    address = f"127.0.0.1:{free_port()}"
    command = [
        program,
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--web.listen-address={address}",
    ]
    command.append(f"--collector.textfile.directory={folder}")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def scrape() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
            body: bytes = answer.read()
        return body.decode()

    try:
        _wait_until_up(scrape, process)
        yield scrape
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_up(scrape: Callable[[], str], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            scrape()
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.02)
    pytest.fail("the node exporter did not come up")


def test_a_real_node_exporter_serves_every_series(folder: Path, exporter: Callable[[], str]) -> None:
    write_textfile(folder / "argus.prom", render(report()))
    served = exporter()
    assert "node_textfile_scrape_error 0" in served
    assert r'argus_job_last_run_timestamp_seconds{app="labs",job_name="say \"hi\""} 1.7734824e+09' in served
    assert r'job_name="two\nlines"' in served
    assert 'job_name="→ ledger 🧾"' in served
    assert 'argus_job_last_run_timestamp_seconds{app="labs",job_name="never"} NaN' in served
    assert 'argus_check_status{app="labs",check="scheduler_lock",target="labs/scheduler_lock"} 3' in served
    assert 'argus_source_up{app="labs",source="database:labs"} 0' in served
    ours = [line for line in render(report()).decode().splitlines() if not line.startswith("#")]
    assert sum(line.startswith("argus_") for line in served.splitlines()) == len(ours)


def test_a_scrape_while_the_agent_writes_never_meets_an_error(
    folder: Path, exporter: Callable[[], str]
) -> None:
    target = folder / "argus.prom"
    passes = [
        render(report(3300, datetime.fromtimestamp(AT.timestamp() + second, UTC))) for second in range(2)
    ]
    write_textfile(target, passes[0])
    done = threading.Event()

    def write() -> None:
        turn = 0
        while not done.is_set():
            turn += 1
            write_textfile(target, passes[turn % 2])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        scrapes = [exporter() for _ in range(10)]
    finally:
        done.set()
        writer.join()
    for served in scrapes:
        assert "node_textfile_scrape_error 0" in served
        assert sum(line.startswith("argus_") for line in served.splitlines()) > 9_900


def test_files_of_two_agents_live_beside_each_other(folder: Path, exporter: Callable[[], str]) -> None:
    ours = render(report()).decode().splitlines()
    lines = [line for line in ours if line.startswith("#") or '"labs"' in line]
    for app in ("a", "b"):
        write_textfile(folder / f"{app}.prom", "\n".join([*lines, ""]).replace('"labs"', f'"{app}"').encode())
    served = exporter()
    assert "node_textfile_scrape_error 0" in served
    assert 'argus_source_up{app="a",source="docker:web"} 1' in served
    assert 'argus_source_up{app="b",source="docker:web"} 1' in served


def test_a_help_text_that_differed_would_cost_a_file_its_series(
    folder: Path, exporter: Callable[[], str], field_cases: Callable[[str], Any]
) -> None:
    cases = field_cases("prometheus")["cases"]
    case = next(case for case in cases if case["id"] == "two-files-different-help")
    for name, text in case["files"].items():
        write_textfile(folder / name, text.encode())
    served = exporter()
    assert ('argus_up{env="a"} 1' in served) != ('argus_up{env="b"} 1' in served)
