"""What one `argus-sched check` costs as a whole process, beside `docker logs | grep` on the same container.

    python tests/bench/bench_check.py [LINES]

Needs root and dockerd. A container writes LINES lines (1,000,000 unless given; one in two hundred is a run of one
of 40 jobs) and goes on with a run of every job each second; a session holds the lock in an embedded Postgres. The
first check reads all, the following ones go on from where the last stopped, as cron's do.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[2]))

from argus_sched.postgres.embedded import EmbeddedPostgres
from tests.integration.docker_host import DockerHost

ROUNDS, JOBS, KEY = 5, 40, 911000001
WRITER = """
import datetime, itertools, sys, time
lines, jobs = {lines}, {jobs}
start, dues = datetime.datetime(2026, 3, 14, tzinfo=datetime.timezone.utc), itertools.count()
run = 'INFO:apscheduler.executors.default:Running job "Job number {{}} (trigger: interval[0:15:00], ' \\
      'next run at: 2026-03-14 09:15:00 UTC)" (scheduled at {{}})\\n'
other = 'INFO:     172.18.0.1:{{}} - "GET /api/v1/bookings/{{}}?expand=customer,items HTTP/1.1" 200 OK ' + 'x' * 60 + '\\n'
write = sys.stdout.write
def ran(n):
    write(run.format(n, start + datetime.timedelta(seconds=next(dues))))
write('INFO:apscheduler.scheduler:Scheduler started\\n')
for n in range(lines):
    ran(n // 200 % jobs) if n % 200 == 0 else write(other.format(40000 + n % 20000, n))
write('all written\\n')
while True:
    for n in range(jobs):
        ran(n)
    sys.stdout.flush()
    time.sleep(1)
"""


def main(lines: int) -> None:
    """Measure and print."""
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="argus-bench-", ignore_cleanup_errors=True)
            )
        )
        server = stack.enter_context(EmbeddedPostgres())
        holder = stack.enter_context(psycopg.connect(server.dsn(), autocommit=True))
        holder.execute("SELECT pg_advisory_lock(%s)", (KEY,))
        host = DockerHost(folder)
        host.start()
        stack.callback(host.stop)
        host.run_python("web", WRITER.format(lines=lines, jobs=JOBS))
        stack.callback(host.remove, "web")
        wait_until_written(host)
        pack = write_pack(folder)
        size = host.log_path("web").stat().st_size / 1e6
        print(f"{lines:,} lines, {size:,.0f} MB of json-file; medians of {ROUNDS}, whole processes\n")
        environ = {**os.environ, "BENCH_DSN": server.dsn()}
        everything = f"docker -H {host.host} logs -t web 2>&1 | grep -c 'Running job'"
        recent = f"docker -H {host.host} logs -t --since 10s web 2>&1 | grep -c 'Running job'"
        figures = {
            "docker logs -t | grep": median(everything, environ),
            "docker logs -t --since 10s | grep": median(recent, environ),
        }
        for name, address in {"through the daemon": host.as_remote, "json-file read": host.host}.items():
            state = {**environ, "DOCKER_HOST": address, "XDG_STATE_HOME": str(folder / name.split()[0])}
            check = f"{sys.executable} -m argus_sched check --no-notify --pack {pack}"
            figures[f"first check, {name}"] = once(check, state)
            figures[f"check, {name}"] = median(check, state)
            figures[f"check, {name}, peak MB"] = peak_megabytes(check, state)
        report(figures)


def wait_until_written(host: DockerHost) -> None:
    """Wait for the writer's word that everything was written."""
    while (
        b"Running job" not in bytes(host.api.logs("web", tail=1))
        or host.api.logs("web", tail=200).count(b"GET /") > 0
    ):
        time.sleep(0.5)


def write_pack(folder: Path) -> Path:
    """A pack with the 40 jobs and the lock."""
    jobs = "".join(f'      - {{id: job_{n}, name: "Job number {n}", every: 15m}}\n' for n in range(JOBS))
    path = folder / "bench.yaml"
    path.write_text(
        "app: bench\nlogs:\n  docker: {container: web}\n  window: 26h\ndatabase: {dsn_env: BENCH_DSN}\n"
        f"checks:\n  - {{kind: scheduler_lock, key: {KEY}}}\n  - kind: scheduler_jobs\n    jobs:\n{jobs}"
    )
    return path


def once(command: str, environ: Mapping[str, str]) -> float:
    """Seconds of one run of a shell command."""
    started = time.perf_counter()
    done = subprocess.run(command, shell=True, env=dict(environ), capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(
            f"{command}: exit code {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}"
        )
    return time.perf_counter() - started


def median(command: str, environ: Mapping[str, str]) -> float:
    """The median of several runs, in seconds."""
    return statistics.median(once(command, environ) for _ in range(ROUNDS))


def peak_megabytes(command: str, environ: Mapping[str, str]) -> float:
    """The peak resident memory of one run."""
    child = subprocess.Popen(command.split(), env=dict(environ), stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return usage.ru_maxrss / 1e3


def report(figures: Mapping[str, float]) -> None:
    """Print every figure, and the ratios that the targets name."""
    for name, value in figures.items():
        unit = "" if name.endswith("MB") else " s"
        print(f"{name:40} {value:8.3f}{unit}")
    check = figures["check, through the daemon"]
    print(
        f"\n{'docker logs -t | grep, by check':40} {figures['docker logs -t | grep'] / check:8.1f} (target 50)"
    )
    print(
        f"{'--since 10s | grep, by check':40} {figures['docker logs -t --since 10s | grep'] / check:8.1f} (target 20)"
    )
    print(f"{'check, targets':40} {'0.350 s, 60 MB':>8}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
