"""`python -m argus_sched`."""

from argus_sched.cli import entry

entry()
