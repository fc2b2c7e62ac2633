"""Brokers to run members on: the emulator, Kafka in a JVM or a container, or an address from the user."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.shell import Server
from groupstorm.clients.brokers.container import PUBLIC_IMAGE, container
from groupstorm.clients.brokers.contract import (
    BrokerContext,
    OnCoordinatorEvents,
    RunningBroker,
    at_address,
    read_addresses,
)
from groupstorm.clients.brokers.jvm import jvm
from groupstorm.clients.wire.security import PLAINTEXT, ClientSecurity
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint

EMULATOR, JVM, CONTAINER = "emulator", "jvm", "container"

#: The values of `--on`.
KINDS = f"{EMULATOR}, {JVM}, {CONTAINER}[=IMAGE] or HOST:PORT"

#: The characters of an image's name: [REGISTRY[:PORT]/]NAME[:TAG][@DIGEST].
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:@-]*")


class BrokerKind(NamedTuple):
    """The kind of broker that the user asked for.

    ``bootstrap``: the address, if the user gave one. ``security``: what the broker there demands of clients.
    ``image``: the image of a container; None: see `container`.
    """

    name: str
    bootstrap: tuple[Endpoint, ...] = ()
    image: str | None = None
    security: ClientSecurity = PLAINTEXT


def read_kind(text: str) -> BrokerKind:
    """Read the value of ``--on``. Raises InputError."""
    if text in (EMULATOR, JVM, CONTAINER):
        return BrokerKind(text)
    if text.startswith(f"{CONTAINER}="):
        return BrokerKind(CONTAINER, image=_image(text))
    try:
        return BrokerKind(text, read_addresses(text))
    except InputError as problem:
        raise InputError(f"{text!r}: expected {KINDS}") from problem


def _image(text: str) -> str:
    image = text.partition("=")[2]
    if not _IMAGE.fullmatch(image):
        raise InputError(f"{text!r}: expected {CONTAINER}=IMAGE, such as {CONTAINER}={PUBLIC_IMAGE}")
    return image


@asynccontextmanager
async def emulated(
    options: Mapping[str, str], on_events: OnCoordinatorEvents
) -> AsyncIterator[RunningBroker]:
    """The emulator in this process and on this event loop, on a free port of the loopback interface.

    ``options``: Kafka's, as of `groupstorm serve`.
    """
    start_ms = time.time_ns() // 1_000_000
    broker = make_broker(options, {}, now_ms=start_ms)
    server = Server(broker, lambda _, events: on_events(events), lambda *_: None, start_ms=start_ms)
    endpoint = await server.start("127.0.0.1", 0)
    try:
        yield RunningBroker("emulator", (endpoint,), emits_events=True)
    finally:
        await server.stop()


def open_broker(
    kind: BrokerKind, options: Mapping[str, str], on_events: OnCoordinatorEvents
) -> BrokerContext:
    """A broker of that kind with Kafka's ``options``; a broker at an address keeps its own options."""
    if kind.bootstrap:
        return at_address(kind.bootstrap, kind.security)
    if kind.name == CONTAINER:
        return container(options, kind.image)
    return emulated(options, on_events) if kind.name == EMULATOR else jvm(options)
