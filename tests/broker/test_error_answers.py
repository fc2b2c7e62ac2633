"""Requests that are answered with an error instead of being carried out, in every API."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from groupstorm.broker.apis import APIS
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import join, metadata, versions
from tests.broker.asking_all import ASKING
from tests.broker.driver import PEER, Driver
from tests.soaking import one_in

ERROR = Error.REQUEST_TIMED_OUT


def describe_topic(driver: Driver, version: int) -> Any:
    topic = {"name": "orders"}
    return driver.ask(wire.DESCRIBE_TOPIC_PARTITIONS, version, topics=(topic,), response_partition_limit=2)


#: Where the usual request names nothing that could have an error, or is of one version only: another one.
ASKED = ASKING | {
    wire.JOIN_GROUP: join,
    wire.METADATA: lambda driver, version: metadata(driver, version, "orders"),
    wire.DESCRIBE_TOPIC_PARTITIONS: describe_topic,
}


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


class Refusing(Driver):
    """After `begin`, refuses every request first and notes the errors of the response."""

    def __init__(self) -> None:
        super().__init__(topics={"orders": 3})
        self.refused: list[Any] = []

    def send(self, api_key: int, version: int, **values: Any) -> int:
        self._probe(api_key, version, values)
        return super().send(api_key, version, **values)

    def _probe(self, api_key: int, version: int, values: dict[str, Any]) -> None:
        """Refuse the same request first: this must not affect the request that is carried out."""
        connection = -1 - len(self.refused)
        frame = wire.request(api_key, version, connection & 0x7FFF_FFFF, **values)
        effects = self.broker.refuse(connection, PEER, frame, ERROR, self.now_ms)
        assert effects.events == []
        (answer,) = effects.outputs
        assert answer.close is None
        assert answer.payload is not None
        _, message = wire.parse_response(api_key, version, answer.payload[4:])
        self.refused.append((api_key, version, message))


@pytest.mark.parametrize("api_key", one_in(3, sorted(APIS)), ids=lambda key: APIS[key].name)
def test_every_version_says_the_error_and_nothing_else_happens(api_key: int) -> None:
    driver = Refusing()
    for version in versions(api_key):
        ASKED[api_key](driver, version)
        mine = [message for *which, message in driver.refused if which == [api_key, version]]
        assert mine, "the request that this is about was sent"
        for message in mine:
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
