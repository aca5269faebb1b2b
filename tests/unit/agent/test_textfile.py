"""The textfile: whole or not at all, readable by others, and a clear sentence where it cannot be written."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from argus_sched.agent.textfile import TextfileError, write_textfile


def test_the_file_holds_the_data_and_others_may_read_it(tmp_path: Path) -> None:
    target = tmp_path / "argus.prom"
    previous = os.umask(0o077)
    try:
        write_textfile(target, b"a 1\n")
        write_textfile(target, b"a 2\n")
    finally:
        os.umask(previous)
    assert target.read_bytes() == b"a 2\n"
    assert target.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [target]


def test_no_temporary_file_ever_ends_in_prom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        seen.append(self.name)
        assert self.parent == target.parent
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    write_textfile(tmp_path / "argus.prom", b"a 1\n")
    assert len(seen) == 1
    assert not seen[0].endswith(".prom")


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    target = tmp_path / "argus.prom"
    bodies = [b"".join(b'm{n="%d"} %d\n' % (n, turn) for n in range(10_000)) for turn in (0, 1)]
    write_textfile(target, bodies[0])
    done, torn, reads = threading.Event(), [], [0]

    def scrape() -> None:
        while not done.is_set():
            reads[0] += 1
            if target.read_bytes() not in bodies:
                torn.append(reads[0])

    reader = threading.Thread(target=scrape)
    reader.start()
    try:
        for turn in range(100):
            write_textfile(target, bodies[turn % 2])
    finally:
        done.set()
        reader.join()
    assert reads[0] > 0
    assert not torn


def test_two_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "argus.prom"
    bodies = [bytes([65 + n]) * 200_000 for n in range(4)]

    def write(body: bytes) -> None:
        for _ in range(20):
            write_textfile(target, body)

    writers = [threading.Thread(target=write, args=(body,)) for body in bodies]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert target.read_bytes() in bodies
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_folder_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        TextfileError, match=r"folder .*/absent does not exist; create it or change `textfile`"
    ):
        write_textfile(tmp_path / "absent" / "argus.prom", b"")


def test_a_folder_in_the_files_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "argus.prom").mkdir()
    with pytest.raises(TextfileError, match="it is a folder"):
        write_textfile(tmp_path / "argus.prom", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["argus.prom"]


WRITE_AS_NOBODY = """
import os, sys
from argus_sched.agent.textfile import TextfileError, write_textfile
if os.geteuid() == 0:
    os.setuid(65534)
try:
    write_textfile(sys.argv[1], b"a 1")
except TextfileError as error:
    print(error)
"""


def test_a_folder_without_permission_is_named() -> None:
    # Not under tmp_path, which another user may not enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        command = [sys.executable, "-c", WRITE_AS_NOBODY, str(folder / "argus.prom")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith(f"no permission to create files in {name}"), done.stderr


def test_a_full_disk_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    target = tmp_path / "argus.prom"
    write_textfile(target, b"old 1\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(TextfileError, match=r"cannot write the textfile .*argus\.prom: File too large"):
            write_textfile(target, b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert target.read_bytes() == b"old 1\n"
    assert list(tmp_path.iterdir()) == [target]


def test_what_a_killed_writer_left_is_swept_up_and_a_writer_at_work_is_let_be(tmp_path: Path) -> None:
    target = tmp_path / "argus[1].prom"
    old, young = tmp_path / ".argus[1].prom.old.tmp", tmp_path / ".argus[1].prom.young.tmp"
    for leftover in (old, young):
        leftover.write_bytes(b"half")
    os.utime(old, (0, 0))
    write_textfile(target, b"a 1\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([young.name, target.name])
