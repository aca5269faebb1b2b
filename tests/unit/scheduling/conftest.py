"""What the scheduler's unit tests share."""

from __future__ import annotations

from tests.workers.loud_loggers import loud_loggers

__all__ = ["loud_loggers"]
