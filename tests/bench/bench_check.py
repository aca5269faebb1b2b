"""What one `argus-sched check` costs as a whole process, beside `docker logs | grep` on the same container.

    python tests/bench/bench_check.py [LINES]

Needs root and dockerd. A container writes LINES lines (1,000,000 unless given; one in two hundred is a run of one
of 40 jobs) and goes on with a run of every job each second; a session holds the lock in an embedded Postgres. The
first check reads all, the following ones go on from where the last stopped, as cron's do. Then ten containers of an
application each, with 20 jobs and a lock of its own, are looked at by one check.

The modules are compiled before they are measured, as those of an installed package are.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).parents[2]))

from argus_sched.postgres.embedded import EmbeddedPostgres
from tests.integration.docker_host import DockerHost

ROUNDS, JOBS, KEY = 5, 40, 911000001
APPS, APP_JOBS, APP_LINES = 10, 20, 20_000
WRITER = """
import datetime, itertools, sys, time
lines, jobs = {lines}, {jobs}
start, dues = datetime.datetime(2026, 3, 14, tzinfo=datetime.timezone.utc), itertools.count()
run = 'INFO:apscheduler.executors.default:Running job "{app} job {{}} (trigger: interval[0:15:00], ' \\
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
# A process begins with the peak of the one that forked it, so it is started by a small one.
METER = """
import os, resource, sys
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet), 0)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
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
        host = DockerHost(folder)
        host.start()
        stack.callback(host.stop)
        environ = {**os.environ, "BENCH_DSN": server.dsn(), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        one_big_log(host, holder, folder, environ, lines)
        many_logs(host, holder, folder, environ)


def one_big_log(
    host: DockerHost, holder: psycopg.Connection[Any], folder: Path, environ: Mapping[str, str], lines: int
) -> None:
    """A check beside `docker logs | grep` on the one container."""
    pack = start(host, holder, folder, "web", KEY, lines, JOBS)
    size = host.log_path("web").stat().st_size / 1e6
    print(f"{lines:,} lines, {size:,.0f} MB of json-file; medians of {ROUNDS}, whole processes\n")
    everything = f"docker -H {host.host} logs -t web 2>&1 | grep -c 'Running job'"
    recent = f"docker -H {host.host} logs -t --since 10s web 2>&1 | grep -c 'Running job'"
    figures = {
        "docker logs -t | grep": median(everything, environ),
        "docker logs -t --since 10s | grep": median(recent, environ),
    }
    figures |= checks(host, folder / "one", environ, [pack])
    host.remove("web")
    report(figures)
    check = figures["check, through the daemon"]
    print(
        f"\n{'docker logs -t | grep, by check':40} {figures['docker logs -t | grep'] / check:8.1f} (target 50)"
    )
    print(
        f"{'--since 10s | grep, by check':40} {figures['docker logs -t --since 10s | grep'] / check:8.1f} (target 20)"
    )


def many_logs(
    host: DockerHost, holder: psycopg.Connection[Any], folder: Path, environ: Mapping[str, str]
) -> None:
    """A check of ten applications with 200 jobs and ten locks."""
    packs = [start(host, holder, folder, f"app{n}", KEY + 1 + n, APP_LINES, APP_JOBS) for n in range(APPS)]
    print(f"\n{APPS} containers of {APP_LINES:,} lines, {APPS * APP_JOBS} jobs, {APPS} locks\n")
    report(checks(host, folder / "many", environ, packs))
    print(f"{'check, targets':40} {'0.350 s, 60 MB':>8}")
    for number in range(APPS):
        host.remove(f"app{number}")


def start(
    host: DockerHost, holder: psycopg.Connection[Any], folder: Path, app: str, key: int, lines: int, jobs: int
) -> Path:
    """Start a container and take its lock; returns its pack, once everything was written."""
    holder.execute("SELECT pg_advisory_lock(%s)", (key,))
    host.run_python(app, WRITER.format(app=app, lines=lines, jobs=jobs))
    wait_until_written(host, app)
    return write_pack(folder, app, key, jobs)


def checks(
    host: DockerHost, state: Path, environ: Mapping[str, str], packs: Sequence[Path]
) -> dict[str, float]:
    """The first check, the following ones and what they need at most, by either way of reading."""
    command = f"{sys.executable} -m argus_sched check --no-notify --pack {' '.join(map(str, packs))}"
    figures = {}
    for name, address in {"through the daemon": host.as_remote, "json-file read": host.host}.items():
        own = {**environ, "DOCKER_HOST": address, "XDG_STATE_HOME": str(state / name.split()[0])}
        once(f"{command} --now 2026-03-14T09:00:00Z", own, fine=range(4))  # compiles, and keeps no state
        first = measure(command, own)
        figures[f"first check, {name}"], figures[f"first check, {name}, peak MB"] = first
        figures[f"check, {name}"] = median(command, own)
        figures[f"check, {name}, peak MB"] = measure(command, own)[1]
    return figures


def wait_until_written(host: DockerHost, name: str) -> None:
    """Wait for the writer's word that everything was written."""
    while (
        b"Running job" not in bytes(host.api.logs(name, tail=1))
        or host.api.logs(name, tail=200).count(b"GET /") > 0
    ):
        time.sleep(0.5)


def write_pack(folder: Path, app: str, key: int, number: int) -> Path:
    """A pack with the jobs and the lock of one application."""
    jobs = "".join(f'      - {{id: job_{n}, name: "{app} job {n}", every: 15m}}\n' for n in range(number))
    path = folder / f"{app}.yaml"
    path.write_text(
        f"app: {app}\nlogs:\n  docker: {{container: {app}}}\n  window: 26h\ndatabase: {{dsn_env: BENCH_DSN}}\n"
        f"checks:\n  - {{kind: scheduler_lock, key: {key}}}\n  - kind: scheduler_jobs\n    jobs:\n{jobs}"
    )
    return path


def once(command: str, environ: Mapping[str, str], fine: Container[int] = (0,)) -> float:
    """Seconds of one run of a shell command, whose exit code must be among the `fine`."""
    started = time.perf_counter()
    done = subprocess.run(command, shell=True, env=dict(environ), capture_output=True, check=False)
    if done.returncode not in fine:
        raise SystemExit(
            f"{command}: exit code {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}"
        )
    return time.perf_counter() - started


def median(command: str, environ: Mapping[str, str]) -> float:
    """The median of several runs, in seconds."""
    return statistics.median(once(command, environ) for _ in range(ROUNDS))


def measure(command: str, environ: Mapping[str, str]) -> tuple[float, float]:
    """Seconds and the peak resident memory, in MB, of one run."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", METER, *command.split()], env=dict(environ), capture_output=True, check=True
    )
    return time.perf_counter() - started, int(done.stdout) / 1e3


def report(figures: Mapping[str, float]) -> None:
    """Print every figure."""
    for name, value in figures.items():
        unit = "" if name.endswith("MB") else " s"
        print(f"{name:40} {value:8.3f}{unit}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
