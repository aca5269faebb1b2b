"""How long to wait before trying again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Waits that grow by `factor` from `first` to `ceiling` seconds, each spread by up to half."""

    first: float = 0.05
    factor: float = 2.0
    ceiling: float = 5.0

    def delay(self, failures: int, spread: float) -> float:
        """Seconds to wait after `failures` failures in a row (1 or more); `spread` is a number in [0, 1).

        The spread keeps workers that lost the same server from coming back in one crowd.
        """
        # The exponent is bounded: a float overflows long before a server is away for that many attempts.
        grown = self.first * self.factor ** min(failures - 1, 64)
        return min(grown, self.ceiling) * (0.5 + spread / 2)
