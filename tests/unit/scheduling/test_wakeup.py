"""An event that a poll can wait for."""

from __future__ import annotations

import select

from argus_sched.scheduling.wakeup import WakeUp


def readable(wake: WakeUp) -> bool:
    return bool(select.select([wake], [], [], 0)[0])


def test_it_is_readable_exactly_while_it_is_set() -> None:
    wake = WakeUp()
    assert not readable(wake)
    wake.set()
    wake.set()
    assert readable(wake)
    assert wake.is_set()
    wake.clear()
    assert not readable(wake)
    assert not wake.is_set()
    wake.clear()
    assert wake.wait(0) is False
