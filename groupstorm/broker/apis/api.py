"""An API: its facts, the arguments and results of its handler, and its responses that carry an error and
nothing else, in the API's own format (AbstractRequest.getErrorResponse).

If the group coordinator decides about a request, the response is the one that the handler makes of the
coordinator's refusal (`groupstorm.coordinator.failures`). The other responses have an error for the
whole, or one in every item: `Api.errors` says which.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

from groupstorm.broker.authorization import Operation, ResourceType
from groupstorm.broker.config import NEWEST, RELEASES
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.broker.quotas import Client
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.failures import error_response
from groupstorm.protocol.codec import ResponseTypes
from groupstorm.protocol.codec.plain_values import value_of
from groupstorm.protocol.codec.schemas import field_names
from groupstorm.protocol.codec.shape import EPOCH, FieldShape, KioType, shapes_of
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.share_records.messages import Request as ShareRequest
from groupstorm.turns import Turns, in_turns

_T = TypeVar("_T")

#: One of kio's responses; which class depends on API and version.
KioMessage: TypeAlias = Any


class Call(NamedTuple):
    """One request: ``message`` is kio's dataclass of that version, ``types`` makes the response."""

    version: int
    message: KioMessage
    types: ResponseTypes
    client_id: str
    client_host: str
    """As Java prints an address: /127.0.0.1"""
    reached_at: Endpoint
    """Our end of the connection, as the client sees it."""
    now_ms: int
    node: int
    """Which of the brokers was asked."""
    principal: str
    """Who the client is: ``User:alice``"""
    size_bytes: int
    """The size of the whole request."""
    api: Api
    connection: str
    """The connection's number: share sessions end with their connections."""

    @property
    def client(self) -> Client:
        """The client whose quotas count."""
        return Client(self.principal.partition(":")[2], self.client_id, self.node)


class Done(NamedTuple):
    """The response to the request."""

    response: KioMessage


class Encoded(NamedTuple):
    """The response to the request, as bytes. ``mute_ms``: how long the client's quota mutes it."""

    body: list[bytes]
    mute_ms: int = 0


class NoAnswer(NamedTuple):
    """Nothing is sent (acks=0). ``close``: why the connection is closed instead, or None; ``mute_ms``: how
    long the client's quota mutes it."""

    close: str | None = None
    mute_ms: int = 0


class AskCoordinator(NamedTuple):
    """Ask the group coordinator; ``finish`` makes the response of its answers as soon as it has given all."""

    requests: Sequence[messages.Request]
    finish: Callable[[Sequence[Any]], KioMessage | Turns[KioMessage]]
    may_match: Callable[[str], bool] | None = None
    """Whether a regular expression of the client's group may match a topic; None: it may match each."""


class AskShareBroker(NamedTuple):
    """Ask the share broker; ``finish`` makes the response of its answer, which may come later."""

    request: ShareRequest
    finish: Callable[[Any], KioMessage | Turns[KioMessage]]


class Wait(NamedTuple):
    """Respond with ``finish()`` as soon as ``is_ready()`` after one of ``logs`` has grown, or at the
    deadline."""

    deadline_ms: int
    logs: Sequence[PartitionLog]
    is_ready: Callable[[], bool]
    finish: Callable[[], Done | Encoded | Turns[Done]]


Outcome: TypeAlias = Done | Encoded | NoAnswer | AskCoordinator | AskShareBroker | Wait
Handler: TypeAlias = Callable[[BrokerState, Call], Outcome | Turns[Outcome]]


class Right(NamedTuple):
    """A right that a whole request needs. ``field``: the request's field that names the resource, null if the
    request is about none; None: the cluster. ``sentence``: Kafka's about the missing right."""

    operation: Operation
    resource_type: ResourceType
    field: str | None
    sentence: str | None = None


#: Values of `Api.errors`.
EACH_TOPIC = {"topics": "topics"}
EACH_PARTITION = {"topics.partitions": "topics.partitions"}


@dataclass(frozen=True, slots=True)
class Api:
    """One API, in the versions that this broker serves."""

    key: int
    name: str
    min_version: int
    max_version: int
    handle: Handler
    advertised_min_version: int | None = None
    """The lowest version in ApiVersions, if another one."""
    older: tuple[int | None, ...] | None = None
    """The highest versions of the older ones of `RELEASES`, if others; None: that one does not have the API;
    (): none of them has it."""
    needs: tuple[Right, ...] = ()
    """The rights that the whole request needs, in the order in which Kafka checks them."""
    on_topics: Operation | None = None
    """The right on each topic that a request names, or that an answer shows."""
    on_all_topics: Operation | None = None
    """A right on the cluster that stands for the one on every topic."""
    on_groups: Operation | None = None
    """The right on each group that a request names, or that an answer shows."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Array of the request -> array of the error answer with an error for each of its items. An array in the
    items of another one stands behind a dot. A version may lack arrays."""
    error_names: Mapping[str, str] = field(default_factory=dict)
    """Field of these items -> the request's field that names them, if it has another name."""
    last_with_errors: int = 2**15 - 1
    """The last version whose error answer has the items."""
    is_repeated: bool = False
    """Whether the requests of an idle client are equal but for their correlation ids."""

    @property
    def advertised(self) -> tuple[int, int]:
        """The lowest and the highest version in ApiVersions."""
        least = self.min_version if self.advertised_min_version is None else self.advertised_min_version
        return least, self.max_version

    def serves(self, key: int, version: int) -> bool:
        return key == self.key and self.min_version <= version <= self.max_version

    def of_release(self, release: str) -> Api | None:
        """The API in the versions that this release of Kafka has, too. The lowest one stays ours: a client of
        the release's time uses the highest that both have."""
        if release == NEWEST or self.older is None:
            return self
        newest = self.older[RELEASES.index(release)] if self.older else None
        return None if newest is None else replace(self, max_version=newest)


class CoordinatorsApi(Api):
    """An API that a group or transaction coordinator answers."""


class AskingApi(CoordinatorsApi):
    """An API whose handler asks the group coordinator and does nothing else."""


def producer_error(call: Call, error: Error, first_saying_fenced: int = 2) -> Error:
    """PRODUCER_FENCED has that name since a version of each API; before, it is INVALID_PRODUCER_EPOCH."""
    is_unnamed = error is Error.PRODUCER_FENCED and call.version < first_saying_fenced
    return Error.INVALID_PRODUCER_EPOCH if is_unnamed else error


def timestamp(time_ms: int | None) -> datetime.datetime | None:
    """Milliseconds as kio's fields hold them."""
    return None if time_ms is None else EPOCH + datetime.timedelta(milliseconds=time_ms)


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


def read(kind: Callable[..., _T], message: Any, version: int, client_id: str, **own: Any) -> _T:
    """The coordinator's request of this kind. ``own``: the fields that need more than another name."""
    return value_of(kind, message, version=version, client_id=client_id, **own)
