"""Real brokers that the tests of a run share. Here emulated ones are played for those of a JVM."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

import groupstorm
from groupstorm.clients.brokers import BrokerKind
from groupstorm.clients.brokers.contract import BrokerUnavailable, RunningBroker, read_addresses
from groupstorm.testing import real
from groupstorm.testing.chosen import chosen_broker
from groupstorm.testing.real import BROKERS_MAX, SharedBrokers

JVM = BrokerKind("jvm")


class Played:
    """Notes which brokers are started and ended."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.missing = False

    @asynccontextmanager
    async def open(
        self, kind: BrokerKind, settings: Mapping[str, str], _on_events: object
    ) -> AsyncIterator[RunningBroker]:
        name = f"{kind.name} {dict(settings)}"
        self.log.append(f"start {name}")
        if self.missing:
            raise BrokerUnavailable("no Java")
        async with groupstorm.broker() as broker:
            yield RunningBroker("Kafka", read_addresses(broker.bootstrap_servers))
        self.log.append(f"end {name}")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    found = Played()
    monkeypatch.setattr(real, "open_broker", found.open)
    return found


def test_tests_with_the_same_settings_share_a_broker_and_see_nothing_of_each_other(played: Played) -> None:
    shared = SharedBrokers()
    try:
        with (
            chosen_broker("jvm", {"topics": {"orders": 2}}, shared=shared) as one,
            chosen_broker("jvm", {"topics": {"orders": 3}}, shared=shared) as other,
        ):
            assert one.bootstrap_servers == other.bootstrap_servers
            one.produce("orders", "a")
            assert (len(one.records("orders")), other.records("orders")) == (1, ())
            assert one.group("g").id != other.group("g").id
            with pytest.raises(ValueError, match="no such topic"):
                one.records(other.topic("orders"))
        assert played.log == ["start jvm {}"]
    finally:
        shared.stop()
    assert played.log == ["start jvm {}", "end jvm {}"]


def test_few_brokers_run_at_once_and_the_one_that_was_used_last_stays(played: Played) -> None:
    shared = SharedBrokers()
    settings = [{"num.partitions": str(number)} for number in range(1, BROKERS_MAX + 2)]
    for one in (*settings[:BROKERS_MAX], settings[0], settings[-1], settings[0]):
        shared.get(JVM, one)
    shared.stop()
    first, second, third = (f"jvm {one}" for one in settings)
    started = [f"start {first}", f"start {second}", f"start {third}", f"end {second}"]
    assert played.log == [*started, f"end {third}", f"end {first}"]


def test_a_broker_that_cannot_start_is_tried_once(played: Played) -> None:
    shared = SharedBrokers()
    played.missing = True
    for _ in range(2):
        with pytest.raises(BrokerUnavailable, match="no Java"):
            shared.get(JVM, {})
    shared.stop()
    assert played.log == ["start jvm {}"]


def test_a_run_without_real_brokers_has_nothing_to_end() -> None:
    SharedBrokers().stop()
