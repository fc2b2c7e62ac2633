"""DeleteTopics (key 20), versions 1-6.

* v3: TOPIC_DELETION_DISABLED has a name of its own; before, INVALID_REQUEST. v5: error messages. v6: topics
  may be named by id (KIP-516).
* A client needs DELETE on the cluster or on the topic. Without it, an answer to an id has the topic's name
  only for those who may describe the topic (ControllerApis.deleteTopics).
* The topics of the coordinators cannot be deleted (POLICY_VIOLATION). In Kafka they can, with all groups.
* The broker deletes the records at once, and with them the offsets that groups have committed for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from groupstorm.broker.apis.api import COORDINATORS_TOPICS, Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import SENTENCES, may, topic_error
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.broker.log.topics import Topic
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns

_FIRST_WITH_IDS = 6
_FIRST_SAYING_DISABLED = 3


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    asked = yield from in_turns(_asked(call))
    times = Counter(asked)
    responses = []
    for name, topic_id in asked:
        topic, error = _find(state, call, name, topic_id)
        if times[name, topic_id] > 1:
            error = Error.INVALID_REQUEST
        if topic is not None and topic.name in COORDINATORS_TOPICS:
            error = Error.POLICY_VIOLATION
        if topic is not None and error is Error.NONE:
            state.delete_topic(topic)
        responses.append(_response(state, call, name, topic_id, topic, error))
        yield 5 if topic is None else 5 + len(topic.partitions)
    return Done(call.types.response(responses=tuple(responses)))


API = Api(
    20, "DeleteTopics", 1, 6, handle, on_topics=Operation.DELETE, on_all_topics=Operation.DELETE,
    errors={"topic_names": "responses", "topics": "responses"},
)  # fmt: skip


def _asked(call: Call) -> Iterator[tuple[str | None, Any]]:
    if call.version < _FIRST_WITH_IDS:
        return ((name, None) for name in call.message.topic_names)
    return ((one.name, one.topic_id) for one in call.message.topics)


def _find(state: BrokerState, call: Call, name: str | None, topic_id: Any) -> tuple[Topic | None, Error]:
    if not state.config.delete_topic_enable:
        told = call.version >= _FIRST_SAYING_DISABLED
        return None, Error.TOPIC_DELETION_DISABLED if told else Error.INVALID_REQUEST
    if (name is None) == (topic_id is None):
        return None, Error.INVALID_REQUEST
    if name is None:
        topic = state.topics.get_by_id(topic_id)
        return topic, Error.UNKNOWN_TOPIC_ID if topic is None else topic_error(state, call, topic.name)
    topic = state.topics.get(name)
    if topic is None and may(state, call, Operation.DESCRIBE, ResourceType.TOPIC, name):
        return None, Error.UNKNOWN_TOPIC_OR_PARTITION
    error = topic_error(state, call, name)
    if topic is None and error is Error.NONE:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    return topic, error


def _response(
    state: BrokerState, call: Call, name: str | None, topic_id: Any, topic: Topic | None, error: Error
) -> Any:
    known = topic is not None and (
        error is Error.NONE
        or (
            error is Error.TOPIC_AUTHORIZATION_FAILED
            and name is None
            and may(state, call, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        )
    )
    return call.types.make(
        "DeletableTopicResult",
        name=topic.name if topic is not None and known else name,
        topic_id=topic.topic_id if topic is not None and known else topic_id,
        error_code=error,
        error_message=None if error is Error.NONE else SENTENCES.get(error, error.name),
    )
