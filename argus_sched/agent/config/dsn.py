"""The DSN of a watched database, from the environment or a file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from argus_sched.agent.config.secret_sources import read_secret
from argus_sched.agent.packs import DatabaseSpec
from argus_sched.errors import SettingsError

# Applications keep SQLAlchemy's form, which libpq refuses, and quotes with its password, for the `+driver`.
_URI = re.compile(r"postgres(?:ql)?(?:\+[a-z0-9_]+)?://")
_PAIRS = re.compile(r"\s*[a-z_]+\s*=")


def dsn_of(spec: DatabaseSpec, environ: Mapping[str, str]) -> str:
    """The DSN that `spec` names, in a form libpq takes.

    Raises SettingsError when it is absent or no Postgres DSN; no message holds any part of it.
    """
    found = read_secret(spec.dsn_env, spec.dsn_file, environ, "a Postgres DSN")
    uri = _URI.match(found)
    if uri:
        return f"postgresql://{found[uri.end() :]}"
    if _PAIRS.match(found):
        return found
    place = f"the variable {spec.dsn_env}" if spec.dsn_env else f"the file {spec.dsn_file}"
    raise SettingsError(
        f"{place} holds no Postgres DSN: it must begin with postgresql:// or be key=value pairs"
    )
