"""A container engine that runs already, and this project's images on it: what is not there is skipped."""

from __future__ import annotations

from typing import Any

import pytest

import groupstorm
from groupstorm.clients.brokers.container import LOCAL_IMAGE
from tests.processes import run_process

KAFKA = LOCAL_IMAGE
EMULATOR = f"groupstorm/emulator:{groupstorm.__version__}"
COMMAND = f"groupstorm/groupstorm:{groupstorm.__version__}"
SPARK = f"groupstorm/spark:{groupstorm.__version__}"

#: The same images under tags that KafkaContainer takes for a version of Confluent's.
AS_CONFLUENT = {KAFKA: "groupstorm/kafka:8.3.0", EMULATOR: "groupstorm/emulator:8.3.0"}


def engine() -> Any:
    """docker's client. Skips where no engine answers."""
    docker = pytest.importorskip("docker", reason="no testcontainers: pip install 'groupstorm[kafka]'")
    try:
        return docker.from_env()
    except docker.errors.DockerException:
        pytest.skip("no container engine answers: start dockerd (Debian: apt install docker.io)")


def need_images(*names: str) -> Any:
    """docker's client, with these images. Skips where one has not been built."""
    client = engine()
    from docker.errors import ImageNotFound

    for name in names:
        try:
            client.images.get(name)
        except ImageNotFound:
            pytest.skip(f"no image {name} here: ./dev images")
    return client


def need_compose() -> None:
    try:
        answer = run_process(["docker", "compose", "version"], capture_output=True, check=False)
    except OSError:
        pytest.skip("no docker command: apt install docker.io")
    if answer.returncode:
        pytest.skip("no docker compose v2: install its plugin (Debian 13: apt install docker-compose)")
