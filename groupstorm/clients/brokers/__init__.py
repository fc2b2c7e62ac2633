"""Where a broker comes from: the emulator, Kafka in a JVM, an address that the user gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from groupstorm.clients.brokers.address import at_address, read_addresses
from groupstorm.clients.brokers.contract import BrokerContext, OnCoordinatorEvents
from groupstorm.clients.brokers.emulated import emulated
from groupstorm.clients.brokers.jvm import jvm
from groupstorm.coordinator.server.config import Endpoint
from groupstorm.problems import InputError

EMULATOR, JVM = "emulator", "jvm"

#: What `--on` takes.
KINDS = f"{EMULATOR}, {JVM} or HOST:PORT"


class BrokerKind(NamedTuple):
    """A kind of broker that was asked for; ``bootstrap`` where it is an address."""

    name: str
    bootstrap: tuple[Endpoint, ...] = ()


def read_kind(text: str) -> BrokerKind:
    """What ``--on`` says. Raises InputError."""
    if text in (EMULATOR, JVM):
        return BrokerKind(text)
    try:
        return BrokerKind(text, read_addresses(text))
    except InputError as problem:
        raise InputError(f"{text!r}: expected {KINDS}") from problem


def open_broker(
    kind: BrokerKind, options: Mapping[str, str], on_events: OnCoordinatorEvents
) -> BrokerContext:
    """A broker of that kind with Kafka's ``options``; one at an address keeps those it has."""
    if kind.bootstrap:
        return at_address(kind.bootstrap)
    return emulated(options, on_events) if kind.name == EMULATOR else jvm(options)
