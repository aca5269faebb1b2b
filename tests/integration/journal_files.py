"""Real journal files, written by systemd's own systemd-journal-remote from the export format.

journal = JournalFile(tmp_path / "journal")
journal.say("INFO:app:hello", at=T0)
journal.write()                                    # everything said so far
LogSpec(unit="labs.service", directory=str(journal.folder))
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

REMOTE = "/lib/systemd/systemd-journal-remote"
UNIT = "labs.service"
STARTED, DROPPED = "39f53479d3a045ac8e11786248231fbf", "a596d6fe7bfa4994828e72309e95d61e"


def require() -> None:
    """Skip where the programs are missing."""
    if not Path(REMOTE).exists() or shutil.which("journalctl") is None:
        pytest.skip("systemd-journal-remote is not installed (Debian package of that name)")


class JournalFile:
    """One machine's journal in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._entries: list[bytes] = []

    def say(self, message: str | bytes, at: datetime, **fields: str) -> None:
        """One message of the unit, as journald would have got it from its standard error."""
        known = {
            "_SYSTEMD_UNIT": UNIT,
            "_STREAM_ID": "5" * 32,
            "_TRANSPORT": "stdout",
            "_PID": "42",
            **fields,
        }
        micros = round(at.timestamp() * 1_000_000)
        lines = [f"__REALTIME_TIMESTAMP={micros}", f"__MONOTONIC_TIMESTAMP={micros - 1_700_000_000_000_000}"]
        lines += [f"_BOOT_ID={'b' * 32}", f"_MACHINE_ID={'a' * 32}", "_UID=0"]
        lines += [f"{name}={value}" for name, value in known.items()]
        text = message.encode() if isinstance(message, str) else message
        counted = b"MESSAGE\n" + struct.pack("<Q", len(text)) + text + b"\n"
        self._entries.append("\n".join(lines).encode() + b"\n" + counted + b"\n")

    def started(self, at: datetime) -> None:
        """What systemd itself says when it has started the unit."""
        fields = {"MESSAGE_ID": STARTED, "UNIT": UNIT, "_PID": "1", "_SYSTEMD_UNIT": "init.scope"}
        self.say("Started Labs.", at, **fields)

    def dropped(self, number: int, at: datetime) -> None:
        """What journald says when a unit was too talkative."""
        fields = {"MESSAGE_ID": DROPPED, "N_DROPPED": str(number), "OBJECT_SYSTEMD_UNIT": UNIT}
        self.say(f"Suppressed {number} messages", at, _SYSTEMD_UNIT="systemd-journald.service", **fields)

    def forget(self, number: int) -> None:
        """Lose the oldest entries, as a journal at its size limit does."""
        del self._entries[:number]

    def write(self) -> None:
        """Make the file anew with all that was said."""
        file = self.folder / "system.journal"
        file.unlink(missing_ok=True)
        subprocess.run(
            [REMOTE, "--output", str(file), "-"],
            input=b"".join(self._entries),
            check=True,
            capture_output=True,
        )
