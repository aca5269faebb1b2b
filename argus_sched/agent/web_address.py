"""The address of somebody's web server: only host and port may be shown, path and password are keys."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from argus_sched.agent.telling.secret import Secret

# Shorter steps of a path are words such as `api` or `v2`, and stand in answers for what they mean.
SHORTEST_KEY = 8


class WebAddress(Secret):
    """An http or https URL; `redact` also masks each part of it that an answer may repeat."""

    __slots__ = ()

    def __init__(self, url: str) -> None:
        super().__init__(url, *_keys(urlsplit(url)))

    @property
    def host(self) -> str:
        """Host and port."""
        return urlsplit(self.reveal()).netloc.rpartition("@")[2]

    def split_user(self) -> tuple[str, dict[str, str]]:
        """The URL without `user:password@`, and the header that stands for it; none where there is none.

        Python's HTTP library would take it for a part of the host's name.
        """
        parts = urlsplit(self.reveal())
        user, at, host = parts.netloc.rpartition("@")
        if not at:
            return self.reveal(), {}
        return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {_basic(user)}"}


def _basic(user: str) -> str:
    return base64.b64encode(unquote(user).encode()).decode()


def _keys(parts: SplitResult) -> Iterator[str]:
    """What of a URL a server may repeat, as it is written and as it is meant."""
    places = [parts.path.strip("/"), *parts.path.split("/"), parts.query]
    places += [value for _, value in parse_qsl(parts.query)]
    user = parts.netloc.rpartition("@")[0]
    people = [user, user.partition(":")[2], _basic(user)]
    for found in (*people, *(place for place in places if len(place) >= SHORTEST_KEY)):
        yield from (found, unquote(found))
