"""testcontainers' KafkaContainer, for images with either of the two common contracts.

The import needs testcontainers, which is optional: so it is a module of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from docker.errors import ImageNotFound
from testcontainers.community.kafka import KafkaContainer
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import Reaper
from testcontainers.core.docker_client import get_docker_host

from groupstorm.clients.brokers.jars import HEAP, START_TIMEOUT_S

LOOPBACK = "127.0.0.1"

#: apache/kafka has one script that configures, formats and runs; Confluent's images have three, which
#: KafkaContainer calls itself.
_AS_APACHE = """
if [ -x /etc/kafka/docker/run ]; then
    export KAFKA_ADVERTISED_LISTENERS={listeners}
    exec /etc/kafka/docker/run
fi
"""

_changing_ryuk = threading.Lock()


def variable(option: str) -> str:
    """The environment variable of Kafka's ``option`` in its images."""
    escaped = option.replace("_", "__").replace("-", "___").replace(".", "_")
    return f"KAFKA_{escaped.upper()}"


class SingleNode(KafkaContainer):  # type: ignore[misc]  # testcontainers counts as untyped
    """One node in KRaft mode with Kafka's ``options`` over KafkaContainer's own.

    The port is published on the loopback interface, unless the user's testcontainers settings or DOCKER_HOST
    say that the engine is elsewhere. Raises docker.errors.DockerException if no engine answers.
    """

    boot_command: str

    def __init__(self, image: str, options: Mapping[str, str]) -> None:
        super().__init__(image)
        self._options = dict(options)
        self._is_here = engine_is_here()
        if self._is_here:
            self.ports = {str(self.port): (LOOPBACK,)}
            self.with_kwargs(network="bridge")
        self.with_env("KAFKA_HEAP_OPTS", HEAP)
        self.with_kraft()

    def _verify_min_kraft_version(self) -> None:
        """Tags are not Confluent's versions; every image that the contract names runs without ZooKeeper."""

    def configure(self) -> None:
        super().configure()
        for option, value in self._options.items():
            self.with_env(variable(option), value)

    def fetch(self) -> None:
        """Fetch the image if the engine does not have it. Raises docker.errors.DockerException."""
        images = self.get_docker_client().client.images
        if not _has(images, self.image):
            images.pull(self.image)

    def run(self) -> None:
        """Start the node and wait until it answers. Raises DockerException, RuntimeError and OSError."""
        with _ryuk_where_it_is_here(self.get_docker_client().client.images):
            self.start(timeout=START_TIMEOUT_S)

    def tc_start(self) -> None:
        listeners = f"{self.listener_name}://{self.get_bootstrap_server()},BROKER://localhost:9092"
        self.boot_command = _AS_APACHE.format(listeners=listeners) + self.boot_command
        super().tc_start()

    def get_container_host_ip(self) -> str:
        return LOOPBACK if self._is_here else str(super().get_container_host_ip())

    def _get_exposed_port(self, port: int) -> int:
        if self._is_here:
            return int(self.get_docker_client().port(self.get_container_id(), port))
        return int(super()._get_exposed_port(port))


def engine_is_here() -> bool:
    """Whether published ports appear on this machine's own loopback interface.

    If /.dockerenv exists, testcontainers looks elsewhere. Users who want that set testcontainers' own
    settings, which win.
    """
    chosen = testcontainers_config.tc_host_override or testcontainers_config.connection_mode_override
    address = get_docker_host()
    return chosen is None and (address is None or urlsplit(address).scheme in ("unix", "npipe"))


@contextmanager
def _ryuk_where_it_is_here(images: Any) -> Iterator[None]:
    """Run Ryuk, which removes containers of killed processes, only if its image is on the engine."""
    with _changing_ryuk:
        before = testcontainers_config.ryuk_disabled
        testcontainers_config.ryuk_disabled = before or not _ryuk_is_here(images)
        try:
            yield
        finally:
            testcontainers_config.ryuk_disabled = before


def _ryuk_is_here(images: Any) -> bool:
    return Reaper._instance is not None or _has(images, testcontainers_config.ryuk_image)


def _has(images: Any, name: str) -> bool:
    try:
        images.get(name)
    except ImageNotFound:
        return False
    return True
