"""Whatever a file holds, reading it ends in a value or in lines that name the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from argus_sched.agent.config.pack_files import load_pack
from argus_sched.agent.config.settings import AgentSettings, load_settings
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
        "!%0Ax ",
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
CHANNEL = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("url", "chat_id", "token_env", "thread_id"), JUNK)
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        key: JUNK | CHANNEL | st.lists(CHANNEL, max_size=2) for key in AgentSettings.__dataclass_fields__
    },
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files") / "file.yaml"


@contextmanager
def only_lines_about(path: Path) -> Iterator[None]:
    """Lets a SettingsError pass whose every line names the file, and nothing else."""
    try:
        yield
    except SettingsError as error:
        strange = [line for line in str(error).split("\n") if not line.startswith(f"{path}:")]
        if strange:
            pytest.fail(f"not about {path}: {strange}")


@settings(max_examples=300, deadline=None)
@given(
    content=st.binary(max_size=60)
    | st.lists(WORDS, max_size=40).map(lambda words: "".join(words).encode())
    | PACKS.map(lambda pack: yaml.safe_dump(pack, allow_unicode=True).encode())
)
def test_no_pack_raises_anything_but_settings_error(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with only_lines_about(path):
        load_pack(str(path), {"X": "1"})


@settings(max_examples=200, deadline=None)
@given(content=st.lists(WORDS, max_size=40).map("".join) | SETTINGS.map(yaml.safe_dump))
def test_no_config_raises_anything_but_settings_error(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")
    with only_lines_about(path):
        load_settings(str(path), {"X": "1"})
