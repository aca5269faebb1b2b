"""SIGTERM ends the wait, whichever thread the kernel hands it to."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import signal, sys, threading
from argus_sched.harness.stop_request import StopRequest

request = StopRequest()
other = threading.Thread(target=threading.Event().wait, daemon=True)
other.start()
signal.signal(signal.SIGUSR2, lambda *_: print("other", flush=True))
print("ready", flush=True)
if sys.argv[1] == "thread":
    threading.Thread(target=lambda: signal.pthread_kill(other.ident, signal.SIGTERM)).start()
request.wait()
print("stopped", flush=True)
"""


@pytest.mark.parametrize("target", ["process", "thread"])
def test_sigterm_ends_the_wait_whichever_thread_gets_it(target: str) -> None:
    command = [sys.executable, "-c", PROGRAM, target]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if target == "process":
            process.send_signal(signal.SIGUSR2)
            assert process.stdout.readline() == "other\n"
            process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=60)[0].endswith("stopped\n")
        assert process.returncode == 0
