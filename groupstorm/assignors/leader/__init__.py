"""What the leader of a group computes: the subscriptions of all members in, their assignments out, as bytes.

This is ConsumerCoordinator.onLeaderElected without the client around it.

* `assignment` has the entry, `perform_assignment`, and the one decision between two ways to the answer.
* `by_name` decodes subscriptions, calls `Assignor.assign` and encodes the assignments. It serves every
  assignor, and it defines the answer.
* `by_number` keeps partitions as numbers from the bytes in to the bytes out. It serves the assignors that
  offer `consumer.indexed.IndexedAssignor`, and it must give the same bytes.
* `memory` keeps what one round has shown for the next one (`by_number` alone uses it).
* `codec` turns bytes into partition numbers and back; `array_codec` does so with numpy, for large groups.
"""

from __future__ import annotations

from groupstorm.assignors.leader.assignment import perform_assignment
from groupstorm.assignors.leader.by_name import JoinedMember
from groupstorm.assignors.leader.memory import LeaderMemory

__all__ = ["JoinedMember", "LeaderMemory", "perform_assignment"]
