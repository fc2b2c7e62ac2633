"""Responses that carry an error and nothing else, in each API's own format
(AbstractRequest.getErrorResponse).

If the group coordinator decides about a request, the response is the one that the handler makes of the
coordinator's refusal (`groupstorm.coordinator.failures`). The other responses have an error for the
whole, or one in every item: `Api.errors` says which.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from groupstorm.broker.apis.api import (
    AskCoordinator,
    AskingApi,
    BrokerState,
    Call,
    KioMessage,
)
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.failures import error_response
from groupstorm.protocol.codec.schemas import field_names
from groupstorm.protocol.codec.shape import FieldShape, KioType, shapes_of
from groupstorm.turns import Turns, in_turns

#: The fields by which requests and responses name an item.
_NAMES = (
    *("name", "key", "topic", "topic_id", "index", "partition", "partition_index"),
    *("resource_type", "resource_name", "entity_type", "entity_name", "partition_id", "transactional_id"),
)
#: An array that names an item.
_ENTITY = "entity"
#: Defaults that are not the schema's.
_NEVER_NULL = ("status",)
_NOTHING = dict.fromkeys(
    ("base_offset", "low_watermark", "high_watermark", "node_id", "port", "producer_epoch"), -1
)


def error_answer(state: BrokerState, call: Call, error: Error, sentence: str | None = None) -> Turns[Any]:
    """The response to a request that is not carried out; None if Kafka sends none (Produce with acks=0).

    ``sentence``: about the error, where the response has a field for one.

    Metadata of all topics has no place for an error before version 13: that response is empty.
    """
    if isinstance(call.api, AskingApi):
        return (yield from _as_coordinator(state, call, error))
    if getattr(call.message, "acks", None) == 0:
        return None
    errors = {"error_code": error, "partition_error_code": error, "error_message": sentence}
    values: dict[str, Any] = {**errors, "session_id": getattr(call.message, "session_id", 0)}
    root = call.types.root
    for asked, answered in call.api.errors.items() if call.version <= call.api.last_with_errors else ():
        if hasattr(call.message, asked.partition(".")[0]):
            items = yield from _items(root, answered, call, call.message, asked, errors)
            values |= {field: (*values.get(field, ()), *one) for field, one in items.items()}
    return _filled(root, values)


def _as_coordinator(state: BrokerState, call: Call, error: Error) -> Turns[Any]:
    outcome = call.api.handle(state, call)
    if isinstance(outcome, Generator):
        outcome = yield from outcome
    if not isinstance(outcome, AskCoordinator):
        return getattr(outcome, "response", None)  # refused before the coordinator is asked
    refused = yield from in_turns(_refusal(request, error) for request in outcome.requests)
    response = outcome.finish(refused)
    return (yield from response) if isinstance(response, Generator) else response


def _refusal(request: messages.Request, error: Error) -> Any:
    assert not isinstance(request, messages.ListGroups)
    return error_response(request, error)


def _items(
    kind: KioType, answered: str, call: Call, message: Any, asked: str, errors: Mapping[str, Any]
) -> Turns[dict[str, tuple[KioMessage, ...]]]:
    """The array of a structure of this kind, by its name, that answers the array of a message."""
    field, _, inner_answered = answered.partition(".")
    source, _, inner_asked = asked.partition(".")
    (item_kind,) = (shape.entity for shape in shapes_of(kind) if shape.name == field)
    answers = []
    for item in getattr(message, source) or ():
        values = _names(item) | {name: getattr(item, of) for name, of in call.api.error_names.items()}
        if hasattr(item, _ENTITY):
            values |= yield from _items(item_kind, _ENTITY, call, item, _ENTITY, {})
        if inner_answered:
            values |= yield from _items(item_kind, inner_answered, call, item, inner_asked, errors)
        else:
            values |= errors
        answers.append(_filled(item_kind, values))
        yield 1
    return {field: tuple(answers)}


def _names(item: Any) -> dict[str, Any]:
    """The fields that name an item of a request, by the names that they may have in the response."""
    if isinstance(item, str | int):
        return dict.fromkeys(_NAMES, item)
    names = {name: getattr(item, name) for name in _NAMES if hasattr(item, name)}
    return {"partition_index": names["partition"], **names} if "partition" in names else names


def _filled(kind: KioType, values: Mapping[str, Any]) -> KioMessage:
    """The structure with these values and with the defaults of all other fields."""
    known = field_names(kind)
    nothing = {shape.name: _nothing(shape) for shape in shapes_of(kind)}
    return kind(**nothing | {name: value for name, value in values.items() if name in known})


def _nothing(shape: FieldShape) -> Any:
    if shape.array:
        return None if shape.nullable and shape.name not in _NEVER_NULL else ()
    return _NOTHING.get(shape.name, shape.default)
