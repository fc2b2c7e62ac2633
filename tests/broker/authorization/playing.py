"""Plays the probes on a broker: sets a user's rights, sends a request as this user, and notes the answer."""

from __future__ import annotations

import dataclasses
import datetime
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from groupstorm.broker.authorization import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from groupstorm.protocol.codec import request_type
from tests.broker import wire
from tests.broker.asking import acl_filter

ADMIN, USER = "admin", "alice"
#: Fields of answers that the probes are about; times, addresses and ids of members are left out.
NOTED = frozenset(
    (
        *("error_code", "error_message", "partition_error_code", "topic_config_error_code", "is_internal"),
        *("name", "topic", "topic_name", "topic_id", "key", "group", "group_id", "transactional_id", "user"),
        *("partition_index", "index", "partition", "resource_name", "resource_type", "num_partitions"),
        *("topic_authorized_operations", "cluster_authorized_operations", "authorized_operations"),
        *("principal", "host", "operation", "permission_type", "pattern_type", "mechanism", "iterations"),
        *("entity_type", "entity_name", "value", "config_source", "read_only", "is_sensitive", "source"),
        *("throttle_time", "status_code", "status_detail"),
    )
)
#: Their sentences are noted; those of other errors are our own.
AUTHORIZATION_ERRORS = (29, 30, 31, 42, 53, 54)
#: Kafka prints an object of its own between these words.
_REQUEST = re.compile("^Request .*(?= needs )")
#: Topics of Kafka's own, and a configuration that Kafka's tool sets for the cluster.
_OF_KAFKA = ("__", "min.insync.replicas")
#: Answers of a coordinator that is still being set up.
_NOT_READY = {14, 15, 16}


class Asker(Protocol):
    """Sends requests to a broker as one of its users; None: the broker has closed the connection."""

    def ask(self, user: str, api_key: int, version: int, body: Any, /) -> Any: ...

    def settle(self) -> None:
        """Wait until the broker knows all that it has been told."""


class Probe(NamedTuple):
    """A request, sent once with each of these sets of rights."""

    name: str
    api_key: int
    versions: Sequence[int]
    fields: Mapping[str, Any]
    rights: Sequence[Sequence[str]] = ((),)
    user: str = USER


class Heard(NamedTuple):
    """The answer of a broker: ``None`` if it has closed the connection."""

    probe: str
    version: int
    rights: Sequence[str]
    answer: Any


def play(
    asker: Asker, probes: Sequence[Probe], topic_ids: Callable[[], Mapping[str, uuid.UUID]]
) -> Iterator[Heard]:
    """``topic_ids``: of the topics that there are, by name."""
    for probe in probes:
        for version in probe.versions:
            for rights in probe.rights:
                give(asker, rights)
                ids = topic_ids()
                body = wire.message(request_type(probe.api_key, version), probe.fields, ids)
                answer = _ready(asker, probe, version, body)
                names = {topic_id: f"id of {name}" for name, topic_id in ids.items()}
                yield Heard(probe.name, version, rights, None if answer is None else noted(answer, names))


def _ready(asker: Asker, probe: Probe, version: int, body: Any) -> Any:
    for _ in range(50):
        answer = asker.ask(probe.user, probe.api_key, version, body)
        if answer is None or not _NOT_READY & set(codes_of(noted(answer, {}))):
            break
        asker.settle()
    return answer


def codes_of(answer: Any) -> Iterator[int]:
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name.endswith("error_code"):
                yield value
            yield from codes_of(value)
    elif isinstance(answer, list):
        for one in answer:
            yield from codes_of(one)


def give(asker: Asker, rights: Sequence[str]) -> None:
    """These rights, and no others, for the user."""
    must_ask(asker, wire.DELETE_ACLS, 3, {"filters": (acl_filter(),)})
    if rights:
        must_ask(asker, wire.CREATE_ACLS, 3, {"creations": [creation(one) for one in rights]})
    asker.settle()


def must_ask(asker: Asker, api_key: int, version: int, fields: Mapping[str, Any]) -> Any:
    """Ask as the administrator; there has to be an answer."""
    answer = asker.ask(ADMIN, api_key, version, wire.message(request_type(api_key, version), fields))
    assert answer is not None
    return answer


def creation(right: str) -> dict[str, Any]:
    """``READ TOPIC orders``; with - in front it denies, with * behind the name it is about a prefix."""
    operation, resource_type, *name = right.split()
    text = name[0] if name else CLUSTER_NAME
    is_prefix = len(text) > 1 and text.endswith("*")
    return {
        "resource_type": ResourceType[resource_type],
        "resource_name": text.removesuffix("*") if is_prefix else text,
        "resource_pattern_type": PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        "principal": f"User:{USER}",
        "host": "*",
        "operation": Operation[operation.removeprefix("-")],
        "permission_type": Permission.DENY if operation.startswith("-") else Permission.ALLOW,
    }


def noted(value: Any, names: Mapping[uuid.UUID, str]) -> Any:
    """The fields of an answer that are `NOTED`, and those that hold some, without topics of Kafka's own."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        found = {name: noted(one, names) for name, one in fields.items() if name in NOTED or _is_nested(one)}
        if fields.get("error_code") not in AUTHORIZATION_ERRORS or not found.get("error_message"):
            found.pop("error_message", None)
        return {name: one for name, one in found.items() if one not in ([], {}, None)}
    if isinstance(value, tuple):
        items = [noted(one, names) for one in value if _is_nested(one)]
        return _sorted([one for one in items if not str(one.get("name", "")).startswith(_OF_KAFKA)])
    if isinstance(value, uuid.UUID):
        return names.get(value)
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1) or None
    if isinstance(value, str):
        return _REQUEST.sub("Request", value)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _is_nested(value: Any) -> bool:
    return isinstance(value, tuple) or dataclasses.is_dataclass(value)


def _sorted(items: list[Any]) -> list[Any]:
    """Kafka keeps many of its lists in hash maps: their order says nothing."""
    return sorted(items, key=repr)
