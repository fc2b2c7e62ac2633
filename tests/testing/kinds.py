"""The kinds of brokers that tests of the testing interface run on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import pytest

import groupstorm
from groupstorm.clients.brokers import read_kind
from groupstorm.clients.brokers.jvm import jvm
from groupstorm.testing import Broker
from groupstorm.testing.real import RealBroker
from tests.clients.share.members import SETTINGS, Members
from tests.needs import needed

#: `address`: the code that looks at real brokers, on an emulated one.
EMULATED = ["emulator", "address"]
KINDS = [*EMULATED, pytest.param("jvm", marks=pytest.mark.slow)]
#: The release of Kafka that share groups are compared with.
KAFKA = "4.4.0"


@contextmanager
def opened(
    kind: str, topics: Mapping[str, int], settings: Mapping[str, str | int], *, faults: bool = False
) -> Iterator[Broker]:
    """A broker of one of the `KINDS`; ``faults``: one that is no emulator has a proxy in front of it."""
    if kind == "emulator":
        with groupstorm.broker(topics, settings) as emulated:
            yield emulated
    elif kind == "address":
        with (
            groupstorm.broker({}, settings) as emulated,
            RealBroker(
                read_kind(emulated.bootstrap_servers), topics, allow_writes=True, faults=faults
            ) as reached,
        ):
            yield reached
    else:
        with needed(), RealBroker(read_kind(kind), topics, settings, faults=faults) as real:
            yield real


@asynccontextmanager
async def sharing(kind: str, topics: Mapping[str, int], **options: str) -> AsyncIterator[Members]:
    """The members of a share group with these options, on a broker of one of the `KINDS`."""
    pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")
    if kind == "jvm":
        with needed():
            async with (
                jvm(SETTINGS, KAFKA) as kafka,
                RealBroker(read_kind(kafka.address), topics, allow_writes=True) as reached,
                _members(reached, options) as made,
            ):
                yield made
        return
    with opened(kind, topics, {**SETTINGS, "groupstorm.compatibility": KAFKA}) as broker:
        async with _members(broker, options) as made:
            yield made


@asynccontextmanager
async def _members(broker: Broker, options: Mapping[str, str]) -> AsyncIterator[Members]:
    made = Members(broker)
    made.configure(**options)
    try:
        yield made
    finally:
        await made.close()
