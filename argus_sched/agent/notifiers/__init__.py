"""Channels that accept a notice: one module per channel."""
