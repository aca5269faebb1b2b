"""What a command prints arrives, whatever its standard streams are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRINT = """
import sys
from argus_sched.cli import streams
streams.prepare()
{more}
print("Zażółć 😀 \\udcff")
sys.stdout.flush()
"""


def printed(more: str = "", **environ: str) -> bytes:
    script = [sys.executable, "-c", PRINT.format(more=more)]
    return subprocess.run(script, env={**os.environ, **environ}, capture_output=True, check=True).stdout


@pytest.mark.parametrize("handler", ["strict", "surrogateescape"])  # the latter is the C locale's
def test_a_letter_that_the_locale_cannot_write_is_escaped(handler: str) -> None:
    out = printed(PYTHONIOENCODING=f"ascii:{handler}")
    assert out == rb"Za\u017c\xf3\u0142\u0107 \U0001f600 \udcff" + b"\n"


def test_json_is_utf8_whatever_the_locale() -> None:
    out = printed("streams.speak_utf8()", PYTHONIOENCODING="latin-1")
    assert out.decode() == "Zażółć 😀 \\udcff\n"


def test_a_closed_stream_is_the_null_device_and_lends_its_number_to_no_file(tmp_path: Path) -> None:
    state = tmp_path / "state"
    script = (
        "import sys; from argus_sched.cli import streams; streams.prepare(); "
        f"file = open({str(state)!r}, 'w'); print('a verdict'); print('a problem', file=sys.stderr); "
        "sys.stdout.flush(); sys.exit(file.fileno())"
    )
    command = f'{sys.executable} -c "{script}" <&- >&- 2>&-'
    done = subprocess.run(["/bin/sh", "-c", command], check=False, cwd=Path(__file__).parents[3])
    assert done.returncode > 2
    assert state.read_text() == ""


def test_a_reader_that_has_gone_is_3_and_silent(tmp_path: Path) -> None:
    # What `history` prints stays in Python's buffer until the command has ended.
    reading, writing = os.pipe()
    os.close(reading)
    (tmp_path / "argus.yaml").write_text("state: state.db\n")
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "argus_sched", "history", "--config", str(tmp_path / "argus.yaml")],
            stdout=pipe,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (3, b"")
