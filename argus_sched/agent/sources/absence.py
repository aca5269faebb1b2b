"""Why a Docker daemon cannot be reached, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def absence(error: Exception, host: str, timeout: float, last_words: str, named_by: str) -> str:
    """Why a daemon cannot be reached; in the same words whatever was wanted of it, so they are told once.

    `named_by` says where its address is set, for who wants another one.
    """
    causes = list(behind(error))
    if any(isinstance(cause, PermissionError) for cause in causes):
        return f"permission denied on {host}: run as root or in the socket's group, or set {named_by}"
    if last_words:
        return f"the docker daemon at {host} cannot be reached: {last_words}"
    if timed_out(causes):
        return f"the docker daemon at {host} did not answer within {timeout:g} s"
    if any(isinstance(cause, FileNotFoundError | ConnectionRefusedError) for cause in causes):
        return f"the docker daemon at {host} is away: {causes[-1]}: start it, or set {named_by}"
    return f"the docker daemon at {host} cannot be reached: {causes[-1]}"


def timed_out(causes: Sequence[BaseException]) -> bool:
    """Whether one of them is that time was up."""
    return any(isinstance(cause, TimeoutError) or "Timeout" in type(cause).__name__ for cause in causes)


def behind(error: BaseException) -> Iterator[BaseException]:
    """The error and what lies behind it; requests and urllib3 hide the cause in the arguments."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        found = waiting.pop(0)
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        further = [found.__cause__, found.__context__, *found.args, getattr(found, "reason", None)]
        waiting += [cause for cause in further if isinstance(cause, BaseException)]
