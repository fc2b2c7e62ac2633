"""The fields of the coordinators' requests and answers, by the names that they have in Kafka's messages.

A value of the coordinator has one type for all versions of an API. A request of a version without a field has
the field's default, or None; an answer may have fields that a version lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from groupstorm.broker.apis.api import milliseconds
from groupstorm.protocol.codec.schemas import field_names
from groupstorm.protocol.codec.shape import MILLISECOND, KioType

_T = TypeVar("_T")

#: Field of the coordinator -> its names in messages, if it has others there.
_NAMES: dict[str, tuple[str, ...]] = {
    "active": ("active_tasks",),
    "assignor": ("server_assignor", "assignor_name"),
    "description_required": ("topology_description_required",),
    "endpoint_epoch": ("endpoint_information_epoch",),
    "epoch": ("member_epoch", "group_epoch"),
    "error": ("error_code",),
    "generation": ("generation_id", "generation_id_or_member_epoch"),
    "group": ("group_id",),
    "group_instance_id": ("group_instance_id", "instance_id"),
    "instance": ("instance_id",),
    "leader_epoch": ("committed_leader_epoch",),
    "offset": ("committed_offset",),
    "process": ("process_id",),
    "protocol": ("protocol_name", "protocol_data"),
    "rack": ("rack_id",),
    "regex": ("subscribed_topic_regex",),
    "retention_ms": ("retention_time",),
    "shutdown": ("shutdown_application",),
    "standby": ("standby_tasks",),
    "state": ("group_state",),
    "topics": ("subscribed_topic_names",),
    "warmup": ("warmup_tasks",),
}
#: Fields with this ending are numbers; in messages they are durations, and have names without it.
_MS = "_ms"


def _names(field: str) -> tuple[str, ...]:
    return _NAMES.get(field) or (field.removesuffix(_MS),)


@cache
def _found(kind: Any, message_type: Any) -> tuple[tuple[str, str], ...]:
    """The fields of a request that messages of this type have, with their names there."""
    known = field_names(message_type)
    return tuple((field, name) for field in kind._fields for name in _names(field) if name in known)


@cache
def _nothing(kind: Any) -> dict[str, Any]:
    return {**dict.fromkeys(kind._fields), **kind._field_defaults}


def read(kind: Callable[..., _T], message: Any, version: int, client_id: str, **own: Any) -> _T:
    """The coordinator's request of this kind. ``own``: the fields that need more than another name."""
    values = {**_nothing(kind), **own, "version": version, "client_id": client_id}
    message_type: KioType = type(message)
    for field, name in _found(kind, message_type):
        if field not in own:
            value = getattr(message, name)
            values[field] = milliseconds(value) if field.endswith(_MS) else value
    return kind(**values)


def fields_of(answer: Any) -> dict[str, Any]:
    """The fields of an answer of the coordinator, or of a part of one."""
    return {
        name: value * MILLISECOND if field.endswith(_MS) else value
        for field, value in answer._asdict().items()
        for name in _names(field)
    }
