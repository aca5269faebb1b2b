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
# Of the rarer ways to write a host (quoted, as a parameter, in a service file) none is understood.
_URI_HOST = re.compile(
    r"postgresql://(?:[^@/?]*@)?((?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+)(?::[0-9]*)?)(?:[/?]|$)"
)
_PAIR_HOST = re.compile(r"(?:^|\s)host\s*=\s*([A-Za-z0-9._:/@-]+)(?=\s|$)")


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


def machine_of(dsn: str) -> str:
    """The one machine that `dsn` names, in lower case; empty when it names none, or several, or unclearly."""
    uri = _URI_HOST.match(dsn)
    if uri:
        return re.sub(r":[0-9]*$", "", uri[1]).strip("[]").lower()
    pair = None if dsn.startswith("postgresql://") else _PAIR_HOST.search(dsn)
    return pair[1].lower() if pair else ""
