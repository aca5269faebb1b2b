"""A fixture for tests that read the log."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def loud_loggers() -> None:
    """Enable loggers again: the import linter, run in the same process, disables all that exist."""
    for logger in list(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.disabled = False
