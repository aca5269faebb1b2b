"""The scheduler core: what a watched application imports."""
