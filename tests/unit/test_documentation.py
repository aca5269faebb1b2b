"""What the documents show can be copied, and what they list is complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from argus_sched.scheduling.job import JobOptions
from argus_sched.scheduling.settings import SchedulerOptions

ROOT = Path(__file__).parents[2]
SCHEDULER = (ROOT / "docs" / "scheduler.md").read_text()
README = (ROOT / "README.md").read_text()


def module(text: str, marker: str) -> str:
    """The first Python block after `marker`."""
    found = re.search(r"```python\n(.*?)```", text[text.index(marker) :], re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("option", [*JobOptions.__annotations__, *SchedulerOptions.__annotations__])
def test_every_option_is_documented(option: str) -> None:
    assert f"`{option}`" in SCHEDULER


@pytest.mark.parametrize(
    ("files", "target", "jobs"),
    [
        (
            {
                "jobs.py": module(SCHEDULER, "`shop/jobs.py`:"),
                "web.py": module(SCHEDULER, "`shop/web.py`:"),
            },
            "shop.web:scheduler",
            ["reminders", "charge_cards", "report", "outbox"],
        ),
        (
            {"web.py": module(README, "## The scheduler")},
            "shop.web:scheduler",
            ["booking_reminders", "daily_jobs"],
        ),
    ],
    ids=["docs/scheduler.md", "README.md"],
)
def test_the_service_shown_declares_its_jobs(
    tmp_path: Path, files: dict[str, str], target: str, jobs: list[str]
) -> None:
    (tmp_path / "shop").mkdir()
    for name, text in files.items():
        (tmp_path / "shop" / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "argus_sched", "scheduler", "pack", target],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DATABASE_URL": "postgresql://127.0.0.1:1/shop"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r'\{id: "(\w+)"', done.stdout) == jobs
