"""For any bytes, the broker answers or closes the connection, and goes on."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.broker.apis import APIS
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import request_type
from groupstorm.protocol.codec.schemas import field_names
from tests.broker import wire
from tests.broker.driver import PEER, Driver
from tests.broker.random_messages import random_message
from tests.protocol.test_codec import mutate

MUTATIONS = 15


@pytest.mark.slow
def test_mutated_requests_of_every_version(driver: Driver) -> None:
    draw = random.Random(8)
    outcomes = {"answered": 0, "closed": 0}
    for api in APIS.values():
        for version in range(api.min_version, api.max_version + 1):
            message = random_message(request_type(api.key, version), draw)
            fields = {name: getattr(message, name) for name in field_names(message.__class__)}
            frame = wire.request(api.key, version, 1, **fields)
            for _ in range(MUTATIONS):
                effects = driver.broker.receive(1, PEER, mutate(frame, draw), driver.now_ms)
                for answer in effects.outputs:
                    outcomes["closed" if answer.close else "answered"] += 1
                driver.broker.forget(1, driver.now_ms)
    assert min(outcomes.values()) > 100, outcomes
    assert driver.ask(wire.API_VERSIONS, 0).error_code == Error.NONE


@given(st.binary(max_size=200))
def test_random_bytes(frame: bytes) -> None:
    driver = Driver()
    effects = driver.broker.receive(1, PEER, frame, driver.now_ms)
    assert len(effects.outputs) <= 1
    assert driver.ask(wire.API_VERSIONS, 0).error_code == Error.NONE
