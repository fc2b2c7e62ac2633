"""Brokers to run members on: the emulator, Kafka in a JVM or a container, or an address from the user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from groupstorm.clients.brokers.container import PUBLIC_IMAGE, container
from groupstorm.clients.brokers.contract import BrokerContext, OnCoordinatorEvents, at_address, read_addresses
from groupstorm.clients.brokers.emulated import emulated
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


def open_broker(
    kind: BrokerKind, options: Mapping[str, str], on_events: OnCoordinatorEvents
) -> BrokerContext:
    """A broker of that kind with Kafka's ``options``; a broker at an address keeps its own options."""
    if kind.bootstrap:
        return at_address(kind.bootstrap, kind.security)
    if kind.name == CONTAINER:
        return container(options, kind.image)
    return emulated(options, on_events) if kind.name == EMULATOR else jvm(options)
