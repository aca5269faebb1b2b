"""The section `hosts` of the config file: where Docker daemons on other machines are reached."""

from __future__ import annotations

from pathlib import Path

from argus_sched.agent.config.fields import app_name, one_line, path_from, text
from argus_sched.agent.config.problems import WrongValueError
from argus_sched.agent.config.sections import Section
from argus_sched.agent.config.yaml_nodes import Value
from argus_sched.agent.hosts import DAEMON_URLS, LOCAL, HostSpec, TlsFiles, is_daemon_url, without_password


def read_hosts(section: Section, folder: Path) -> dict[str, HostSpec]:
    """The hosts by name; relative paths start at `folder`."""
    return {name: _host(name, entry, folder) for name, entry in section.named(_name)}


def _host(name: str, section: Section, folder: Path) -> HostSpec:
    section.only_one_of("docker", "context")
    tls = section.sub("tls")
    spec = HostSpec(
        name=name,
        docker=section.get("docker", daemon_url, None),
        tls=_tls(tls, folder) if tls else None,
        context=section.get("context", one_line, None),
    )
    if section.has("tls") and spec.docker and not spec.docker.startswith("tcp://"):
        section.add("tls", "is for a tcp:// daemon only")
    if section.has("tls") and section.has("context"):
        section.add("tls", "a docker context brings its own certificates")
    section.finish()
    return spec


def _tls(section: Section, folder: Path) -> TlsFiles:
    files = TlsFiles(*(section.need(key, path_from(folder), "") for key in ("ca", "cert", "key")))
    section.finish()
    return files


def _name(value: Value) -> str:
    found = app_name(value)
    if found == LOCAL:
        raise WrongValueError(f"{LOCAL!r} is the daemon that DOCKER_HOST names: give another name")
    return found


def daemon_url(value: Value) -> str:
    """The URL of a daemon: one of the three forms, without a password."""
    found = text(value)
    if without_password(found) != found:
        raise WrongValueError("a password must not stand in YAML: ssh takes keys, tcp takes tls")
    if not is_daemon_url(found):
        raise WrongValueError(f"expected {DAEMON_URLS}, got {value}")
    return found
