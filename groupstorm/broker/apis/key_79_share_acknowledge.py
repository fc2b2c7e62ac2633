"""ShareAcknowledge (key 79), versions 1-2 (KIP-932): a member of a share group is done with records.

* v2: renewal of locks (KIP-1222); the response says for how long records are locked.
* A client needs READ on the group and on each topic.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import Api, AskShareBroker, BrokerState, Call, Done
from groupstorm.broker.apis.key_78_share_fetch import refused
from groupstorm.broker.apis.rights import READ_GROUP
from groupstorm.broker.apis.share_requests import AnswerTopics, denied_topics, read_partitions
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec.shape import MILLISECOND
from groupstorm.share_records.messages import ShareAcknowledge, ShareAcknowledgeResponse
from groupstorm.turns import Turns


def handle(state: BrokerState, call: Call) -> Turns[AskShareBroker | Done]:
    message = call.message
    if message.group_id is None:
        return Done(refused(call, Error.INVALID_REQUEST))
    partitions, malformed = yield from read_partitions(call)
    request = ShareAcknowledge(
        group=message.group_id,
        member_id=message.member_id or "",
        epoch=message.share_session_epoch,
        partitions=partitions,
        is_renewal=getattr(message, "is_renew_ack", False),
        version=call.version,
        denied=denied_topics(state, call, partitions),
        malformed=malformed,
    )

    def finish(answer: ShareAcknowledgeResponse) -> Any:
        if answer.error is not Error.NONE:
            return refused(call, answer.error)
        return _response(state, call, answer)

    return AskShareBroker(request, finish)


API = Api(79, "ShareAcknowledge", 1, 2, handle, older=(), needs=(READ_GROUP,), on_topics=Operation.READ)


def _response(state: BrokerState, call: Call, answer: ShareAcknowledgeResponse) -> Turns[Any]:
    topics = AnswerTopics(state, call)
    for one, (error, sentence) in answer.partitions.items():
        topics.add(one, error, error_message=sentence)
        yield 2
    return call.types.response(
        error_code=Error.NONE,
        error_message=None,
        acquisition_lock_timeout=answer.lock_ms * MILLISECOND,
        **topics.fields("ShareAcknowledgeTopicResponse"),
    )
