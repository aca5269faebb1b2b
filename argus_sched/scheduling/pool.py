"""Threads that run job bodies."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

Task = Callable[[], None]

_log = logging.getLogger(__name__)


class Pool:
    """`size` threads, started as they are needed, each running one task at a time.

    They are daemons: a job that hangs must not keep the process from exiting, and a run that dies with it is
    on record as interrupted. concurrent.futures would join its threads at exit, for as long as that takes.
    """

    def __init__(self, size: int, name: str = "argus-job") -> None:
        self.size = size
        self._name = name
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0
        self._lock = threading.Lock()

    def submit(self, task: Task) -> None:
        """Run `task` on a free thread, or once one is free."""
        self._tasks.put(task)
        # An idle thread takes it; only when there is none, and room for one more, another is started.
        if not self._idle.acquire(blocking=False):
            self._add_thread()

    def close(self) -> None:
        """Let idle threads end; running tasks go on."""
        for _ in range(self._started):
            self._tasks.put(None)

    def _add_thread(self) -> None:
        with self._lock:
            if self._started >= self.size:
                return
            self._started += 1
            name = f"{self._name}-{self._started}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except BaseException:
                _log.exception("a task of the job threads failed")
            self._idle.release()
