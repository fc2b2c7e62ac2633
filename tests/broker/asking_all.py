"""Requests of every API: those that Kafka has answered (`authorization/`), and some that need what these
have begun."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import CodecError, request_type
from tests.broker import wire
from tests.broker.asking import acl, acl_filter, versions
from tests.broker.authorization.__main__ import RECORDED
from tests.broker.authorization.brokers import AUTHORIZER, Emulator, prepare
from tests.broker.authorization.playing import ADMIN, Probe
from tests.broker.driver import Driver
from tests.broker.streams_members import streams_join
from tests.broker.transactional import TransactionalProducer

ACL, ANY_ACL = acl(), acl_filter()
CREDENTIAL: dict[str, Any] = {
    "name": "alice",
    "mechanism": 1,
    "iterations": 4096,
    "salt": b"salt",
    "salted_password": b"p" * 32,
}
_FEATURE = {"feature": "group.version", "max_version_level": 1, "upgrade_type": 1}
_OFFSETS = ({"name": "orders", "partitions": ({"partition_index": 0},)},)

_OF_MEMBER = {"group_id": "sharing", "member_id": "member"}
_ACCEPTED = {"first_offset": 0, "last_offset": 0, "acknowledge_types": (1,)}
_ACKNOWLEDGED = (
    {
        "topic_id": "orders",
        "partitions": ({"partition_index": 0, "acknowledgement_batches": (_ACCEPTED,)},),
    },
)

#: Behind the recorded ones: the group that these have joined is there.
MORE = tuple(
    Probe("", api_key, versions(api_key), fields)
    for api_key, fields in (
        (wire.API_VERSIONS, {"client_software_name": "a", "client_software_version": "1"}),
        (wire.SASL_HANDSHAKE, {"mechanism": "PLAIN"}),
        (wire.SASL_AUTHENTICATE, {"auth_bytes": b""}),
        (wire.DESCRIBE_GROUPS, {"groups": ("joined",)}),
        (wire.OFFSET_DELETE, {"group_id": "g", "topics": _OFFSETS}),
        (wire.UPDATE_FEATURES, {"feature_updates": (_FEATURE,)}),
        (wire.DESCRIBE_PRODUCERS, {"topics": ({"name": "orders", "partition_indexes": (0,)},)}),
        (wire.DESCRIBE_TRANSACTIONS, {"transactional_ids": ("open",)}),
        (wire.LIST_TRANSACTIONS, {"duration_filter": -1, "transactional_id_pattern": None}),
        (wire.DESCRIBE_TOPIC_PARTITIONS, {"response_partition_limit": 1, "cursor": None}),
        (wire.SHARE_ACKNOWLEDGE, {**_OF_MEMBER, "share_session_epoch": 1, "topics": _ACKNOWLEDGED}),
        (wire.STREAMS_GROUP_HEARTBEAT, streams_join("streams", "orders")),
        (wire.STREAMS_GROUP_DESCRIBE, {"group_ids": ("streams",)}),
    )
)


def all_requests() -> Iterator[Probe]:
    return chain(*RECORDED.values(), MORE)


def ask_everything() -> None:
    """Ask one broker everything as its administrator, in every version that can say it."""
    emulator = Emulator(AUTHORIZER | {"super.users": f"User:{ADMIN};User:ANONYMOUS"})
    driver = Driver()
    driver.broker = emulator.broker
    for transactional_id, probes in (("first", chain(*RECORDED.values())), ("open", MORE)):
        prepare(emulator, emulator.topic_ids)  # the recorded ones delete topics
        producer = TransactionalProducer(driver, transactional_id)
        assert (producer.add(), producer.produce()) == (Error.NONE, Error.NONE)
        for probe in probes:
            for version in versions(probe.api_key):
                body = wire.message(request_type(probe.api_key, version), probe.fields, emulator.topic_ids())
                with suppress(CodecError):
                    emulator.ask(ADMIN, probe.api_key, version, body)
                emulator.settle()
