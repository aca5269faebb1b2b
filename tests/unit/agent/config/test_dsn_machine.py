"""The machine in a DSN: told where it is plain, and not guessed."""

from __future__ import annotations

import pytest

from argus_sched.agent.config.dsn import machine_of


@pytest.mark.parametrize(
    ("dsn", "machine"),
    [
        ("postgresql://argus:secret@db.example:5432/labs", "db.example"),
        ("postgresql://DB.example/labs", "db.example"),
        ("postgresql://argus@db.example", "db.example"),
        ("postgresql://argus@[fd00::5]:5432/labs?sslmode=require", "fd00::5"),
        ("postgresql://argus@/labs?host=/var/run/postgresql", ""),
        ("postgresql:///labs", ""),
        ("postgresql://a.example,b.example/labs", ""),
        ("postgresql://a.example:1,b.example:2/labs", ""),
        ("host=db.example dbname=labs", "db.example"),
        ("dbname=labs host = DB.example port=5432", "db.example"),
        ("host=a.example,b.example dbname=labs", ""),
        ("hostaddr=10.0.0.5 dbname=labs", ""),
        ("host='db.example' dbname=labs", ""),
        ("dbname=labs host=/run/postgresql", "/run/postgresql"),
        ("dbname=labs", ""),
    ],
)
def test_the_machine_of_a_dsn(dsn: str, machine: str) -> None:
    assert machine_of(dsn) == machine
