"""Requests of administrators: SCRAM credentials, quotas, settings of brokers; right and wrong requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.broker import wire
from tests.broker.authorization.playing import ADMIN, USER, Probe

_KEY = b"p" * 32
_RATE = "producer_byte_rate"
_SET, _DELETE, _APPEND = 0, 1, 2
_BROKER, _TOPIC = 4, 2
_NOTHING: tuple[str, ...] = ()


def _scram(deletions: Sequence[tuple[str, int]], upsertions: Sequence[tuple[str, int, int, bytes]]) -> Any:
    return {
        "deletions": [{"name": name, "mechanism": mechanism} for name, mechanism in deletions],
        "upsertions": [
            {
                "name": name,
                "mechanism": mechanism,
                "iterations": count,
                "salt": b"salt",
                "salted_password": key,
            }
            for name, mechanism, count, key in upsertions
        ],
    }


def _alter_scram(about: str, deletions: Any = (), upsertions: Any = ()) -> Probe:
    return Probe(f"SCRAM: {about}", wire.ALTER_SCRAM, (0,), _scram(deletions, upsertions), user=ADMIN)


def _describe_scram(about: str, users: Sequence[str] | None) -> Probe:
    asked = None if users is None else [{"name": name} for name in users]
    return Probe(f"SCRAM: {about}", wire.DESCRIBE_SCRAM, (0,), {"users": asked}, user=ADMIN)


_SCRAM = [
    _alter_scram("set two", (), [("u1", 1, 4096, _KEY), ("u2", 2, 8192, _KEY)]),
    _alter_scram("delete what is not there", [("u1", 2), ("none", 1), ("", 1), ("u2", 0), ("u2", 3)]),
    _alter_scram("set bad ones", (),
                 [("a", 1, 4095, _KEY), ("b", 1, 16_385, _KEY), ("c", 1, 16_384, _KEY), ("", 1, 4096, _KEY),
                  ("d", 9, 4096, _KEY), ("e", 1, 4096, b"")]),
    _alter_scram("twice the same", (), [("f", 1, 4096, _KEY), ("f", 1, 4096, _KEY)]),
    _alter_scram("two mechanisms of one user", (), [("g", 1, 4096, _KEY), ("g", 2, 4096, _KEY)]),
    _alter_scram("delete and set what is not there", [("g", 1)], [("g", 1, 5000, _KEY)]),
    _alter_scram("delete and set what is there", [("u1", 1)], [("u1", 1, 5000, _KEY)]),
    _alter_scram("nothing"),
    _describe_scram("describe all", None),
    _describe_scram("describe nobody", ()),
    _describe_scram("describe some", ("u1", "none", "")),
    _describe_scram("describe one twice", ("u1", "u1")),
    _alter_scram("delete", [("u1", 1)]),
    _describe_scram("describe one that is gone", ("u1",)),
]  # fmt: skip


def _quota(about: str, *entries: tuple[Any, Any], validate_only: bool = False) -> Probe:
    asked = [
        {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
            "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops],
        }
        for entity, ops in entries
    ]
    fields = {"entries": asked, "validate_only": validate_only}
    return Probe(f"quotas: {about}", wire.ALTER_QUOTAS, (0, 1), fields, user=ADMIN)


def _find(about: str, *components: tuple[str, int, str | None], strict: bool = False) -> Probe:
    asked = [{"entity_type": kind, "match_type": match, "match": name} for kind, match, name in components]
    fields = {"components": asked, "strict": strict}
    return Probe(f"quotas: {about}", wire.DESCRIBE_QUOTAS, (0, 1), fields, user=ADMIN)


_CAROL = (("user", "carol"),)
_IP = (("ip", "127.0.0.1"),)
_QUOTAS = [
    _quota("of a user", (_CAROL, [(_RATE, 1000.0)])),
    _quota("of all other users", ((("user", None),), [(_RATE, 20_000_000.0)])),
    _quota(
        "of both", ((("user", "carol"), ("client-id", "c")), [(_RATE, 3000.0), ("consumer_byte_rate", 5.0)])
    ),
    _quota("of a client", ((("client-id", "c"),), [("request_percentage", 50.5)])),
    _quota("without effect", (_CAROL, [("request_percentage", 0.5), ("controller_mutation_rate", 1.5)])),
    _quota("of an address", (_IP, [("connection_creation_rate", 5.0)])),
    _quota("of nobody", ((), [(_RATE, 1.0)])),
    _quota("of an unknown type", ((("group", "a"),), [(_RATE, 1.0)])),
    _quota("of no type", ((("", "a"),), [(_RATE, 1.0)])),
    _quota("of an empty name", ((("user", ""),), [(_RATE, 1.0)])),
    _quota("of an address that is none", ((("ip", "no such host"),), [("connection_creation_rate", 5.0)])),
    _quota("of bytes of an address", (_IP, [(_RATE, 5.0)])),
    _quota("of connections of a user", (_CAROL, [("connection_creation_rate", 5.0)])),
    _quota("of address and user", ((*_IP, ("user", "a")), [("connection_creation_rate", 5.0)])),
    *(
        _quota(f"of {value}", (_CAROL, [(_RATE, value)]))
        for value in (-1.0, 1.5, 1e300, float("inf"), 2000.0000001)
    ),
    _quota("of an unknown key", (_CAROL, [("nope", 5.0)])),
    _quota("removed that is not there", ((("user", "dave"),), [(_RATE, None)])),
    _quota("removed of an unknown key", (_CAROL, [("nope", None)])),
    _quota("twice in one", (_CAROL, [(_RATE, 1.0), (_RATE, 2.0)])),
    _quota("twice", (_CAROL, [(_RATE, 1.0)]), (_CAROL, [(_RATE, 2.0)])),
    _quota("without changes", (_CAROL, [])),
    _quota("one good, one bad", (_CAROL, [(_RATE, 9.0)]), ((("user", "dave"),), [("nope", 1.0)])),
    _quota("checked only", (_CAROL, [(_RATE, 77.0)]), validate_only=True),
    _find("find all"),
    _find("find all strictly", strict=True),
    _find("find a user", ("user", 0, "carol")),
    _find("find a user strictly", ("user", 0, "carol"), strict=True),
    _find("find nobody", ("user", 0, "nobody")),
    _find("find the other users", ("user", 1, None)),
    _find("find users", ("user", 2, None)),
    _find("find users strictly", ("user", 2, None), strict=True),
    _find("find both", ("user", 2, None), ("client-id", 2, None)),
    _find("find addresses", ("ip", 2, None)),
    _find("find an unknown type", ("group", 2, None)),
    _find("find no type", ("", 2, None)),
    _find("find no name", ("user", 0, None)),
    _find("find others by name", ("user", 1, "x")),
    _find("find all by name", ("user", 2, "x")),
    _find("find by an unknown match", ("user", 9, None)),
    _find("find one type twice", ("user", 2, None), ("user", 2, None)),
    _find("find address and user", ("ip", 2, None), ("user", 2, None)),
    _quota(
        "removed", (_CAROL, [(_RATE, None), ("request_percentage", None), ("controller_mutation_rate", None)])
    ),
    _find("find what is left", ("user", 2, None)),
]


def _alter(
    about: str, *changes: tuple[str, int, str | None], kind: int = _BROKER, name: str = "1", **more: Any
) -> Probe:
    configs = [
        {"name": config, "config_operation": operation, "value": value}
        for config, operation, value in changes
    ]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    fields = {"resources": [resource], "validate_only": False, **more}
    return Probe(f"configurations: {about}", wire.INCREMENTAL_ALTER_CONFIGS, (0, 1), fields, user=ADMIN)


def _replace(about: str, *configs: tuple[str, str | None], kind: int = _TOPIC, name: str = "orders") -> Probe:
    changes = [{"name": config, "value": value} for config, value in configs]
    resource = {"resource_type": kind, "resource_name": name, "configs": changes}
    fields = {"resources": [resource], "validate_only": False}
    return Probe(f"configurations: {about}", wire.ALTER_CONFIGS, (0, 2), fields, user=ADMIN)


def _describe(about: str, *names: str, kind: int = _BROKER, name: str = "1") -> Probe:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": names}
    fields = {"resources": [resource], "include_synonyms": True}
    return Probe(f"configurations: {about}", wire.DESCRIBE_CONFIGS, (1, 4), fields, user=ADMIN)


_MOST = "message.max.bytes"
_CONFIGS = [
    _alter("one that cannot change", ("num.partitions", _SET, "3")),
    _alter("one that can and one that cannot", ("num.partitions", _SET, "3"), (_MOST, _SET, "1000")),
    _alter("no number", (_MOST, _SET, "x")),
    _alter("too small a number", (_MOST, _SET, "-1")),
    _alter("null", (_MOST, _SET, None)),
    _alter("twice", (_MOST, _SET, "1"), (_MOST, _SET, "2")),
    _alter("appended to a number", (_MOST, _APPEND, "1")),
    _alter("another broker", (_MOST, _SET, "1"), name="7"),
    _alter("no broker", (_MOST, _SET, "1"), name="x"),
    _alter("an unknown type", ("a", _SET, "1"), kind=99),
    _alter("a topic without a name", ("retention.ms", _SET, "1"), kind=_TOPIC, name=""),
    _alter("nothing"),
    _alter("checked only", (_MOST, _SET, "77"), validate_only=True),
    _describe("as they were", _MOST, "log.retention.bytes", "max.connections", "num.partitions"),
    _alter("of the broker", (_MOST, _SET, "2000000"), ("max.connections", _SET, "500")),
    _alter("of all brokers", (_MOST, _SET, "1500000"), ("log.retention.bytes", _SET, "5000000"), name=""),
    _describe("as they are", _MOST, "log.retention.bytes", "max.connections", "num.partitions"),
    _describe("of all brokers", _MOST, "log.retention.bytes", "max.connections", name=""),
    _describe("of a topic", "max.message.bytes", "retention.bytes", kind=_TOPIC, name="orders"),
    _alter("deleted", (_MOST, _DELETE, None), ("num.partitions", _DELETE, None), ("none", _DELETE, None)),
    _describe("after one was deleted", _MOST, "max.connections"),
    _replace("replaced of a topic", ("retention.ms", "5000"), ("max.message.bytes", "7000")),
    _replace("replaced again", ("retention.ms", "6000")),
    _describe("of a topic after that", "max.message.bytes", kind=_TOPIC, name="orders"),
    _replace("unknown of a topic", ("no.such", "1")),
    _replace("bad of a topic", ("retention.ms", "x")),
    _replace("null of a topic", ("retention.ms", None)),
    _replace("twice of a topic", ("retention.ms", "1"), ("retention.ms", "2")),
    _replace("of no topic", ("retention.ms", "1"), name="nowhere"),
    _replace("of an unknown type", ("a", "1"), kind=99),
    _replace("one of the broker that cannot change", ("num.partitions", "3"), kind=_BROKER, name="1"),
    _replace("of the broker", ("log.retention.ms", "3000000"), kind=_BROKER, name="1"),
    _describe("after all were replaced", _MOST, "max.connections", "log.retention.bytes"),
    _replace("none of the broker", kind=_BROKER, name="1"),
    _alter("deleted of all", (_MOST, _DELETE, None), ("log.retention.bytes", _DELETE, None), name=""),
]

_ALICE = (("user", USER),)
_ON_ORDERS = ["READ TOPIC orders", "WRITE TOPIC orders"]


def _batches(field: str, partitions: str, **inner: Any) -> Any:
    return [{field: "orders", "topic_id": "orders", partitions: [inner]}]


_RECORDS = wire.batch([b"v" * 1000])
_PRODUCE = {
    "acks": -1,
    "timeout": 1000,
    "topic_data": _batches("name", "partition_data", index=0, records=_RECORDS),
}
_LIMITS = {"fetch_offset": 0, "current_leader_epoch": -1, "partition_max_bytes": 10_000}
_FETCH = {
    "max_wait": 0,
    "min_bytes": 1,
    "max_bytes": 10_000,
    "topics": _batches("topic", "partitions", partition=0, **_LIMITS),
}
#: The first answer above a quota says how many bytes Kafka has counted.
_THROTTLED = [
    Probe("throttling: produce without a quota", wire.PRODUCE, (9,), _PRODUCE, [_ON_ORDERS]),
    _quota("for throttling", (_ALICE, [(_RATE, 2.0), ("consumer_byte_rate", 50.0)])),
    Probe("throttling: produce", wire.PRODUCE, (9,), _PRODUCE, [_ON_ORDERS]),
    Probe("throttling: fetch", wire.FETCH, (12,), _FETCH, [_ON_ORDERS]),
    _quota("no more for throttling", (_ALICE, [(_RATE, None), ("consumer_byte_rate", None)])),
]

PROBES = [*_THROTTLED, *_SCRAM, *_QUOTAS, *_CONFIGS]

#: The same APIs with too few rights, and with enough.
RIGHTS_PROBES = [
    Probe("describe SCRAM credentials", wire.DESCRIBE_SCRAM, (0,), {"users": [{"name": "nobody"}]},
          [_NOTHING, ["DESCRIBE_CONFIGS CLUSTER"], ["DESCRIBE CLUSTER"], ["ALTER CLUSTER"]]),
    Probe("change SCRAM credentials", wire.ALTER_SCRAM, (0,), _scram([("nobody", 1)], [("b", 1, 4096, _KEY)]),
          [_NOTHING, ["DESCRIBE CLUSTER"], ["ALTER_CONFIGS CLUSTER"]]),
    Probe("describe quotas", wire.DESCRIBE_QUOTAS, (0, 1), {"components": (), "strict": False},
          [_NOTHING, ["DESCRIBE CLUSTER"], ["DESCRIBE_CONFIGS CLUSTER"], ["ALTER_CONFIGS CLUSTER"]]),
    Probe("change quotas", wire.ALTER_QUOTAS, (0, 1),
          {"entries": [{"entity": [{"entity_type": "user", "entity_name": "x"}],
                        "ops": [{"key": _RATE, "value": 1.0, "remove": False}]}], "validate_only": True},
          [_NOTHING, ["ALTER CLUSTER"], ["ALTER_CONFIGS CLUSTER"]]),
    Probe(
        "replace configurations",
        wire.ALTER_CONFIGS,
        (0, 2),
        {
            "resources": [
                {"resource_type": kind, "resource_name": name, "configs": ()}
                for kind, name in ((2, "orders"), (2, "nowhere"), (4, "1"), (32, "g"))
            ],
            "validate_only": True,
        },
        [_NOTHING, ["ALTER_CONFIGS TOPIC orders"], ["ALTER_CONFIGS CLUSTER"], ["ALTER_CONFIGS GROUP g"]],
    ),
]  # fmt: skip
