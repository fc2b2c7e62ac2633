"""ElectLeaders (key 43), versions 0-2: the first replica of each partition leads it already (KIP-460).

Needs ALTER on the cluster. v1: the type of the election, preferred (0) or unclean (1).
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns

_ELECTIONS = (0, 1)


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    message = call.message
    if getattr(message, "election_type", 0) not in _ELECTIONS:
        return Done(call.types.response(error_code=Error.INVALID_REQUEST, replica_election_results=()))
    make, results = call.types.make, []
    if message.topic_partitions is None:
        # partitions that need no election are left out of the answer about all
        results = [
            make("ReplicaElectionResult", topic=topic.name, partition_result=()) for topic in state.topics
        ]
    for asked in message.topic_partitions or ():
        partitions = yield from in_turns(
            _partition(state, call, asked.topic, one) for one in asked.partitions
        )
        results.append(make("ReplicaElectionResult", topic=asked.topic, partition_result=partitions))
    return Done(call.types.response(error_code=Error.NONE, replica_election_results=tuple(results)))


API = Api(
    43, "ElectLeaders", 0, 2, handle, needs=(on_cluster(Operation.ALTER),),
    errors={"topic_partitions.partitions": "replica_election_results.partition_result"},
)  # fmt: skip


def _partition(state: BrokerState, call: Call, name: str, index: int) -> Any:
    topic = state.topics.get(name)
    error, sentence = Error.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    if topic is None or topic.partition(index) is None:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
        sentence = f"No such topic as {name}" if topic is None else f"No such partition as {name}-{index}"
    return call.types.make("PartitionResult", partition_id=index, error_code=error, error_message=sentence)
