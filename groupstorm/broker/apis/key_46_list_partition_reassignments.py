"""ListPartitionReassignments (key 46), version 0: there are none (KIP-455).

A reassignment ends before it is answered. Needs DESCRIBE on the cluster.
"""

from __future__ import annotations

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.errors import Error


def handle(_state: BrokerState, call: Call) -> Done:
    return Done(call.types.response(error_code=Error.NONE, error_message=None, topics=()))


API = Api(46, "ListPartitionReassignments", 0, 0, handle, needs=(on_cluster(Operation.DESCRIBE),))
