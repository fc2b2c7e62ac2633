"""The common parts of ShareFetch and ShareAcknowledge: their head, partitions, and the leaders in answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any
from uuid import UUID

from groupstorm.broker.apis.api import COORDINATORS_TOPICS, AskShareBroker, BrokerState, Call, Done
from groupstorm.broker.apis.rights import topic_error
from groupstorm.broker.log.partition import LEADER_EPOCH
from groupstorm.broker.share.logs import id_of, key_of, topic_of
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec.shape import MILLISECOND
from groupstorm.share_records.acknowledgement import AcknowledgementBatch, is_valid
from groupstorm.share_records.messages import Acknowledgements, Request, Response
from groupstorm.share_records.ports import TopicPartition
from groupstorm.turns import Turns

#: So many ranges of acknowledgements are read in the time of a unit of work.
_RANGES_PER_WORK = 10
_FIRST_WITH_RENEWAL = 2
#: Errors with which a client is told who leads the partition.
_MOVED = (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)


def ask(
    state: BrokerState,
    call: Call,
    kind: Callable[..., Request],
    own: dict[str, Any],
    respond: Callable[[Any], Turns[Any]],
) -> Turns[AskShareBroker | Done]:
    """Ask with a request of this kind; ``own``: the fields that only this kind has."""
    message = call.message
    if message.group_id is None:
        return Done(response(call, Error.INVALID_REQUEST))
    partitions, malformed = yield from _read_partitions(call)
    request = kind(
        message.group_id,
        message.member_id or "",
        message.share_session_epoch,
        partitions,
        is_renewal=getattr(message, "is_renew_ack", False),
        denied=_denied_topics(state, call, partitions),
        malformed=malformed,
        **own,
    )

    def finish(answer: Response) -> Any:
        return respond(answer) if answer.error is Error.NONE else response(call, answer.error)

    return AskShareBroker(request, finish)


def response(call: Call, error: Error = Error.NONE, lock_ms: int = 0, **fields: Any) -> Any:
    return call.types.response(
        error_code=error,
        error_message=None,
        acquisition_lock_timeout=lock_ms * MILLISECOND,
        **{"responses": (), "node_endpoints": (), **fields},
    )


def _read_partitions(call: Call) -> Turns[tuple[Acknowledgements, Collection[TopicPartition]]]:
    """The partitions of a request, each with its acknowledgements, and those whose ranges are malformed; of a
    partition that stands twice the last hold."""
    renewal = {
        "knows_renewal": call.version >= _FIRST_WITH_RENEWAL,
        "is_renewal": call.version >= _FIRST_WITH_RENEWAL and call.message.is_renew_ack,
    }
    partitions: dict[TopicPartition, list[AcknowledgementBatch]] = {}
    malformed: set[TopicPartition] = set()
    for topic in call.message.topics:
        key = key_of(topic.topic_id)
        for partition in topic.partitions:
            where = TopicPartition(key, partition.partition_index)
            ranges = partitions[where] = []
            before, is_wrong = -1, False
            for number, one in enumerate(partition.acknowledgement_batches, 1):
                batch = AcknowledgementBatch(one.first_offset, one.last_offset, one.acknowledge_types)
                is_wrong = is_wrong or not is_valid(batch, before, **renewal)
                before = batch.last_offset
                ranges.append(batch)
                if number % _RANGES_PER_WORK == 0:
                    yield 1
            (malformed.add if is_wrong else malformed.discard)(where)
            yield 1
    return partitions, malformed


def _denied_topics(state: BrokerState, call: Call, partitions: Iterable[TopicPartition]) -> frozenset[str]:
    """The topics that the client may not read; nobody reads those of coordinators."""
    denied = set()
    for key in {one.topic for one in partitions}:
        topic = topic_of(state.topics, key)
        if topic is not None and (
            topic.name in COORDINATORS_TOPICS or topic_error(state, call, topic.name) is not Error.NONE
        ):
            denied.add(key)
    return frozenset(denied)


class AnswerTopics:
    """The partitions of an answer by topic, and the brokers that lead those that the asked one does not."""

    def __init__(self, state: BrokerState, call: Call) -> None:
        self._state = state
        self._call = call
        self._topics: dict[UUID, list[Any]] = {}
        self._leaders: set[int] = set()

    def add(self, one: TopicPartition, error: Error, **fields: Any) -> None:
        leader, epoch = 0, 0
        topic = topic_of(self._state.topics, one.topic)
        if error in _MOVED and topic is not None:
            leader, epoch = topic.replicas[one.partition][0], LEADER_EPOCH
            self._leaders.add(leader)
        make = self._call.types.make
        data = make(
            "PartitionData",
            partition_index=one.partition,
            error_code=error,
            current_leader=make("LeaderIdAndEpoch", leader_id=leader, leader_epoch=epoch),
            **{"error_message": None, **fields},
        )
        self._topics.setdefault(id_of(one.topic), []).append(data)

    def fields(self, structure: str) -> dict[str, Any]:
        """The fields of the response. ``structure``: of a topic in it."""
        state, make = self._state, self._call.types.make
        return {
            "responses": tuple(
                make(structure, topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in self._topics.items()
            ),
            "node_endpoints": tuple(
                make(
                    "NodeEndpoint",
                    node_id=node,
                    rack=state.cluster.rack(node),
                    **state.address(node, self._call),
                )
                for node in sorted(self._leaders)
            ),
        }
