"""Work side by side until a deadline: what is not done by then is left behind, never waited for."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MOST_WORKERS = 16


def fan_out(
    work: Mapping[Key, Callable[[], Value]],
    seconds: float,
    most: int = MOST_WORKERS,
    lanes: Mapping[Key, Hashable] | None = None,
) -> dict[Key, Value | Exception]:
    """What each piece of `work` returned or raised within `seconds`; a piece that is not done has no entry.

    `seconds` may be infinite, for work that bounds itself. Each lane has its own workers, at most `most`, so
    that pieces which hang in one hold up nothing in another; without `lanes` there is one.

    The threads are daemons: one that hangs in a system call keeps neither this call nor the process.
    """
    done: queue.SimpleQueue[tuple[Key, Value | Exception]] = queue.SimpleQueue()
    finish = time.monotonic() + seconds
    queues: dict[Hashable, queue.SimpleQueue[tuple[Key, Callable[[], Value]]]] = {}
    for key, piece in work.items():
        queues.setdefault(lanes[key] if lanes else None, queue.SimpleQueue()).put((key, piece))
    for waiting in queues.values():
        for number in range(min(most, waiting.qsize())):
            threading.Thread(target=_work, args=(waiting, done), name=f"look-{number}", daemon=True).start()
    return _collect(done, len(work), finish)


def within(seconds: float, piece: Callable[[], Value]) -> Value | Exception | None:
    """What `piece` returned or raised; None when it was not done in time, whatever it waits for meanwhile."""
    return fan_out({piece: piece}, seconds).get(piece)


def _work(
    waiting: queue.SimpleQueue[tuple[Key, Callable[[], Value]]],
    done: queue.SimpleQueue[tuple[Key, Value | Exception]],
) -> None:
    while True:
        try:
            key, piece = waiting.get_nowait()
        except queue.Empty:
            return
        try:
            done.put((key, piece()))
        except Exception as error:  # told by the caller, who knows whose work it was
            done.put((key, error))


def _collect(
    done: queue.SimpleQueue[tuple[Key, Value | Exception]], expected: int, finish: float
) -> dict[Key, Value | Exception]:
    found: dict[Key, Value | Exception] = {}
    while len(found) < expected:
        try:
            left = None if finish == math.inf else max(0.0, finish - time.monotonic())
            key, outcome = done.get(timeout=left)
        except queue.Empty:
            break
        found[key] = outcome
    return found
