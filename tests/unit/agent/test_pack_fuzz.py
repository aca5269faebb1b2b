"""Whatever a pack file holds, reading it ends in a pack or in lines that name the file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from argus_sched.agent.pack_files import load_pack
from argus_sched.errors import SettingsError

# Text that is nearly a pack finds more than random bytes do.
WORDS = st.sampled_from(
    [
        *[
            "app",
            "logs",
            "checks",
            "kind",
            "scheduler_jobs",
            "scheduler_lock",
            "jobs",
            "id",
            "name",
            "every",
            "cron",
            "key",
            "15m",
            "[",
            "]",
            "{",
            "}",
        ],
        *[
            ": ",
            "- ",
            ", ",
            "\n",
            "  ",
            "&a ",
            "*a",
            "!!int ",
            "<<",
            "${X}",
            "$${",
            "~",
            "* * * * *",
            "\t",
            "'",
            '"',
            "---\n",
        ],
        *[
            "yes",
            "010",
            "-5",
            "99999999999999999999999999",
            "2026-03-14",
            "12:30",
            "0x10",
            "→",
            "\x85",
            "\u2028",
        ],
        "|\n",
    ]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats() | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | WORDS, inner, max_size=4)
    ),
    max_leaves=12,
)
JOBS = st.lists(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("id", "name", "every", "cron", "timezone", "grace", "enabled"), JUNK),
    ),
    max_size=3,
)
CHECKS = st.lists(
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["scheduler_jobs", "scheduler_lock"])},
        optional={"id": JUNK, "key": JUNK, "tick": JUNK, "jobs": JOBS | JUNK},
    ),
    max_size=3,
)
PACKS = st.fixed_dictionaries(
    {"app": JUNK, "checks": CHECKS}, optional={"logs": JUNK, "database": JUNK, "databases": JUNK}
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packs") / "pack.yaml"


@settings(max_examples=300, deadline=None)
@given(
    content=st.binary(max_size=60)
    | st.lists(WORDS, max_size=40).map(lambda words: "".join(words).encode())
    | PACKS.map(lambda pack: yaml.safe_dump(pack, allow_unicode=True).encode())
)
def test_no_file_raises_anything_but_settings_error(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        load_pack(str(path), {"X": "1"})
    except SettingsError as error:
        lines = str(error).split("\n")
        assert all(line.startswith(f"{path}:") for line in lines), lines
