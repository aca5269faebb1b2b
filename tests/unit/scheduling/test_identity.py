"""Who a worker says it is."""

from __future__ import annotations

import os

import pytest

from argus_sched.scheduling.identity import Worker, container_id

ID = "3f4e" * 16


@pytest.mark.parametrize(
    ("mountinfo", "expected"),
    [
        (f"612 600 254:1 /var/lib/docker/containers/{ID}/hostname /etc/hostname rw - ext4 /dev/vda1 rw", ID),
        (f"700 1 0:30 /system.slice/docker-{ID}.scope /sys/fs/cgroup ro - cgroup2 cgroup rw", ID),
        (f"700 1 0:30 /machine.slice/libpod-{ID}.scope /sys/fs/cgroup ro - cgroup2 cgroup rw", ID),
        ("22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw", None),
        (f"22 1 254:1 /home/{ID} / rw - ext4 /dev/vda1 rw", None),
        ("", None),
    ],
)
def test_a_container_is_known_by_its_mounts(mountinfo: str, expected: str | None) -> None:
    assert container_id(mountinfo) == expected


def test_each_worker_has_an_instance_of_its_own() -> None:
    one, other = Worker("labs"), Worker("labs")
    assert one.instance != other.instance
    assert one.pid == os.getpid()
