"""stream-join-sticky: KIP-315's assignor for consumers that join streams.

Partition n of every joined topic goes to the same member, and stays there as long as balance allows:
what is assigned are partition *numbers*, which become partitions of each topic in the end.

1. As many numbers as the smallest of the topics has partitions (a topic that is just growing, or has
   just joined, must not unbalance the others). Topics that do not exist do not count, nor do
   members that subscribe to no topic that exists.
2. Who had a number: the member that claims it with the highest epoch; nobody, if two claim it with
   that epoch.
3. Members choose one number each, round after round: first, by id, those who still have a number of
   their own to choose (their lowest); then, by id, the others: the lowest that nobody had, or else
   the highest of who has the most left to choose (of several: the first by id).
4. The next epoch is the highest that any member reported, plus one.

The KIP (its proposed changes, 1 to 7) leaves open who is first, what "fair" means, equal epochs and
missing topics; the order above reproduces its worked example.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import ClassVar

from groupstorm.assignors.consumer.owners import newest_owner
from groupstorm.assignors.contract import (
    AssignmentResult,
    MapOrder,
    RebalanceProtocol,
    TopicMetadata,
)
from groupstorm.assignors.userdata import Assignment, Subscription, TopicPartition, java_sorted
from groupstorm.assignors.userdata.streamjoin import (
    NO_EPOCH,
    decode_epoch,
    decode_join_data,
    encode_epoch,
    encode_join_data,
)

_HIGHEST_EPOCH = (1 << 31) - 1


@dataclass(frozen=True)
class StreamJoinStickyAssignor:
    """KIP-315's StickyStreamJoinAssignor; nothing in it depends on the order of a hash table.

    Meant for equal subscriptions to topics of equally many partitions. With others it leaves out the
    partitions that cannot be joined: numbers that a topic lacks elsewhere, and topics that the owner
    of a number does not subscribe to.
    """

    order: MapOrder = MapOrder.JAVA_HASH
    bug_compat: bool = False

    name: ClassVar[str] = "stream-join-sticky"
    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)
    needs_equal_subscriptions: ClassVar[bool] = True

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """The numbers that the member was assigned, and ``generation`` for an epoch.

        For clients that keep no user data of their assignments: the generation, too, grows with every
        assignment, so a zombie's claim is the older one either way.
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
        """Assign; the result says the new epoch, which travels in the assignment's user data."""
        joined = {
            member: [topic for topic in dict.fromkeys(sub.topics) if _exists(topics, topic)]
            for member, sub in subscriptions.items()
        }
        told = {member: decode_join_data(sub.user_data) for member, sub in subscriptions.items()}
        members = java_sorted(member for member in subscriptions if joined[member])
        count = min((topics[t].partitions for listed in joined.values() for t in listed), default=0)
        claims = [
            (told[member].epoch, [n for n in told[member].partitions if 0 <= n < count]) for member in members
        ]
        numbers = dict(zip(members, choose_numbers(count, len(members), newest_owner(claims)), strict=True))
        latest = max((data.epoch for data in told.values()), default=NO_EPOCH)
        epoch = min(max(latest, NO_EPOCH), _HIGHEST_EPOCH - 1) + 1
        return AssignmentResult(
            {
                member: [TopicPartition(t, n) for t in joined[member] for n in numbers.get(member, ())]
                for member in subscriptions
            },
            user_data=encode_epoch(epoch),
            epoch=epoch,
        )


def _exists(topics: Mapping[str, TopicMetadata], topic: str) -> bool:
    return topic in topics and topics[topic].partitions > 0


def choose_numbers(count: int, members: int, owner: Mapping[int, int]) -> list[list[int]]:
    """Numbers 0 to ``count`` - 1 to members, ascending; ``owner``: who had which.

    Every member chooses once in a round, so they differ by one at most; in the last round, which may
    not reach everybody, those who keep something come first.
    """
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
    """Who has the most left of its own: ``longest`` is a heap that remembers older, longer lengths."""
    while True:
        length, member = longest[0]
        actual = len(own[member])
        if actual == -length:
            return member
        if actual:
            heapreplace(longest, (-actual, member))
        else:
            heappop(longest)
