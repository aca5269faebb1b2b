"""One POST of JSON, and what its answer means for a notice.

Errors come back as values and are raised by the caller: a traceback through the HTTP library would carry the
address, which may be a secret, in its local variables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from argus_sched.agent.fan_out import within
from argus_sched.agent.telling.notify_ports import (
    ContentRefusedError,
    RefusedError,
    ThrottledError,
    UnreachableError,
)
from argus_sched.agent.web_address import WebAddress
from argus_sched.errors import DeliveryError

TIMEOUT_SECONDS = 5.0
# The library's own time-out starts again with each byte, and does not hold for the resolving of a name.
WHOLE_SECONDS = 7.0
_MOST_ANSWER = 4096
_FOR_NOW = frozenset({408, 425})
_CONTENT = frozenset({400, 413, 415, 422})


@dataclass(frozen=True)
class Answer:
    """An HTTP answer: status, `Retry-After` where one was given, and the beginning of the body."""

    status: int
    retry_after: str | None
    body: str


def post_json(url: WebAddress, body: Any, headers: Mapping[str, str] | None = None) -> DeliveryError | None:
    """None when the server took `body`; else the error that says what its answer means."""
    answer = within(WHOLE_SECONDS, partial(_post, url, json.dumps(body).encode(), dict(headers or {})))
    if isinstance(answer, Answer):
        return meaning(answer, url.host)
    if isinstance(answer, DeliveryError):
        return answer
    return UnreachableError(
        f"{url.host} gave no whole answer in {WHOLE_SECONDS:g} s; it may have been delivered"
    )


def meaning(answer: Answer, host: str) -> DeliveryError | None:
    """What an answer means; None for a success."""
    if 200 <= answer.status < 300:
        return None
    said = f"{host} answered {answer.status}" + (f": {answer.body}" if answer.body else "")
    if answer.status == 429 or (answer.status == 503 and answer.retry_after):
        return ThrottledError(said, _seconds(answer.retry_after))
    if answer.status >= 500 or answer.status in _FOR_NOW:
        return UnreachableError(said)
    if answer.status in _CONTENT:
        return ContentRefusedError(said)
    return RefusedError(f"{said}; check the address in the settings")


def _seconds(text: str | None) -> float:
    """Seconds of a Retry-After; a date, or none at all, is a minute."""
    return float(text) if text and text.isascii() and text.isdigit() else 60.0


def _post(url: WebAddress, data: bytes, headers: dict[str, str]) -> Answer | DeliveryError:
    from urllib.error import HTTPError
    from urllib.request import Request

    address, authorization = url.split_user()
    headers = {"Content-Type": "application/json", **authorization, **headers}
    try:
        request = Request(address, data, headers, method="POST")  # noqa: S310 the settings allow http(s) only
        with _opener().open(request, timeout=TIMEOUT_SECONDS) as answer:
            return Answer(answer.status, None, "")
    except HTTPError as error:
        with error:
            body = error.read(_MOST_ANSWER).decode(errors="replace").strip()
            return Answer(error.code, error.headers.get("Retry-After"), url.redact(body)[:200])
    except Exception as error:  # whatever it is: a traceback from here would show the address
        why = getattr(error, "reason", None) or error  # a URLError shows its cause in angle brackets
        return UnreachableError(url.redact(f"{url.host} cannot be reached: {str(why) or type(why).__name__}"))


def _opener() -> Any:
    """An opener that follows no redirect: one would turn the POST into a GET, and look like a success."""
    from urllib.request import HTTPRedirectHandler, build_opener

    class Stay(HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    return build_opener(Stay)
