"""Whatever bytes come, the broker answers or closes the connection, and goes on."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.apis import APIS
from groupstorm.coordinator.server.codec import request_type
from groupstorm.coordinator.server.codec.schemas import field_names
from tests.server import wire
from tests.server.desk import PEER, Desk
from tests.server.random_messages import random_message
from tests.server.test_codec import mutate

MUTATIONS = 15


def test_mutated_requests_of_every_version(desk: Desk) -> None:
    draw = random.Random(8)
    outcomes = {"answered": 0, "closed": 0}
    for api in APIS.values():
        for version in range(api.min_version, api.max_version + 1):
            message = random_message(request_type(api.key, version), draw)
            fields = {name: getattr(message, name) for name in field_names(message.__class__)}
            frame = wire.request(api.key, version, 1, **fields)
            for _ in range(MUTATIONS):
                step = desk.broker.receive(1, PEER, mutate(frame, draw), desk.now_ms)
                for answer in step.answers:
                    outcomes["closed" if answer.close else "answered"] += 1
                desk.broker.forget(1)
    assert min(outcomes.values()) > 100, outcomes
    assert desk.ask(wire.API_VERSIONS, 0).error_code == Error.NONE


@given(st.binary(max_size=200))
def test_random_bytes(frame: bytes) -> None:
    desk = Desk()
    step = desk.broker.receive(1, PEER, frame, desk.now_ms)
    assert len(step.answers) <= 1
    assert desk.ask(wire.API_VERSIONS, 0).error_code == Error.NONE
