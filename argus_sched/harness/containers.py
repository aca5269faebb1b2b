"""Workers in real containers: one per slot, on the host's network, with the host's own Python inside.

No image is pulled: an empty one is imported once, and the folders that hold this Python, this package and the
run are mounted where they are on the host.
"""

from __future__ import annotations

import io
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import argus_sched
from argus_sched.errors import SourceError
from argus_sched.harness.slots import Slot, environment_of

IMAGE = "argus-harness:empty"
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc")


def launch_container(folder: Path, slot: Slot) -> subprocess.Popen[bytes]:
    """Fill a slot with a container; its client process ends with it and hands its log on."""
    _need_image()
    command = [
        "docker",
        "run",
        "--rm",
        "--init=false",
        "--network=host",
        "--pid=host",
        f"--name={container_name(folder, slot)}",
    ]
    command += ["--label=argus-harness=1"]
    for path in _mounts():
        command.append(f"--volume={path}:{path}:ro")
    command += [f"--volume={folder}:{folder}", "--tmpfs=/tmp"]
    for name, value in environment_of(folder, slot).items():
        command.append(f"--env={name}={value}")
    command += [IMAGE, sys.executable, "-m", "argus_sched.harness.worker", str(slot.size)]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def container_name(folder: Path, slot: Slot) -> str:
    """The name of a slot's container in one run; each birth is another container."""
    return f"{folder.name}-{slot.name}-{slot.births}"


def remove_containers(folder: Path) -> None:
    """Remove whatever containers of a run are still there."""
    listed = _docker("ps", "-aq", f"--filter=name={folder.name}-")
    if found := listed.stdout.split():
        _docker("rm", "-f", *found)


def _need_image() -> None:
    if _docker("image", "inspect", IMAGE).returncode == 0:
        return
    empty = io.BytesIO()
    with tarfile.open(fileobj=empty, mode="w"):
        pass
    done = subprocess.run(
        ["docker", "import", "-", IMAGE], input=empty.getvalue(), capture_output=True, check=False
    )
    if done.returncode:
        raise SourceError(f"docker cannot be used: {done.stderr.decode(errors='replace').strip()}")


def _mounts() -> list[str]:
    """The folders of the host a worker needs, none inside another."""
    wanted = [*SYSTEM, sys.prefix, sys.base_prefix, sysconfig.get_paths()["stdlib"]]
    wanted += [str(Path(argus_sched.__file__).parent.parent), str(Path(sys.executable).resolve().parent)]
    chosen: list[str] = []
    for path in sorted({path for path in wanted if Path(path).exists()}, key=len):
        if not any(Path(path).is_relative_to(other) for other in chosen):
            chosen.append(path)
    return chosen


def _docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SourceError("there is no docker program: leave out --docker, or install Docker") from error
