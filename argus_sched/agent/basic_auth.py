"""User and password of an address, as HTTP wants them."""

from __future__ import annotations

import base64
from urllib.parse import unquote, urlsplit


def split_user(url: str) -> tuple[str, dict[str, str]]:
    """`url` without `user:password@`, and the header that stands for it; no header where there is none.

    Python's HTTP library would take it for a part of the host's name.
    """
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    token = base64.b64encode(unquote(user).encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {token}"}
