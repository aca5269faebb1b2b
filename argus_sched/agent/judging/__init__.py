"""From evidence to a verdict: pure; jobs and locks, phase by phase."""
