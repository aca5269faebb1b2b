"""A real Docker daemon of the test run's own, and containers that run this machine's Python.

`docker_host` (session) starts `dockerd` with its own data, socket and pid file, without bridge and firewall, so
it needs root but nothing that is installed or running already. Its one image is empty: a container sees the
interpreter, this checkout and the system's libraries through read-only mounts, and has no network; a database
is reached through a mounted socket folder.

    def test_it(docker_host):
        docker_host.run_python("web", "print('hello', flush=True)")
        docker_host.wait_for_log("web", b"hello")

Set DOCKER_HOST to `docker_host.host`. Under `docker_host.as_remote` the agent takes the same daemon for another
machine's, and so asks it instead of reading its files. Without root or dockerd the test is skipped, saying so.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY, TAG = "argus-sched-test", "empty"
IMAGE = f"{REPOSITORY}:{TAG}"
PATIENCE = 120.0


class DockerHost:
    """One daemon; `start` and `stop` may be called again to play one that goes away.

    `within` is a command that runs another, such as nsenter.
    """

    def __init__(self, folder: Path, within: Sequence[str] = ()) -> None:
        self.folder = folder
        self._within = within
        self.socket = folder / "docker.sock"
        self.host = f"unix://{self.socket}"
        self.as_remote = f"http+unix://{self.socket}"
        self._log = folder / "dockerd.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._api: Any = None

    @property
    def api(self) -> Any:
        """docker SDK's APIClient."""
        from docker.api.client import APIClient

        if self._api is None:
            self._api = APIClient(base_url=self.host, version="auto", timeout=60)
        return self._api

    def start(self) -> None:
        """Start the daemon and wait until it answers; raises RuntimeError with its last words."""
        command = [*self._within, "dockerd", "--host", self.host, "--data-root", str(self.folder / "data")]
        command += ["--exec-root", str(self.folder / "exec"), "--pidfile", str(self.folder / "dockerd.pid")]
        command += ["--iptables=false", "--ip6tables=false", "--bridge=none"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait_until(self._answers, "the daemon to answer")
        if not self.api.images(name=IMAGE):
            self.api.import_image_from_data(_empty_tar(), repository=REPOSITORY, tag=TAG)

    def stop(self) -> None:
        """Stop the daemon; its containers end with it."""
        if self._api is not None:
            self._api.close()
            self._api = None
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)
            self._process = None

    def run_python(
        self,
        name: str,
        code: str,
        *,
        env: Mapping[str, str] | None = None,
        mounts: Sequence[str] = (),
        tty: bool = False,
        driver: str = "json-file",
        log_options: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> str:
        """Start a container that runs `code`; returns its id.

        `mounts` are further `source:target:ro|rw`. An earlier container of this name is removed first.
        """
        self.remove(name)
        config = self.api.create_host_config(
            network_mode="none",
            binds=[*_mounts(), *mounts],
            tmpfs={"/tmp": ""},
            log_config={"type": driver, "config": dict(log_options or {})},
        )
        container = self.api.create_container(
            IMAGE,
            command=[sys.executable, "-c", code],
            name=name,
            tty=tty,
            labels=dict(labels or {}),
            environment={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
            host_config=config,
        )
        self.api.start(container["Id"])
        return str(container["Id"])

    def wait_for_log(self, name: str, text: bytes, times: int = 1) -> bytes:
        """The whole log once it holds `text`, as often as `times`."""
        found = b""

        def holds() -> bool:
            nonlocal found
            found = self.api.logs(name)
            return found.count(text) >= times

        self._wait_until(holds, f"{text!r} in the log of {name}")
        return found

    def wait_for_exit(self, name: str) -> int:
        """The exit status, once the container has ended by itself."""
        return int(self.api.wait(name, timeout=PATIENCE)["StatusCode"])

    def log_path(self, name: str) -> Path:
        """The json-file of a container."""
        return Path(self.api.inspect_container(name)["LogPath"])

    def kill(self, name: str, signal: str = "KILL") -> None:
        """Signal the container's process; with KILL, wait until it is gone."""
        self.api.kill(name, signal)
        if signal == "KILL":
            self.wait_for_exit(name)

    def remove(self, name: str) -> None:
        """Remove a container, running or not; none of that name is fine."""
        from docker.errors import NotFound

        try:
            self.api.remove_container(name, force=True)
        except NotFound:
            return

    def close(self) -> None:
        """Stop, and take the daemon's own mounts away so that its folder can go."""
        self.stop()
        for line in reversed(Path("/proc/mounts").read_text().splitlines()):
            mount = line.split()[1]
            if mount.startswith(f"{self.folder}/"):
                subprocess.run(["umount", "-l", mount], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(self._last_words())
        try:
            # The SDK forgets to close the socket with which it could not connect.
            with socket.socket(socket.AF_UNIX) as door:
                door.connect(str(self.socket))
            return bool(self.api.ping())
        except Exception:
            self._api = None
            return False

    def _wait_until(self, condition: Any, what: str) -> None:
        ends = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > ends:
                raise TimeoutError(f"waited {PATIENCE:g} s for {what}: {self._last_words()}")
            time.sleep(0.05)

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"


def _mounts() -> list[str]:
    """What the interpreter and the tests need, each at its own path, read-only."""
    system = [Path(path) for path in ("/usr", "/lib", "/lib64", "/bin")]
    ours = [Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), ROOT]
    wanted = [path for path in system if path.exists()]
    wanted += [path for path in ours if not any(path.is_relative_to(other) for other in system)]
    return [f"{path}:{path}:ro" for path in dict.fromkeys(wanted)]


def _empty_tar() -> bytes:
    data = io.BytesIO()
    tarfile.open(fileobj=data, mode="w").close()
    return data.getvalue()


@pytest.fixture(scope="session")
def docker_host() -> Iterator[DockerHost]:
    """The run's own daemon."""
    if os.geteuid() != 0:
        pytest.skip("a Docker daemon needs root")
    if shutil.which("dockerd") is None:
        pytest.skip("dockerd is not installed (Debian package docker.io)")
    host = DockerHost(Path(tempfile.mkdtemp(prefix="argus-dockerd-")))
    try:
        host.start()
    except (RuntimeError, TimeoutError) as error:
        host.close()
        pytest.skip(f"dockerd does not start here: {error}")
    yield host
    host.close()
