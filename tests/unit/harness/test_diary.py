"""What a worker writes down, and what becomes of it when it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from argus_sched.harness.diary import CANNOT_WRITE, Lines
from argus_sched.harness.history import Service, from_line


def test_each_event_is_a_line(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "log")
    for running in (True, False):
        lines.write(Service(1.0, "a", running))
    assert [from_line(line) for line in (tmp_path / "log").read_text().splitlines()] == [
        Service(1.0, "a", True),
        Service(1.0, "a", False),
    ]


def test_a_full_disk_ends_the_worker_at_once() -> None:
    code = "from argus_sched.harness.diary import Lines\nfrom argus_sched.harness.history import Service\n"
    code += "from pathlib import Path\nLines(Path('/dev/full')).write(Service(1.0, 'a', True))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == CANNOT_WRITE
