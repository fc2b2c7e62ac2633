"""Responses that carry an error and nothing else, in each API's own format
(AbstractRequest.getErrorResponse).

If the group coordinator decides about a request, the response is the one that the handler makes of the
coordinator's refusal (`groupstorm.coordinator.error_responses`). The other responses have an error for the
whole, or one in every item: the table below says which.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from groupstorm.broker.apis.api import Api, AskCoordinator, BrokerState, Call
from groupstorm.coordinator import messages
from groupstorm.coordinator.error_responses import error_response
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec.schemas import field_names
from groupstorm.protocol.codec.shape import FieldShape, shapes_of
from groupstorm.turns import Turns, in_turns

#: In place of a field of the request's item: the item itself, which is a name or a number.
_ITEM = ""


class _Items(NamedTuple):
    """An array of the response with one item for each item of an array of the request.

    ``copied``: field of the response -> field of the request; ``inner``: the items that carry the error, if
    these do not; ``echoed``: items within these that are as in the request.
    """

    field: str
    structure: str
    asked: str
    copied: Mapping[str, str]
    inner: _Items | None = None
    error_field: str = "error_code"
    echoed: _Items | None = None


_TOPIC = {"name": "name", "topic_id": "topic_id"}
_OLD_TOPIC = {"topic": "topic"}
_INDEX = {"partition_index": "partition_index"}
_RESOURCE = {"resource_type": "resource_type", "resource_name": "resource_name"}

#: By API key; several rows if the arrays have other names in other versions.
_ITEMS: Mapping[int, tuple[_Items, ...]] = MappingProxyType(
    {
        0: (
            _Items(
                *("responses", "TopicProduceResponse", "topic_data", _TOPIC),
                _Items(
                    "partition_responses", "PartitionProduceResponse", "partition_data", {"index": "index"}
                ),
            ),
        ),
        1: (
            _Items(
                *("responses", "FetchableTopicResponse", "topics", _OLD_TOPIC),
                _Items("partitions", "PartitionData", "partitions", {"partition_index": "partition"}),
            ),
        ),
        2: (
            _Items(
                *("topics", "ListOffsetsTopicResponse", "topics", _TOPIC),
                _Items("partitions", "ListOffsetsPartitionResponse", "partitions", _INDEX),
            ),
        ),
        3: (_Items("topics", "MetadataResponseTopic", "topics", _TOPIC),),
        8: (
            _Items(
                *("topics", "OffsetCommitResponseTopic", "topics", _TOPIC),
                _Items("partitions", "OffsetCommitResponsePartition", "partitions", _INDEX),
            ),
        ),
        10: (_Items("coordinators", "Coordinator", "coordinator_keys", {"key": _ITEM}),),
        19: (_Items("topics", "CreatableTopicResult", "topics", {"name": "name"}),),
        20: (
            _Items("responses", "DeletableTopicResult", "topic_names", {"name": _ITEM}),
            _Items("responses", "DeletableTopicResult", "topics", _TOPIC),
        ),
        21: (
            _Items(
                *("topics", "DeleteRecordsTopicResult", "topics", _TOPIC),
                _Items("partitions", "DeleteRecordsPartitionResult", "partitions", _INDEX),
            ),
        ),
        23: (
            _Items(
                *("topics", "OffsetForLeaderTopicResult", "topics", _OLD_TOPIC),
                _Items("partitions", "EpochEndOffset", "partitions", {"partition": "partition"}),
            ),
        ),
        24: (
            _Items(
                "results_by_topic_v3_and_below",
                "AddPartitionsToTxnTopicResult",
                "v3_and_below_topics",
                _TOPIC,
                _Items(
                    "results_by_partition",
                    "AddPartitionsToTxnPartitionResult",
                    "partitions",
                    {"partition_index": _ITEM},
                    error_field="partition_error_code",
                ),
            ),
        ),
        28: (
            _Items(
                *("topics", "TxnOffsetCommitResponseTopic", "topics", _TOPIC),
                _Items("partitions", "TxnOffsetCommitResponsePartition", "partitions", _INDEX),
            ),
        ),
        30: (_Items("results", "AclCreationResult", "creations", {}),),
        31: (_Items("filter_results", "DeleteAclsFilterResult", "filters", {}),),
        32: (_Items("results", "DescribeConfigsResult", "resources", _RESOURCE),),
        33: (_Items("responses", "AlterConfigsResourceResponse", "resources", _RESOURCE),),
        37: (_Items("results", "CreatePartitionsTopicResult", "topics", {"name": "name"}),),
        44: (_Items("responses", "AlterConfigsResourceResponse", "resources", _RESOURCE),),
        49: (
            _Items(
                *("entries", "EntryData", "entries", {}),
                echoed=_Items(
                    "entity",
                    "EntityData",
                    "entity",
                    {"entity_type": "entity_type", "entity_name": "entity_name"},
                ),
            ),
        ),
        50: (_Items("results", "DescribeUserScramCredentialsResult", "users", {}),),
        51: (
            _Items("results", "AlterUserScramCredentialsResult", "deletions", {"user": "name"}),
            _Items("results", "AlterUserScramCredentialsResult", "upsertions", {"user": "name"}),
        ),
        75: (_Items("topics", "DescribeTopicPartitionsResponseTopic", "topics", {"name": "name"}),),
    }
)

#: Defaults that are not the schema's.
_NOTHING: Mapping[str, object] = MappingProxyType(
    dict.fromkeys(("base_offset", "low_watermark", "high_watermark", "node_id", "port", "producer_epoch"), -1)
)

PRODUCE, FETCH, LIST_GROUPS = 0, 1, 16
#: From this version on Fetch has one error for the whole response.
_FIRST_FETCH_WITHOUT_ITEMS = 13


def error_answer(
    api: Api, state: BrokerState, call: Call, error: Error, sentence: str | None = None
) -> Turns[Any]:
    """The response to a request that is not carried out; None if Kafka sends none (Produce with acks=0).

    ``sentence``: about the error, where the response has a field for one.

    Metadata of all topics has no place for an error before version 13: that response is empty.
    """
    if api.key in _ASKING_THE_COORDINATOR:
        outcome = api.handle(state, call)
        if isinstance(outcome, Generator):
            outcome = yield from outcome
        if not isinstance(outcome, AskCoordinator):
            return getattr(outcome, "response", None)  # refused before the coordinator is asked
        refused = yield from in_turns(_refusal(request, error) for request in outcome.requests)
        response = outcome.finish(refused)
        return (yield from response) if isinstance(response, Generator) else response
    if api.key == PRODUCE and call.message.acks == 0:
        return None
    errors = {"error_code": error, "error_message": sentence}
    values: dict[str, Any] = {**errors, "session_id": getattr(call.message, "session_id", 0)}
    has_items = not (api.key == FETCH and call.version >= _FIRST_FETCH_WITHOUT_ITEMS)
    for items in _ITEMS.get(api.key, ()) if has_items else ():
        if hasattr(call.message, items.asked):
            answered = yield from _answered(call, items, call.message, errors)
            values[items.field] = (*values.get(items.field, ()), *answered)
    return _filled(call, call.types.root.__name__, values)


#: Their handlers ask the group coordinator and do nothing else.
_ASKING_THE_COORDINATOR = frozenset((9, 11, 12, 13, 14, 15, 42, 47, 69))


def _refusal(request: messages.Request, error: Error) -> Any:
    assert not isinstance(request, messages.ListGroups)
    return error_response(request, error)


def _answered(call: Call, items: _Items, asked: Any, errors: Mapping[str, Any]) -> Turns[tuple[Any, ...]]:
    answers = []
    for item in getattr(asked, items.asked) or ():
        values = {
            field: item if source == _ITEM else getattr(item, source, None)
            for field, source in items.copied.items()
        }
        if items.echoed is not None:
            values[items.echoed.field] = yield from _answered(call, items.echoed, item, {})
        if items.inner is None and errors:
            values |= {**errors, items.error_field: errors["error_code"]}
        elif items.inner is not None:
            values[items.inner.field] = yield from _answered(call, items.inner, item, errors)
        answers.append(_filled(call, items.structure, values))
        yield 1
    return tuple(answers)


def _filled(call: Call, structure: str, values: Mapping[str, Any]) -> Any:
    """The structure with these values and with the defaults of all other fields."""
    kind = call.types.structure(structure)
    known = field_names(kind)
    nothing = {shape.name: _nothing(shape) for shape in shapes_of(kind)}
    return kind(**nothing | {name: value for name, value in values.items() if name in known})


def _nothing(shape: FieldShape) -> Any:
    if shape.array:
        return None if shape.nullable else ()
    return _NOTHING.get(shape.name, shape.default)
