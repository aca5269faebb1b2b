"""The sign of life: one GET of an outside address after each complete pass; silence is noticed there."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from argus_sched.agent.basic_auth import split_user
from argus_sched.errors import DeliveryError
from argus_sched.version import __version__

TIMEOUT_SECONDS = 5.0


def beat(url: str, timeout: float = TIMEOUT_SECONDS) -> None:
    """Call `url`; raises DeliveryError, which names its host only, since the path may be a secret."""
    host = urlsplit(url).hostname or "?"
    try:
        address, authorization = split_user(url)
        headers = {"User-Agent": f"argus-sched/{__version__}", **authorization}
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - settings allow http and https only
        with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
            answer.read(1024)
    except urllib.error.HTTPError as error:
        error.close()
        raise DeliveryError(f"the heartbeat at {host} was answered with {error.code}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = getattr(error, "reason", None) or type(error).__name__
        raise DeliveryError(f"the heartbeat at {host} got no answer: {cause}") from None
