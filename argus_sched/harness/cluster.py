"""The cluster under test: worker processes, their lines to Postgres, and what each of them says it is.

Everything here was started by the harness and ends with it. A *slot* is a place for a worker (a process that
is started again when it died; with uvicorn, a parent of two), a *worker* one process from birth to death.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from argus_sched.errors import SourceError
from argus_sched.harness.diary import CANNOT_WRITE
from argus_sched.harness.history import (
    Belief,
    Born,
    Died,
    Event,
    Finished,
    Frozen,
    History,
    Service,
    Started,
)
from argus_sched.harness.settings import WorkerSettings
from argus_sched.harness.slots import Launcher, Slot, keep_log
from argus_sched.harness.tail import Tail

GLANCE = 0.005


@dataclass
class Worker:
    """One worker process as the harness sees it."""

    name: str
    slot: str
    pid: int
    role: str = "standby"
    epoch: int = 0
    alive: bool = True
    frozen_at: float | None = None


class Cluster:
    """Workers in their slots. Not thread-safe: one thread starts, looks and injects."""

    def __init__(
        self,
        folder: Path,
        settings: WorkerSettings,
        slots: Iterable[Slot],
        launcher: Launcher,
        log: str | None = None,
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.slots = {slot.name: slot for slot in slots}
        self.workers: dict[str, Worker] = {}
        self.events: list[Event] = []
        self._launcher = launcher
        self._log = log
        self._tails: dict[Path, Tail] = {}
        self._read_out: set[Path] = set()
        self._killed: dict[str, float] = {}
        self._stopped: dict[str, float] = {}
        self._pumps: list[threading.Thread] = []
        for name in ("workers", "logs"):
            (folder / name).mkdir()
        (folder / "effects.jsonl").touch()
        self._effects = Tail(folder / "effects.jsonl")
        self._finished: set[tuple[str, int]] = set()
        settings.write(folder)

    def start(self) -> None:
        """Fill every slot."""
        for slot in self.slots.values():
            self.spawn(slot)

    def spawn(self, slot: Slot) -> None:
        """Start the process of a slot; its worker appears once it has written its first line."""
        slot.births += 1
        self._stopped.pop(slot.name, None)
        slot.process = self._launcher(self.folder, slot)
        pump = threading.Thread(
            target=keep_log, args=(slot.process.stdout, self.log_path(slot.name)), daemon=True
        )
        pump.start()
        self._pumps.append(pump)

    def log_path(self, slot: str) -> Path:
        """The log of a slot, in the form of Docker's json-file driver; all slots may share one."""
        return self.folder / "logs" / f"{self._log or slot}-json.log"

    def record(self, event: Event) -> None:
        """Add an event that the harness itself caused or saw."""
        self.events.append(event)

    def look(self) -> None:
        """Read what the workers wrote since the last look, and notice who is gone."""
        for path in (self.folder / "workers").iterdir():
            # The dead write no more, and a long run has hundreds of them.
            if path not in self._read_out:
                self._read(path)
        for worker in self.workers.values():
            if worker.alive and self._gone(worker):
                self._bury(worker)
        for slot in self.slots.values():
            self._demand_birth(slot)

    def finished(self) -> set[tuple[str, int]]:
        """Every (job, due time) whose body came to its end."""
        for event in self._effects.read():
            if isinstance(event, Finished):
                self._finished.add((event.job, event.due_ms))
        return self._finished

    def jobs_seen(self) -> set[str]:
        """The jobs that ran at least once."""
        return {job for job, _ in self.finished()}

    def births(self) -> list[Born]:
        """Every worker's first line."""
        return [event for tail in self._tails.values() for event in tail.events if isinstance(event, Born)]

    def live(self) -> list[Worker]:
        """The workers that are alive at the last look."""
        return [worker for worker in self.workers.values() if worker.alive]

    def in_role(self, role: str) -> Worker | None:
        """The live worker that says it is `role`; of two, the one with the newest term."""
        found = [worker for worker in self.live() if worker.role == role and worker.frozen_at is None]
        return max(found, key=lambda worker: worker.epoch, default=None)

    def wait_until(self, holds: Callable[[], bool], seconds: float, what: str) -> None:
        """Look until `holds`; SourceError that says `what` never happened after `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            self.look()
            if holds():
                return
            if time.monotonic() > deadline:
                raise SourceError(f"{what} within {seconds:.0f} s: {self.state()}")
            time.sleep(GLANCE)

    def rest(self, seconds: float) -> None:
        """Let `seconds` pass while looking."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.look()
            time.sleep(0.02)

    def state(self) -> str:
        """Every live worker and its role, for messages."""
        return ", ".join(f"{worker.name} {worker.role}" for worker in self.live()) or "no worker is alive"

    def complete(self) -> bool:
        """Whether every slot has its workers and exactly one of them leads, where one should.

        With a guard off a second leader may never step down: that is for the judge, and no reason to wait.
        """
        leaders = sum(worker.role == "leader" for worker in self.live())
        one_leads = leaders == 1 or self.settings.coordination != "leader"
        one_leads = one_leads or (leaders > 1 and bool(self.settings.without))
        sizes = dict.fromkeys(self.slots, 0)
        for worker in self.live():
            sizes[worker.slot] += 1
        return one_leads and all(sizes[slot.name] >= slot.size for slot in self.slots.values())

    def kill(self, worker: Worker) -> float:
        """kill -9; returns the instant just before."""
        at = time.time()
        self._killed[worker.name] = at
        os.kill(worker.pid, signal.SIGKILL)
        return at

    def ask_to_stop(self, worker: Worker) -> float:
        """SIGTERM to the worker (with uvicorn, to the parent of both); returns the instant just before."""
        return self._terminate(self.slots[worker.slot])

    def freeze(self, worker: Worker) -> float:
        """SIGSTOP; returns the instant."""
        worker.frozen_at = time.time()
        os.kill(worker.pid, signal.SIGSTOP)
        return worker.frozen_at

    def thaw(self, worker: Worker) -> float:
        """SIGCONT; returns the instant."""
        at = time.time()
        os.kill(worker.pid, signal.SIGCONT)
        if worker.frozen_at is not None:
            self.record(Frozen(worker.frozen_at, at, worker.name))
        worker.frozen_at = None
        return at

    def refill(self, slot_name: str, seconds: float = 30.0) -> None:
        """Start a slot again once its process has ended; a uvicorn parent replaces a lost worker itself."""
        slot = self.slots[slot_name]
        if slot.size > 1 and slot_name not in self._stopped:
            return
        self.wait_until(
            lambda: slot.process is None or slot.process.poll() is not None,
            seconds,
            f"{slot_name} did not end",
        )
        self.look()
        self.spawn(slot)

    def history(self, *more: Iterable[Event]) -> History:
        """Everything that happened: the harness's events, the workers' own, and `more`."""
        self.look()
        self.finished()
        own = [event for tail in (*self._tails.values(), self._effects) for event in tail.events]
        events = [*self.events, *own, *(event for group in more for event in group)]
        return History.of(_settled(events))

    def stop(self, seconds: float = 30.0) -> None:
        """Ask every slot to stop, and wait for it."""
        for slot in self.slots.values():
            self._terminate(slot)
        for slot in self.slots.values():
            if slot.process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    slot.process.wait(seconds)
        self.look()

    def close(self) -> None:
        """End whatever is still there, frozen ones too, with everything they started."""
        for slot in self.slots.values():
            if slot.process is not None:
                _end_group(slot.process)
        for worker in self.live():
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)
        for pump in self._pumps:
            pump.join(5)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, path: Path) -> None:
        tail = self._tails.setdefault(path, Tail(path))
        for event in tail.read():
            self._learn(event)

    def _learn(self, event: Event) -> None:
        if isinstance(event, Born):
            self.workers[event.worker] = Worker(event.worker, event.slot, event.pid)
        elif isinstance(event, Belief) and (worker := self.workers.get(event.worker)):
            worker.role, worker.epoch = event.role, event.epoch

    def _demand_birth(self, slot: Slot) -> None:
        """Raise SourceError when a slot's process ended before its workers came up, or for want of disk."""
        if slot.process is None or slot.process.poll() is None or slot.name in self._stopped:
            return
        if slot.process.returncode == CANNOT_WRITE:
            raise SourceError(
                f"{slot.name} could not write down what it did: make room in {self.folder.parent}"
            )
        if not any(name.startswith(f"{slot.name}.{slot.births}.") for name in self.workers):
            log = self.log_path(slot.name)
            words = log.read_text(errors="replace").splitlines()[-3:] if log.exists() else []
            raise SourceError(
                f"{slot.name} ended before it began: {' | '.join(words) or 'it logged nothing'}"
            )

    def _terminate(self, slot: Slot) -> float:
        at = self._stopped[slot.name] = time.time()
        if slot.process is not None and slot.process.poll() is None:
            slot.process.terminate()
        return at

    def _gone(self, worker: Worker) -> bool:
        process = self.slots[worker.slot].process
        if process is not None and process.pid == worker.pid:
            return process.poll() is not None
        try:
            # A zombie is dead too: a parent may reap its child later.
            return Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return True

    def _bury(self, worker: Worker) -> None:
        if worker.name in self._killed:
            at, how = self._killed[worker.name], "kill"
        elif worker.slot in self._stopped:
            at, how = self._stopped[worker.slot], "stop"
        else:
            at, how = time.time(), "itself"
        last_words = self.folder / "workers" / f"{worker.name}.jsonl"
        self._read(last_words)
        self._read_out.add(last_words)
        worker.alive, worker.role = False, "dead"
        self.record(Died(at, worker.name, how))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _settled(events: Sequence[Event]) -> Iterator[Event]:
    """The events, no death earlier than its worker's last own line: a signal takes a moment to arrive."""
    last: dict[str, float] = {}
    for event in events:
        if isinstance(event, Born | Belief | Service | Started | Finished):
            last[event.worker] = max(last.get(event.worker, 0.0), event.at)
    for event in events:
        if isinstance(event, Died):
            yield replace(event, at=max(event.at, last.get(event.worker, 0.0)))
        else:
            yield event
