"""ShareAcknowledge (key 79), versions 1-2 (KIP-932): a member of a share group is done with records.

* v2: renewal of locks (KIP-1222); the response says for how long records are locked.
* A client needs READ on the group and on each topic.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from groupstorm.broker.apis.api import Api, AskShareBroker, BrokerState, Call, Done
from groupstorm.broker.apis.rights import READ_GROUP
from groupstorm.broker.apis.share_requests import AnswerTopics, ask, response
from groupstorm.broker.authorization.acls import Operation
from groupstorm.share_records.messages import ShareAcknowledge, ShareAcknowledgeResponse
from groupstorm.turns import Turns


def handle(state: BrokerState, call: Call) -> Turns[AskShareBroker | Done]:
    return ask(state, call, ShareAcknowledge, {}, partial(_respond, state, call))


API = Api(79, "ShareAcknowledge", 1, 2, handle, older=(), needs=(READ_GROUP,), on_topics=Operation.READ)


def _respond(state: BrokerState, call: Call, answer: ShareAcknowledgeResponse) -> Turns[Any]:
    topics = AnswerTopics(state, call)
    for one, (error, sentence) in answer.partitions.items():
        topics.add(one, error, error_message=sentence)
        yield 2
    return response(call, lock_ms=answer.lock_ms, **topics.fields("ShareAcknowledgeTopicResponse"))
