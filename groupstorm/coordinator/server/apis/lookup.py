"""Topics as requests name them: by name, or by id in the versions that came with KIP-516 and KIP-848."""

from __future__ import annotations

from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.log.topics import Topic, Topics


def find_topic(topics: Topics, asked: Any, name_field: str = "name") -> tuple[Topic | None, Error]:
    """The topic that a part of a request means, and the error if there is none.

    ``asked`` has either ``topic_id`` or the field that holds a name, as its version has it.
    """
    name = getattr(asked, name_field, None)
    if name is None:
        topic = topics.get_by_id(asked.topic_id)
        return topic, Error.NONE if topic is not None else Error.UNKNOWN_TOPIC_ID
    topic = topics.get(name)
    return topic, Error.NONE if topic is not None else Error.UNKNOWN_TOPIC_OR_PARTITION


def same_topic(asked: Any, name_field: str = "name") -> dict[str, Any]:
    """Name and id as the request had them, for the response's fields of the same names."""
    return {name_field: getattr(asked, name_field, ""), "topic_id": getattr(asked, "topic_id", None)}
