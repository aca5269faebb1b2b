"""What one spell of firing knows, from the opening of the gate to its closing."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from argus_sched.scheduling.claims import Orphan


@dataclass
class Reign:
    """What one spell of firing knows: since when, how far each job is answered for, what waits."""

    epoch: int
    opens_at: float  # elapsed seconds
    started: datetime
    loaded: bool = False
    jobs: int = 0  # how many were declared when the store was last told
    answered: dict[str, datetime] = field(default_factory=dict)
    signals: deque[str] = field(default_factory=deque)
    pending: dict[str, None] = field(default_factory=dict)
    starts: dict[str, datetime] = field(default_factory=dict)
    orphans: dict[tuple[object, ...], Orphan] = field(default_factory=dict)
