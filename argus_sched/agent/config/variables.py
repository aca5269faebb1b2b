"""Environment variables inside a YAML value: `${NAME}` and `${NAME:-default}`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(
    r"\$(?P<escaped>\$\{)"
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}$]*)?\}"
    r"|(?P<broken>\$\{)"
)


def substitute(text: str, environ: Mapping[str, str]) -> str:
    """`text` with every reference replaced; `$${` stands for a literal `${`.

    A default is taken when the variable is unset or empty, as in a shell. Raises ValueError for a variable
    that is unset and has no default, and for a reference that is not well formed.
    """

    def value(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "${"
        if match["broken"]:
            raise ValueError("a reference is written ${NAME} or ${NAME:-default}, and a plain ${ as $${")
        return _lookup(match["name"], match["default"], environ)

    return _REFERENCE.sub(value, text)


def escape(text: str) -> str:
    """`text` written so that `substitute` gives it back unchanged."""
    return text.replace("${", "$${")


def _lookup(name: str, default: str | None, environ: Mapping[str, str]) -> str:
    found = environ.get(name)
    if default is not None:
        return found or default.removeprefix(":-")
    if found is None:
        raise ValueError(f"the variable {name} is not set: set it or write ${{{name}:-default}}")
    return found
