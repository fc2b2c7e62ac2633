"""The side of a group's leader: ConsumerCoordinator.onLeaderElected without the client around it.

* `assignment` has the entry, `perform_assignment`, the two ways to the answer, by name and by number, and for
  the latter a memory of the last round.
* `codec` turns bytes into partition numbers and back; `array_codec` does so with numpy, for large groups.
"""

from __future__ import annotations

from groupstorm.assignors.leader.assignment import JoinedMember, LeaderMemory, perform_assignment

__all__ = ["JoinedMember", "LeaderMemory", "perform_assignment"]
