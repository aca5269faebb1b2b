"""Docker contexts, as `docker context` keeps them in ~/.docker or $DOCKER_CONFIG; and their certificates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from argus_sched.agent.hosts import HostSpec, TlsFiles
from argus_sched.errors import SourceError


def resolved(host: HostSpec, environ: Mapping[str, str]) -> HostSpec:
    """`host` with the URL and the certificates of its context; itself when it names none.

    Raises SourceError for a context that is not there or has no Docker endpoint.
    """
    if host.context is None:
        return host
    folder = _folder(environ)
    # The layout of docker's cli/context/store: folders named by the SHA-256 of the context's name.
    number = hashlib.sha256(host.context.encode()).hexdigest()
    file = folder / "meta" / number / "meta.json"
    try:
        url = _url(json.loads(file.read_bytes()))
    except FileNotFoundError:
        raise SourceError(f"no docker context {host.context!r} in {folder}: see docker context ls") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot read the docker context {host.context!r}: {file}: {error}") from error
    if not url:
        raise SourceError(f"the docker context {host.context!r} has no docker endpoint: {file}")
    return replace(host, docker=url, context=None, tls=_tls(folder / "tls" / number / "docker"))


def require_readable(*paths: str) -> None:
    """Raises SourceError with the first of `paths` that cannot be read; the SDK would name none."""
    for path in paths:
        try:
            Path(path).open("rb").close()
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror}") from error


def _folder(environ: Mapping[str, str]) -> Path:
    named = environ.get("DOCKER_CONFIG")
    try:
        return (Path(named) if named else Path(environ.get("HOME") or Path.home()) / ".docker") / "contexts"
    except RuntimeError:
        raise SourceError("without a home there are no docker contexts: set $DOCKER_CONFIG") from None


def _url(meta: Any) -> str:
    endpoints = meta.get("Endpoints") if isinstance(meta, dict) else None
    docker = endpoints.get("docker") if isinstance(endpoints, dict) else None
    return str(docker.get("Host") or "") if isinstance(docker, dict) else ""


def _tls(folder: Path) -> TlsFiles | None:
    files = TlsFiles(*(str(folder / f"{name}.pem") for name in ("ca", "cert", "key")))
    return files if Path(files.cert).exists() else None
