"""OffsetForLeaderEpoch (key 23), versions 2-4: where a leader's epoch ended (KIP-101, KIP-320).

Leaders never change here: there is one epoch, which ends at the end of the log, and no later one.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import EACH_PARTITION, Api, BrokerState, Call, Done
from groupstorm.broker.apis.lookup import NO_EPOCH, Found, answer_partitions, find_log
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.log.partition import LEADER_EPOCH, NO_OFFSET
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    return answer_partitions(state, call, "OffsetForLeaderTopicResult", _partition, "topic")


API = Api(
    23, "OffsetForLeaderEpoch", 2, 4, handle, on_topics=Operation.DESCRIBE,
    on_all_topics=Operation.CLUSTER_ACTION, errors=EACH_PARTITION,
)  # fmt: skip


def _partition(state: BrokerState, call: Call, found: Found, asked: Any) -> Any:
    log, error = find_log(call, found, asked.partition, asked.current_leader_epoch)
    is_known = error is Error.NONE and log is not None and asked.leader_epoch == LEADER_EPOCH
    return call.types.make(
        "EpochEndOffset",
        error_code=error,
        partition=asked.partition,
        leader_epoch=LEADER_EPOCH if is_known else NO_EPOCH,
        end_offset=log.end_offset if log is not None and is_known else NO_OFFSET,
    )
