"""The Docker daemon of the integration tests."""

from tests.integration.docker_host import docker_host

__all__ = ["docker_host"]
