"""DeleteShareGroupOffsets (key 92), version 0 (KIP-932): a share group without members forgets topics.

* A client needs DELETE on the group and READ on each topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, BrokerState, Call, CoordinatorsApi, Right
from groupstorm.broker.apis.rights import SENTENCES, topic_error
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import DeleteShareGroupOffsets, DeleteShareGroupOffsetsResponse
from groupstorm.turns import Turns, in_turns

_DENIED = SENTENCES[Error.GROUP_AUTHORIZATION_FAILED]


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    names = [topic.topic_name for topic in call.message.topics]
    errors = yield from in_turns((topic_error(state, call, name) for name in names), work=2)
    denied = [
        (name, error, SENTENCES[error])
        for name, error in zip(names, errors, strict=True)
        if error is not Error.NONE
    ]
    allowed = [name for name, error in zip(names, errors, strict=True) if error is Error.NONE]

    def finish(answers: Sequence[DeleteShareGroupOffsetsResponse]) -> Turns[Any]:
        (answer,) = answers
        shown = (*denied, *answer.topics) if answer.error is Error.NONE else ()
        responses = yield from in_turns(
            call.types.make(
                "DeleteShareGroupOffsetsResponseTopic",
                topic_name=name,
                topic_id=None if (topic := state.topics.get(name)) is None or error else topic.topic_id,
                error_code=error,
                error_message=sentence,
            )
            for name, error, sentence in shown
        )
        return call.types.response(
            error_code=answer.error, error_message=answer.error_message, responses=responses
        )

    return AskCoordinator((DeleteShareGroupOffsets(call.message.group_id, tuple(allowed)),), finish)


API = CoordinatorsApi(
    92, "DeleteShareGroupOffsets", 0, 0, handle, older=(),
    needs=(Right(Operation.DELETE, ResourceType.GROUP, "group_id", _DENIED),), on_topics=Operation.READ,
)  # fmt: skip
