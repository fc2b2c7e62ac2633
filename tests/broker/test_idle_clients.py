"""Requests that idle clients repeat: decoded once, and answered with the same bytes while nothing changes."""

from __future__ import annotations

import pytest

from groupstorm.broker.apis import APIS
from groupstorm.broker.requests import Decoder
from groupstorm.protocol.codec import CodecError
from tests.broker import wire
from tests.broker.asking import fetch, fetch_fields, produce
from tests.broker.driver import Driver
from tests.broker.transactional import TransactionalProducer


@pytest.mark.parametrize("api_key", [wire.HEARTBEAT, wire.LEAVE_GROUP])
def test_every_request_keeps_its_own_correlation_id(api_key: int) -> None:
    requests = Decoder()
    frames = [wire.request(api_key, 2, number, group_id="g", member_id="m") for number in (7, -1, 7)]
    decoded = [requests.decode(APIS[api_key], 2, frame) for frame in frames]
    assert [one.correlation_id for one in decoded] == [7, -1, 7]
    assert {(one.client_id, one.message.group_id) for one in decoded} == {("raw", "g")}


def test_another_client_id_is_another_request() -> None:
    requests = Decoder()
    for client_id in ("one", "two"):
        frame = wire.request(wire.HEARTBEAT, 2, 1, client_id, group_id="g", member_id="m")
        assert requests.decode(APIS[wire.HEARTBEAT], 2, frame).client_id == client_id


def test_a_damaged_request_is_refused_each_time() -> None:
    requests = Decoder()
    frame = wire.request(wire.HEARTBEAT, 2, 1, group_id="g", member_id="m")[:-1]
    for _ in range(2):
        with pytest.raises(CodecError):
            requests.decode(APIS[wire.HEARTBEAT], 2, frame)


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_an_empty_answer_has_the_present_offsets(driver: Driver, isolation_level: int) -> None:
    def ends(offset: int) -> tuple[int, int, object]:
        found = fetch(driver, 12, offset, isolation_level=isolation_level)
        assert found.records == b""
        return found.high_watermark, found.last_stable_offset, found.aborted_transactions

    none = () if isolation_level else None
    assert ends(0) == ends(0) == (0, 0, none)
    produce(driver, 8)
    assert ends(1) == ends(1) == (1, 1, none)
    producer = TransactionalProducer(driver, "t")
    producer.add()
    identity = {"producer_id": producer.producer_id, "epoch": producer.epoch, "sequence": 0}
    produce(driver, 9, records=wire.batch([b"v"], attributes=0x10, **identity), transactional_id="t")
    assert ends(2) == ends(2) == (2, 1, none)


def test_an_empty_answer_is_that_of_the_partitions_that_were_asked_for(driver: Driver) -> None:
    for version in (4, 11):
        fields = fetch_fields(driver, 0, max_wait_ms=500)
        waiting = [driver.send(wire.FETCH, version, **fields) for _ in range(2)]
        driver.advance(500)
        for one in waiting:
            (topic,) = driver.answers[one].responses
            assert (topic.topic, topic.partitions[0].partition_index) == ("orders", 0)
