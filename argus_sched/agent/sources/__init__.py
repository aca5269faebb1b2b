"""Where logs come from: a Docker daemon, its json-files, or a file."""

from __future__ import annotations

from argus_sched.agent.packs import LogSpec
from argus_sched.agent.ports import LogSource
from argus_sched.clock import Clock


def open_source(spec: LogSpec, *, clock: Clock, timeout: float, docker_host: str | None = None) -> LogSource:
    """The source that `spec` describes; nothing is opened before it is asked.

    `timeout` bounds the whole read of one container, in seconds. `docker_host` replaces $DOCKER_HOST.
    """
    if spec.path is not None:
        from argus_sched.agent.sources.files import FileSource

        return FileSource(spec, clock=clock, timeout=timeout)
    from argus_sched.agent.sources.docker import DockerSource

    return DockerSource(spec, clock=clock, timeout=timeout, docker_host=docker_host)
