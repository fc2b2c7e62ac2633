"""The side of a group's leader: ConsumerCoordinator.onLeaderElected without the client around it.

* `assignment` has the entry, `perform_assignment`, and the two ways to the answer, by name and by number.
* `memory` keeps data of one round for the next one, for the way by number.
* `codec` turns bytes into partition numbers and back; `array_codec` does so with numpy, for large groups.
"""

from __future__ import annotations

from groupstorm.assignors.leader.assignment import JoinedMember, perform_assignment
from groupstorm.assignors.leader.memory import LeaderMemory

__all__ = ["JoinedMember", "LeaderMemory", "perform_assignment"]
