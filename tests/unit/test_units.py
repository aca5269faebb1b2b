"""The shipped systemd units are what systemd reads without a word."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "config" / "systemd"
NAMES = ("argus-sched.service", "argus-sched.timer")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_has_nothing_to_say_about_the_units() -> None:
    # `verify` exits 0 with warnings, so what it prints is the verdict.
    command = ["systemd-analyze", "verify", *(str(UNITS / name) for name in NAMES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_verdict_of_the_agent_is_no_failure_of_the_unit() -> None:
    unit = configparser.ConfigParser(
        strict=False, interpolation=None, comment_prefixes=("#",), delimiters=("=",)
    )
    unit.optionxform = str  # systemd's keys keep their case
    unit.read(UNITS / "argus-sched.service")
    service = unit["Service"]
    assert service["SuccessExitStatus"].split() == ["1", "2", "3"]
    assert (service["Type"], service["StateDirectory"]) == ("oneshot", "argus-sched")
    assert service["ExecStart"].split()[-4:] == [
        "argus-sched",
        "check",
        "--config",
        "/etc/argus-sched/argus.yaml",
    ]
