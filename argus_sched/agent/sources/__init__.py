"""Where logs come from: a Docker daemon, its json-files, a file, or systemd's journal."""

from __future__ import annotations

from argus_sched.agent.hosts import HostSpec
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.ports import LogSource
from argus_sched.clock import Clock


def open_source(
    spec: LogSpec,
    *,
    clock: Clock,
    timeout: float,
    docker_host: str | None = None,
    host: HostSpec | None = None,
) -> LogSource:
    """The source that `spec` describes; nothing is opened before it is asked.

    `timeout` bounds the whole read of one container, in seconds. The containers are those of `host`;
    `docker_host` is short for one that is only a URL.
    """
    if spec.path is not None:
        from argus_sched.agent.sources.files import FileSource

        return FileSource(spec, clock=clock, timeout=timeout)
    if spec.unit is not None:
        from argus_sched.agent.sources.journal import JournalSource

        return JournalSource(spec, clock=clock, timeout=timeout)
    from argus_sched.agent.sources.docker import DockerSource

    return DockerSource(spec, clock=clock, timeout=timeout, host=host or HostSpec(docker=docker_host))
