"""The broker's assignors of KIP-848, `uniform` and `range`, equal to Kafka 4.3.1's, and that of share groups.

    assignor = get("uniform")
    targets = assignor.assign({"orders": TopicDescription(topic_id, 6)}, {"m1": MemberSpec(["orders"], {})})

Other packages, such as the coordinator, import from here and not from the modules inside.
"""

from __future__ import annotations

from groupstorm.assignors.contract import AssignmentRefused, MapOrder
from groupstorm.assignors.server.assignors import RangeAssignor, ServerAssignor, UniformAssignor, get, names
from groupstorm.assignors.server.group import MemberSpec, ServerGroup, Target, TopicDescription
from groupstorm.assignors.server.simple import assign_simple

__all__ = [
    "AssignmentRefused",
    "MapOrder",
    "MemberSpec",
    "RangeAssignor",
    "ServerAssignor",
    "ServerGroup",
    "Target",
    "TopicDescription",
    "UniformAssignor",
    "assign_simple",
    "get",
    "names",
]
