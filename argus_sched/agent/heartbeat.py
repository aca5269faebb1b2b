"""The sign of life: one GET of an outside address after each complete pass; silence is noticed there."""

from __future__ import annotations

import urllib.error
import urllib.request
from functools import partial

from argus_sched.agent.fan_out import within
from argus_sched.agent.web_address import WebAddress
from argus_sched.errors import DeliveryError
from argus_sched.version import __version__

TIMEOUT_SECONDS = 5.0


def beat(url: WebAddress, timeout: float = TIMEOUT_SECONDS) -> None:
    """Call `url`; raises DeliveryError, which names its host only, since the path may be a secret."""
    # The library's own time-out starts again with each byte.
    problem = within(timeout, partial(_call, url, timeout))
    if problem is None:
        problem = f"gave no whole answer in {timeout:g} s"
    if problem:
        raise DeliveryError(f"the heartbeat at {url.host} {problem}")


def _call(url: WebAddress, timeout: float) -> str:
    """What went wrong, empty when nothing did; a traceback from here would show the address."""
    try:
        address, authorization = url.split_user()
        headers = {"User-Agent": f"argus-sched/{__version__}", **authorization}
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - settings allow http and https only
        with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
            answer.read(1024)
        return ""
    except urllib.error.HTTPError as error:
        error.close()
        return f"was answered with {error.code}"
    except Exception as error:
        return url.redact(f"got no answer: {getattr(error, 'reason', None) or type(error).__name__}")
