"""DSNs and tokens: found by name, refused without a word of their content."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus_sched.agent.config.channels import TelegramSettings
from argus_sched.agent.config.dsn import dsn_of
from argus_sched.agent.packs import DatabaseSpec
from argus_sched.errors import SettingsError

SPEC = DatabaseSpec(dsn_env="LABS_DATABASE_URL")


@pytest.mark.parametrize(
    ("held", "dsn"),
    [
        ("postgresql://u:p@h:5432/db?sslmode=require", "postgresql://u:p@h:5432/db?sslmode=require"),
        ("postgres://u@h/db", "postgresql://u@h/db"),
        ("postgresql+asyncpg://u:p@h/db", "postgresql://u:p@h/db"),
        ("postgresql+psycopg2://u:p@h/db\n", "postgresql://u:p@h/db"),
        ("host=/run/postgresql dbname=labs", "host=/run/postgresql dbname=labs"),
        ("  dbname = labs", "dbname = labs"),
    ],
)
def test_a_dsn_is_given_in_the_form_libpq_takes(held: str, dsn: str) -> None:
    assert dsn_of(SPEC, {"LABS_DATABASE_URL": held}) == dsn


@pytest.mark.parametrize("held", ["mysql://u:hunter2@h/db", "hunter2", "u:hunter2@h/db"])
def test_what_is_no_postgres_dsn_is_refused_without_showing_it(held: str) -> None:
    with pytest.raises(SettingsError) as caught:
        dsn_of(SPEC, {"LABS_DATABASE_URL": held})
    assert str(caught.value) == (
        "the variable LABS_DATABASE_URL holds no Postgres DSN: it must begin with postgresql:// or be key=value pairs"
    )
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("environ", [{}, {"LABS_DATABASE_URL": ""}, {"LABS_DATABASE_URL": " \n"}])
def test_an_unset_variable_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as caught:
        dsn_of(SPEC, environ)
    assert str(caught.value) == "the variable LABS_DATABASE_URL is not set: it must hold a Postgres DSN"


def test_a_dsn_may_stand_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "dsn"
    path.write_text("postgresql://u:p@h/db\n")
    assert dsn_of(DatabaseSpec(dsn_file=str(path)), {}) == "postgresql://u:p@h/db"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "the file {} with a Postgres DSN cannot be read: No such file or directory"),
        (b" \n", "the file {} is empty: it must hold a Postgres DSN"),
        (b"hunter2\xff", "the file {} with a Postgres DSN cannot be read: is not UTF-8 text"),
        (
            b"hunter2",
            "the file {} holds no Postgres DSN: it must begin with postgresql:// or be key=value pairs",
        ),
    ],
)
def test_a_wrong_file_is_named_and_not_shown(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "dsn"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        dsn_of(DatabaseSpec(dsn_file=str(path)), {})
    assert str(caught.value) == message.format(path)


def test_a_token_is_read_when_it_is_needed_and_held_by_no_settings() -> None:
    telegram = TelegramSettings(chat_id="5", token_env="TOKEN")
    assert telegram.token_of({"TOKEN": "123:abc"}) == "123:abc"
    with pytest.raises(SettingsError, match="the variable TOKEN is not set: it must hold the token"):
        telegram.token_of({})
