"""The embedded server where it cannot be had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argus_sched.errors import SourceError
from argus_sched.postgres.embedded import EmbeddedPostgres


def test_a_server_that_cannot_be_made_says_why_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binaries = tmp_path / "install" / "bin"
    binaries.mkdir(parents=True)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(0o755)
    (binaries / "initdb").write_text("#!/bin/sh\necho 'user does not exist' >&2\nexit 1\n")
    (binaries / "initdb").chmod(0o755)
    (binaries / "postgres").touch(mode=0o755)
    monkeypatch.setenv("ARGUS_PG_BINDIR", str(binaries))
    root = tmp_path / "server"
    root.mkdir()
    with pytest.raises(SourceError, match="user does not exist"), EmbeddedPostgres(root=root):
        raise AssertionError("there is no server")
    assert not root.exists()
