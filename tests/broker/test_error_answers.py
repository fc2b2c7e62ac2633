"""Requests that are answered with an error instead of being carried out, in every API."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from groupstorm.broker.apis import APIS
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import versions
from tests.broker.asking_all import all_requests
from tests.broker.driver import PEER, Driver
from tests.soaking import one_in

ERROR = Error.REQUEST_TIMED_OUT


#: The first request of each API.
ASKED = {probe.api_key: probe.fields for probe in reversed([*all_requests()])}

#: Before, the answer has an error for each folder alone, and names none.
FIRST_OF_LOG_DIRS_WITH_ERROR = 3


def errors_in(message: Any) -> list[int]:
    """Every error code of a response, at any depth."""
    if isinstance(message, tuple):
        return [code for item in message for code in errors_in(item)]
    if not dataclasses.is_dataclass(message):
        return []
    found = []
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        found += [int(value)] if field.name.endswith("error_code") else errors_in(value)
    return found


@pytest.mark.parametrize("api_key", one_in(3, sorted(APIS)), ids=lambda key: APIS[key].name)
def test_every_version_says_the_error_and_nothing_else_happens(api_key: int) -> None:
    driver = Driver(topics={"orders": 3})
    for version in versions(api_key):
        frame = wire.request(api_key, version, **ASKED[api_key])
        effects = driver.broker.refuse(1, PEER, frame, ERROR, driver.now_ms)
        assert (effects.events, effects.changes) == ([], [])
        (answer,) = effects.outputs
        assert answer.close is None
        assert answer.payload is not None
        _, message = wire.parse_response(api_key, version, answer.payload[4:])
        errors = {code for code in errors_in(message) if code != Error.NONE}
        has_place = api_key != wire.DESCRIBE_LOG_DIRS or version >= FIRST_OF_LOG_DIRS_WITH_ERROR
        assert errors == ({ERROR} if has_place else set()), (version, message)


def test_a_producer_that_wants_no_answer_gets_none() -> None:
    driver = Driver(topics={"orders": 1})
    frame = wire.request(wire.PRODUCE, 9, acks=0, transactional_id=None, timeout=wire.milliseconds(1))
    (answer,) = driver.broker.refuse(1, PEER, frame, ERROR, 1000).outputs
    assert (answer.payload, answer.close) == (None, None)


def test_an_unknown_version_closes_the_connection_as_ever() -> None:
    driver = Driver()
    frame = wire.request(wire.HEARTBEAT, 0)
    bad = frame[:2] + b"\x00\x63" + frame[4:]
    (answer,) = driver.broker.refuse(1, PEER, bad, ERROR, 1000).outputs
    assert answer.close is not None
