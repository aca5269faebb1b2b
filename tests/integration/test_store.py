"""The state file under real trouble: damage, age, rights, a full disk, two runs, kill -9."""

from __future__ import annotations

import os
import pwd
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from argus_sched.agent.check import PassReport, Result
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.store.run_lock import StoreBusyError, run_lock
from argus_sched.agent.store.sqlite import PARTS, Memory, Store, remember
from argus_sched.clock import SystemClock
from argus_sched.errors import StoreError
from tests.unit.agent.judging.evidence_cases import NOON, ago, known, run

EVIDENCE = {"labs": known([run(ago(minutes=5))])}
REPORT = PassReport(
    NOON,
    (Result("labs", "scheduler_jobs", "labs/sync", Status.CRIT, Phase.STALE, "dead"),),
    (),
    complete=True,
    seconds=0.1,
)
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store that holds one pass."""
    store = Store(tmp_path / "deep" / "state.db")
    keep(store)
    yield store
    store.close()


def keep(store: Store) -> None:
    with store.transaction() as connection:
        remember(connection, EVIDENCE, REPORT)


def test_what_a_pass_leaves_is_what_the_next_one_finds(store: Store) -> None:
    memory = Store(store.path).recall()
    assert memory.evidence == EVIDENCE
    assert memory.statuses == {"labs/sync": Status.CRIT}
    assert memory.last_pass == NOON


def test_a_file_that_is_not_there_is_an_empty_memory_and_is_not_made(tmp_path: Path) -> None:
    assert Store(tmp_path / "state.db").recall() == Memory()
    assert list(tmp_path.iterdir()) == []


def test_an_error_inside_a_transaction_undoes_all_of_it(store: Store) -> None:
    def half_done() -> None:
        with store.transaction() as connection:
            connection.execute("DELETE FROM evidence")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half_done()
    assert store.recall().evidence == EVIDENCE
    keep(store)


def test_a_reader_does_not_wait_for_a_writer(store: Store) -> None:
    with store.transaction() as connection:
        connection.execute("DELETE FROM evidence")
        assert Store(store.path).recall().evidence == EVIDENCE


@pytest.mark.parametrize("damage", ["text", "torn", "row"])
def test_a_damaged_file_is_one_sentence_that_says_what_to_do(store: Store, damage: str) -> None:
    store.close()
    if damage == "text":
        store.path.write_text("this is no database at all, although it is long enough " * 40)
    elif damage == "torn":
        with store.path.open("r+b") as file:
            file.seek(1024)
            file.write(os.urandom(store.path.stat().st_size - 1024))
    else:
        with sqlite3.connect(store.path) as connection:
            connection.execute("UPDATE evidence SET body = '{'")
        connection.close()
    with pytest.raises(StoreError, match=rf"state file {store.path} (is damaged|cannot be read)"):
        store.recall()


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(store: Store) -> None:
    with store.transaction() as connection:
        connection.execute("UPDATE schema_steps SET steps = 999 WHERE part = 'incidents'")
    store.close()
    before = store.path.read_bytes()
    for attempt in (store.recall, lambda: keep(store)):
        with pytest.raises(StoreError, match="newer argus-sched"):
            attempt()
    assert store.path.read_bytes() == before


def test_a_file_of_an_older_version_is_brought_up_to_date(store: Store) -> None:
    table = "own_counts"
    with store.transaction() as connection:
        connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE schema_steps SET steps = steps - 1 WHERE part = 'incidents'")
    store.close()
    keep(store)
    with store.transaction() as connection:
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert dict(connection.execute("SELECT part, steps FROM schema_steps")) == {
            part: len(steps) for part, steps in PARTS.items()
        }


def test_a_full_disk_is_one_sentence(store: Store) -> None:
    # SQLite's own bound on the file's pages fails in the same way as a device without room.
    with store.transaction() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with (
        pytest.raises(StoreError, match="cannot be written: database or disk is full"),
        store.transaction() as connection,
    ):
        connection.execute("UPDATE evidence SET body = ?", ("x" * 10_000_000,))
    assert store.recall().evidence == EVIDENCE


def test_a_cause_for_which_sqlite_itself_rolled_back_is_told(store: Store) -> None:
    # As it does on a full disk when the WAL cannot grow; a trigger can ask for the same.
    with store.transaction() as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON schema_steps BEGIN SELECT RAISE(ROLLBACK, 'no room'); END"
        )
    store.close()
    with pytest.raises(StoreError, match="no room"):
        keep(store)


def test_a_path_that_cannot_even_be_asked_for_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read: File name too long"):
        Store(tmp_path / ("x" * 300)).recall()


AS_NOBODY = """
import os, sys
from pathlib import Path
from argus_sched.agent.check import PassReport
from argus_sched.agent.store.sqlite import Store, remember
from argus_sched.errors import StoreError
from datetime import datetime, UTC
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[1]))
store = Store(Path(sys.argv[3]))
print(sorted(store.recall().evidence))
try:
    with store.transaction() as connection:
        remember(connection, {}, PassReport(datetime.now(UTC), (), (), True, 0.0))
except StoreError as error:
    print(error)
"""


@ROOT
def test_a_user_without_rights_can_read_and_is_told_that_nothing_is_kept(store: Store) -> None:
    store.close()
    for folder in store.path.parents:
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(0o755)
    nobody = pwd.getpwnam("nobody")
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(nobody.pw_uid), str(nobody.pw_gid), str(store.path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    evidence, message = done.stdout.splitlines()
    assert evidence == "['labs']"
    assert message.startswith(f"the state file {store.path} cannot be written: ")


IN_A_SERVICE_FOLDER = """
import os, sys
from pathlib import Path
from argus_sched.agent.check import PassReport
from argus_sched.agent.store.run_lock import run_lock
from argus_sched.agent.store.sqlite import Store, remember
from argus_sched.clock import SystemClock
from datetime import datetime, UTC
if len(sys.argv) > 2:
    os.setgroups([]); os.setgid(int(sys.argv[3])); os.setuid(int(sys.argv[2]))
path = Path(sys.argv[1])
with run_lock(path, 0, SystemClock()), Store(path).transaction() as connection:
    remember(connection, {}, PassReport(datetime.now(UTC), (), (), True, 0.0))
"""


@ROOT
def test_what_root_makes_in_the_folder_of_a_service_belongs_to_the_service(tmp_path: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    folder = tmp_path / "argus-sched"
    folder.mkdir()
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    for parent in folder.parents[:3]:
        parent.chmod(0o755)
    for user in ((), (str(nobody.pw_uid), str(nobody.pw_gid))):
        script = [sys.executable, "-c", IN_A_SERVICE_FOLDER, str(folder / "state.db"), *user]
        subprocess.run(script, check=True, cwd=Path(__file__).parents[2])
    assert {file.stat().st_uid for file in folder.iterdir()} == {nobody.pw_uid}


@ROOT
def test_root_gives_nothing_away_that_was_there_before(tmp_path: Path) -> None:
    os.chown(tmp_path, pwd.getpwnam("nobody").pw_uid, -1)
    (tmp_path / "secret").write_text("root's")
    (tmp_path / "state.db.lock").symlink_to(tmp_path / "secret")
    with run_lock(tmp_path / "state.db", 0, SystemClock()):
        assert (tmp_path / "secret").stat().st_uid == 0


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.integration.test_store import EVIDENCE, REPORT
from argus_sched.agent.store.sqlite import Store, remember
store = Store(Path(sys.argv[1]))
with store.transaction() as connection:
    remember(connection, {f"app{n}": EVIDENCE["labs"] for n in range(2000)}, REPORT)
    print("written", flush=True)
    sys.stdin.read()
"""


def test_a_writer_that_is_killed_leaves_what_was_there_before(store: Store) -> None:
    store.close()
    root = str(Path(__file__).parents[2])
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(store.path), root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        writer.send_signal(signal.SIGKILL)
    assert store.recall().evidence == EVIDENCE
    keep(store)
    assert store.recall().evidence == EVIDENCE


HOLDER = """
import sys
from pathlib import Path
from argus_sched.agent.store.run_lock import run_lock
from argus_sched.clock import SystemClock
with run_lock(Path(sys.argv[1]), 1, SystemClock()):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_waits_a_bounded_time_and_names_the_first(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    script = [sys.executable, "-c", textwrap.dedent(HOLDER), str(state)]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(StoreBusyError, match=rf"pid {holder.pid}\) has held .*state\.db\.lock"),
            run_lock(state, 0.2, SystemClock()),
        ):
            raise AssertionError("both hold it")
        holder.kill()
        holder.wait()
        with run_lock(state, timedelta(seconds=10).total_seconds(), SystemClock()):
            assert state.with_name("state.db.lock").read_text() == f"{os.getpid()}\n"


def test_the_lock_is_given_back_at_the_end(tmp_path: Path) -> None:
    for _ in range(2):
        with run_lock(tmp_path / "new" / "state.db", 0, SystemClock()):
            pass


def test_a_lock_file_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StoreError, match=r"lock file .* cannot be opened"),
        run_lock(tmp_path / "file" / "state.db", 0, SystemClock()),
    ):
        raise AssertionError("there is no such folder")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/full")])
def test_what_is_no_file_is_refused_at_once_and_nothing_is_left_beside_it(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "state.db")
    store = Store(tmp_path / "state.db")
    for use in (store.recall, lambda: keep(store), lambda: store.snapshot().__enter__()):
        with pytest.raises(StoreError, match=r"state\.db is no file: give `state` the path"):
            use()
    assert [path.name for path in tmp_path.iterdir()] == ["state.db"]
    assert not Path("/dev/full-journal").exists()
