"""What is shipped: the wheel's content, what a short command loads, and what no file may say."""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from argus_sched.advisory_keys import REGISTRY
from argus_sched.cli import COMMANDS, Parser

ROOT = Path(__file__).parents[2]
HEAVY = {"apscheduler", "docker", "psycopg", "pydantic", "redis", "rich", "starlette", "telegram", "yaml"}
# In parts, so that this file is not among those that name one.
REGISTRY_HOSTS = (
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("deb", "debian", "org"),
    ("registry", "npmjs", "org"),
)


def test_the_wheel_owns_one_name_and_brings_its_data(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"argus_sched"}
    assert "argus_sched/py.typed" in names
    assert [name for name in names if name.endswith(".sql")]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_load_no_library(arguments: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "argus_sched", *arguments]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "argus_sched" in loaded
    assert loaded & HEAVY == set()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_no_tracked_file_names_a_host_of_a_package_registry() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    hosts = re.compile("|".join(re.escape(".".join(parts)) for parts in REGISTRY_HOSTS).encode())
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    assert [str(path) for path in paths if path.is_file() and hosts.search(path.read_bytes())] == []


def test_every_advisory_key_has_a_number_of_its_own() -> None:
    numbers = [key.number for key in REGISTRY]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_a_module_that_sets_its_run(command: str) -> None:
    name, help_text = COMMANDS[command]
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} does not exist"
    module = importlib.import_module(name)
    parser = Parser(prog=command)
    module.configure(parser)
    subcommands = [
        action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    ends = [*subcommands[0].values()] if subcommands else [parser]
    assert all(callable(end.get_default("run") or parser.get_default("run")) for end in ends)
    assert module.__doc__
    assert help_text
