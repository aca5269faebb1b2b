"""The section `hosts` of the config file: where Docker daemons on other machines are reached."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from argus_sched.agent.config.fields import app_name, one_line, path_from, text
from argus_sched.agent.config.problems import WrongValueError
from argus_sched.agent.config.sections import Section
from argus_sched.agent.config.yaml_nodes import Value
from argus_sched.agent.hosts import LOCAL, HostSpec, TlsFiles, without_password

_FORMS = "unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST"
# What ssh could take for an option, and what a shell or a label could trip over, is no name of a machine.
_MACHINE = re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:-]*")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


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
    wrong = WrongValueError(f"expected {_FORMS}, got {without_password(str(value))}")
    try:
        url = urlsplit(found)
        port = url.port
    except ValueError:
        raise wrong from None
    if url.password:
        raise WrongValueError("a password must not stand in YAML: ssh takes keys, tcp takes tls")
    if url.scheme == "unix":
        good = url.path.startswith("/") and not url.netloc
    else:
        good = _is_remote(url) and (port is not None or url.scheme == "ssh")
    if not good or url.query or url.fragment:
        raise wrong
    return found


def _is_remote(url: SplitResult) -> bool:
    user = url.username is None or (url.scheme == "ssh" and _USER.fullmatch(url.username) is not None)
    machine = url.hostname is not None and _MACHINE.fullmatch(url.hostname) is not None
    return url.scheme in ("tcp", "ssh") and url.path in ("", "/") and user and machine
