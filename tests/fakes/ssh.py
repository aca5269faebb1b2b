"""A program to stand in for OpenSSH's: it takes the same arguments and is at once where the daemon is.

`FakeSsh(folder, socket)` writes `ssh` into `folder`, to be put on PATH. What its calls were given is in
`calls`; `refuse` and `hang` play a machine that does not let us in, or does not answer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

PROGRAM = """\
#!{python}
import json, os, socket, sys, threading, time
folder = {folder!r}
with open(folder + "/calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if os.path.exists(folder + "/hangs"):
    time.sleep(600)
if os.path.exists(folder + "/refusal"):
    sys.exit(sys.stderr.write(open(folder + "/refusal").read()) and 255)
daemon = socket.socket(socket.AF_UNIX)
daemon.connect({socket!r})

def send():
    while data := os.read(0, 65536):
        daemon.sendall(data)
    daemon.shutdown(socket.SHUT_WR)

threading.Thread(target=send, daemon=True).start()
while data := daemon.recv(65536):
    os.write(1, data)
"""


class FakeSsh:
    """The program in its folder."""

    def __init__(self, folder: Path, socket: Path) -> None:
        self.folder = folder
        program = folder / "ssh"
        program.write_text(PROGRAM.format(python=sys.executable, folder=str(folder), socket=str(socket)))
        program.chmod(0o755)

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of each call so far."""
        file = self.folder / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def refuse(self, words: str) -> None:
        """Say `words` on standard error and end with 255 from now on; empty words let everybody in again."""
        file = self.folder / "refusal"
        if words:
            file.write_text(words)
        else:
            file.unlink()

    def hang(self) -> None:
        """Do not get through from now on."""
        (self.folder / "hangs").touch()
