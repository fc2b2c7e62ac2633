"""Plain values and messages: named tuples whose fields messages have as well, perhaps under another name.

The broker reads requests and writes answers by them, a client writes requests and reads answers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from groupstorm.protocol.codec.schemas import field_names
from groupstorm.protocol.codec.shape import MILLISECOND, KioType

_T = TypeVar("_T")

#: Field of a plain value -> its names in messages, if it has others there.
_FIELD_NAMES: dict[str, tuple[str, ...]] = {
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


def _message_names(field: str) -> tuple[str, ...]:
    return _FIELD_NAMES.get(field) or (field.removesuffix(_MS),)


@cache
def _found(kind: Any, message_type: Any) -> tuple[tuple[str, str], ...]:
    """The fields of a value that messages of this type have, with their names there."""
    known = field_names(message_type)
    return tuple((one, name) for one in kind._fields for name in _message_names(one) if name in known)


@cache
def _unset(kind: Any) -> dict[str, Any]:
    return {**dict.fromkeys(kind._fields), **kind._field_defaults}


def milliseconds(duration: Any) -> int:
    """A timedelta of kio's as an integer."""
    return int(duration // MILLISECOND)


def value_of(kind: Callable[..., _T], message: Any, **own: Any) -> _T:
    """The value of this kind that a message holds. ``own``: the fields that need more than another name."""
    values = {**_unset(kind), **own}
    message_type: KioType = type(message)
    for own_name, name in _found(kind, message_type):
        if own_name not in own:
            value = getattr(message, name)
            values[own_name] = milliseconds(value) if own_name.endswith(_MS) else value
    return kind(**values)


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a value under all names that messages may have for them."""
    return {
        name: field * MILLISECOND if own_name.endswith(_MS) else field
        for own_name, field in value._asdict().items()
        for name in _message_names(own_name)
    }
