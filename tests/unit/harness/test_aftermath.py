"""What must be done when a process is over is done, also when it was killed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from argus_sched.errors import SettingsError
from argus_sched.harness.aftermath import afterwards, one_folder

PATIENCE = 60.0


def killed_within(block: str) -> None:
    """Run `with block:` in a process of its own, and kill it there."""
    code = f"import time\nfrom argus_sched.harness.aftermath import *\nwith {block}:\n print(flush=True)\n time.sleep(99)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()


def wait_for(path: Path, *, there: bool) -> None:
    deadline = time.monotonic() + PATIENCE
    while path.exists() is not there and time.monotonic() < deadline:
        time.sleep(0.01)
    assert path.exists() is there


def test_the_command_runs_when_the_block_is_over_and_not_before(tmp_path: Path) -> None:
    with afterwards("touch", str(tmp_path / "done")):
        assert not (tmp_path / "done").exists()
    assert (tmp_path / "done").exists()


def test_the_command_runs_when_the_process_is_killed(tmp_path: Path) -> None:
    killed_within(f"afterwards('touch', {str(tmp_path / 'done')!r})")
    wait_for(tmp_path / "done", there=True)


def test_the_folder_takes_every_temporary_file_and_is_gone_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with one_folder("run-") as folder:
        assert Path(tempfile.mkdtemp()).parent == folder
    assert list(tmp_path.iterdir()) == []
    assert tempfile.gettempdir() == str(tmp_path)


def test_the_folder_is_gone_when_the_process_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    killed_within("one_folder('run-') as folder, open(folder / 'file', 'w')")
    deadline = time.monotonic() + PATIENCE
    while list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert list(tmp_path.iterdir()) == []


def test_no_place_for_a_folder_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
    with (
        pytest.raises(SettingsError, match="no temporary folder can be made, name one in TMPDIR"),
        one_folder("x"),
    ):
        pass
