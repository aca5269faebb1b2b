"""The version, where nothing else stands: every part may read it."""

__version__ = "0.1.0"
