"""Kafka in a container, under testcontainers: one node, removed when the context ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from groupstorm.clients.brokers.contract import BrokerUnavailable, RunningBroker
from groupstorm.clients.brokers.jars import INTERNAL_TOPICS, KAFKA_VERSION
from groupstorm.protocol.endpoints import Endpoint

if TYPE_CHECKING:
    from groupstorm.clients.brokers.kafkacontainer import SingleNode

#: The environment variable that names the image if `--on container` does not.
IMAGE_VARIABLE = "GROUPSTORM_KAFKA_IMAGE"

#: The image that `./dev images` builds, and the one of a public registry.
LOCAL_IMAGE = f"groupstorm/kafka:{KAFKA_VERSION}"
PUBLIC_IMAGE = f"apache/kafka:{KAFKA_VERSION}"

#: The words by which a line of Kafka's log is recognised as a cause of failure.
_BAD = ("Exception", " ERROR ", " FATAL ")


@asynccontextmanager
async def container(options: Mapping[str, str], image: str | None = None) -> AsyncIterator[RunningBroker]:
    """Start a broker with Kafka's ``options`` from an ``image`` like apache/kafka or Confluent's.

    Raises BrokerUnavailable without testcontainers, an engine or the image, and if the broker does not start.
    """
    node = await asyncio.to_thread(_prepare, {**INTERNAL_TOPICS, **options}, image)
    starting = asyncio.ensure_future(asyncio.to_thread(_start, node))
    try:
        host, port = await asyncio.shield(starting)
        yield RunningBroker(node.image, (Endpoint(host, port),))
    finally:
        await asyncio.to_thread(_remove, node)  # also ends a node that is still starting
        await asyncio.gather(starting, return_exceptions=True)  # its exception has been raised above
        await asyncio.to_thread(_remove, node)  # the engine may have created the node since


def _prepare(options: Mapping[str, str], image: str | None) -> SingleNode:
    try:
        from docker.errors import DockerException

        from groupstorm.clients.brokers.kafkacontainer import SingleNode
    except ImportError as missing:
        raise BrokerUnavailable(
            f"{missing.name} is not installed: pip install 'groupstorm[kafka]'"
        ) from missing
    try:
        return SingleNode(chosen_image(image), options)
    except DockerException as problem:
        raise BrokerUnavailable(
            "no container engine answers: start one (Debian: apt install docker.io; dockerd), or set"
            f" DOCKER_HOST to where it is ({_first_line(problem)})"
        ) from problem


def chosen_image(named: str | None) -> str:
    """The image that `--on` or the environment names, or else the first one that is on the engine."""
    if given := named or os.environ.get(IMAGE_VARIABLE):
        return given
    from docker.errors import ImageNotFound
    from testcontainers.core.docker_client import DockerClient

    client = DockerClient().client  # DockerClient follows docker's contexts too
    try:
        client.images.get(LOCAL_IMAGE)
    except ImageNotFound:
        return PUBLIC_IMAGE
    finally:
        client.close()
    return LOCAL_IMAGE


def _start(node: SingleNode) -> tuple[str, int]:
    from docker.errors import DockerException

    try:
        node.fetch()
    except (DockerException, OSError) as problem:
        raise BrokerUnavailable(
            f"image {node.image} is not here, and the engine cannot fetch it: `./dev images` builds"
            f" {LOCAL_IMAGE}, {IMAGE_VARIABLE} names another one"
        ) from problem
    try:
        node.run()
        host, port = node.get_bootstrap_server().rsplit(":", 1)
    except (DockerException, OSError, RuntimeError) as problem:  # TimeoutError is an OSError
        raise BrokerUnavailable(f"image {node.image} does not start: {_why(node, problem)}") from problem
    return host, int(port)


def _why(node: SingleNode, problem: Exception) -> str:
    """The cause in the broker's log, or else the engine's error."""
    from docker.errors import DockerException

    try:
        log = b"".join(node.get_logs()).decode(errors="replace").splitlines()
    except (DockerException, RuntimeError):
        return _first_line(problem)
    worst = (line for line in log if any(word in line for word in _BAD))
    return next(worst, log[-1] if log else _first_line(problem)).strip()


def _first_line(problem: Exception) -> str:
    return next(iter(str(problem).splitlines()), type(problem).__name__)


def _remove(node: SingleNode) -> None:
    from docker.errors import NotFound

    with suppress(NotFound):
        node.stop()
