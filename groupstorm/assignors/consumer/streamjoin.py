"""stream-join-sticky: KIP-315's assignor for consumers that join streams.

Partition n of every joined topic goes to the same member, and stays there as long as balance allows. The
assignor assigns partition *numbers*, which become partitions of each topic in the end.

1. There are as many numbers as the smallest topic has partitions (a topic that is still growing, or that
   has just been joined, must not unbalance the others). Topics that do not exist do not count, and neither
   do members that subscribe to no existing topic.
2. The owner of a number is the member that claims it with the highest epoch. If two members claim it with
   that epoch, it has no owner.
3. In each round every member chooses one number. First, by id, come the members with a number of their own
   left: each takes its lowest. Then, by id, the others: each takes the lowest unowned number, or else the
   highest one of the member with the most left (of several such members: the first by id).
4. The next epoch is the highest reported one plus one.

The KIP (its proposed changes, 1 to 7) leaves open the order of members, the meaning of "fair", equal epochs
and missing topics. The rules above reproduce its worked example.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import ClassVar

from groupstorm.assignors.consumer.claims import newest_owner
from groupstorm.assignors.contract import EAGER, AssignmentResult, MapOrder, RebalanceProtocol, TopicMetadata
from groupstorm.assignors.userdata import Assignment, Subscription, TopicPartition, java_sorted
from groupstorm.assignors.userdata.sticky import (
    NO_EPOCH,
    decode_epoch,
    decode_join_data,
    encode_epoch,
    encode_join_data,
)

_HIGHEST_EPOCH = (1 << 31) - 1


@dataclass(frozen=True)
class StreamJoinStickyAssignor:
    """KIP-315's StickyStreamJoinAssignor; no hash table breaks a tie.

    It is made for equal subscriptions to topics of equal sizes, and leaves out partitions that cannot
    be joined.
    """

    order: MapOrder = MapOrder.JAVA_HASH
    bug_compat: bool = False

    name: ClassVar[str] = "stream-join-sticky"
    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (EAGER,)
    needs_equal_subscriptions: ClassVar[bool] = True

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """The numbers of the last assignment, and its generation for an epoch.

        This is for clients that keep no user data. The generation grows with every assignment, too.
        """
        return None if owned is None else encode_join_data((tp.partition for tp in owned), generation)

    def user_data_after(self, assignment: Assignment, generation: int) -> bytes:
        """The numbers of the last assignment, and the epoch that the leader sent with it."""
        epoch = decode_epoch(assignment.user_data)
        numbers = (tp.partition for tp in assignment.partitions)
        return encode_join_data(numbers, generation if epoch is None else epoch)

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """Assign; the new epoch is in the result and travels in the user data of the assignment."""
        existing = {topic for topic, metadata in topics.items() if metadata.partitions > 0}
        joined = {
            member: [topic for topic in dict.fromkeys(sub.topics) if topic in existing]
            for member, sub in subscriptions.items()
        }
        reported = {member: decode_join_data(sub.user_data) for member, sub in subscriptions.items()}
        members = java_sorted(member for member in subscriptions if joined[member])
        count = min((topics[t].partitions for listed in joined.values() for t in listed), default=0)
        claims = [
            (reported[member].epoch, [n for n in reported[member].partitions if 0 <= n < count])
            for member in members
        ]
        numbers = dict(zip(members, choose_numbers(count, len(members), newest_owner(claims)), strict=True))
        latest = max((data.epoch for data in reported.values()), default=NO_EPOCH)
        epoch = min(max(latest, NO_EPOCH), _HIGHEST_EPOCH - 1) + 1
        return AssignmentResult(
            {
                member: [TopicPartition(t, n) for t in joined[member] for n in numbers.get(member, ())]
                for member in subscriptions
            },
            user_data=encode_epoch(epoch),
            epoch=epoch,
        )


def choose_numbers(count: int, members: int, owner: Mapping[int, int]) -> list[list[int]]:
    """The numbers below ``count`` for each member, ascending; ``owner``: the owner of each number."""
    own: list[deque[int]] = [deque() for _ in range(members)]
    for number in sorted(owner):
        own[owner[number]].append(number)
    unowned = deque(number for number in range(count) if number not in owner)
    longest = [(-len(mine), member) for member, mine in enumerate(own)]
    heapify(longest)
    chosen: list[list[int]] = [[] for _ in range(members)]
    left = count
    while left and members:
        keepers = [member for member in range(members) if own[member]]
        others = [member for member in range(members) if not own[member]]
        for member in (keepers + others)[:left]:
            if own[member]:
                number = own[member].popleft()
            elif unowned:
                number = unowned.popleft()
            else:
                number = own[_longest(longest, own)].pop()
            chosen[member].append(number)
        left -= min(left, members)
    return [sorted(mine) for mine in chosen]


def _longest(longest: list[tuple[int, int]], own: Sequence[deque[int]]) -> int:
    """The member with the most numbers left; entries of the heap ``longest`` may be outdated."""
    while True:
        length, member = longest[0]
        actual = len(own[member])
        if actual == -length:
            return member
        if actual:
            heapreplace(longest, (-actual, member))
        else:
            heappop(longest)
