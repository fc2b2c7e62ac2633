"""The broker's assignors of KIP-848: `uniform` and `range`, equal to Kafka 4.3.1's.

    assignor = get("uniform")
    targets = assignor.assign({"orders": TopicDescription(topic_id, 6)}, {"m1": MemberSpec(["orders"], {})})

Other packages, such as the coordinator, import from here and not from the modules inside.
"""

from __future__ import annotations

from groupstorm.assignors.contract import AssignmentRefused, MapOrder
from groupstorm.assignors.server.assignors import RangeAssignor, ServerAssignor, UniformAssignor, get, names
from groupstorm.assignors.server.group import MemberSpec, Target, TopicDescription

__all__ = [
    "AssignmentRefused",
    "MapOrder",
    "MemberSpec",
    "RangeAssignor",
    "ServerAssignor",
    "Target",
    "TopicDescription",
    "UniformAssignor",
    "get",
    "names",
]
