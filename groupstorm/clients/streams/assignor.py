"""A thread's subscriptions and assignments, and its assignor if it leads.

StreamsPartitionAssignor belongs to one thread and has state, unlike other assignors: the version of
SubscriptionInfo that it uses at present, and a number that makes every subscription differ from the last one
(KAFKA-10455), so that a member that joins again starts a rebalance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.contract import AssignmentResult, RebalanceProtocol, TopicMetadata
from groupstorm.assignors.streams.leader import Application, Rebalance, StreamsMember, rebalance
from groupstorm.assignors.userdata import Subscription, TopicPartition
from groupstorm.assignors.userdata.streams import (
    EARLIEST_PROBEABLE_VERSION,
    NO_REBALANCE_MS,
    AssignmentInfo,
    AssignorError,
    SubscriptionInfo,
    TaskId,
    decode_assignment_info,
    encode_subscription_info,
)

#: The protocol's name in JoinGroup.
STREAM = "stream"
_INT8_SPAN = 256
_INT8_MAX = 127


class FollowUp(NamedTuple):
    """Another rebalance that an assignment asks for. ``at_ms``: when; None: when standbys have caught up.

    ``cause``: as in `events.FollowUpScheduled`.
    """

    cause: str
    at_ms: int | None


class StreamsPartitionAssignor:
    """``offset_sums`` returns the thread's present offset sums, ``application`` the leader's present view of
    the application.

    ``version``: the latest SubscriptionInfo that its release knows. ``on_placed`` gets the leader's decision,
    ``on_version`` each change of the version that version probing makes, up or down.
    """

    name = STREAM
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    needs_equal_subscriptions = True

    def __init__(
        self,
        process: UUID,
        version: int,
        client_tags: Mapping[str, str],
        offset_sums: Callable[[], Mapping[TaskId, int]],
        application: Callable[[], Application],
        now_ms: Callable[[], int],
        on_placed: Callable[[Rebalance], None],
        on_version: Callable[[int, str], None],
    ) -> None:
        self.used_version = version
        self._process = process
        self._version = version
        self._client_tags = client_tags
        self._offset_sums = offset_sums
        self._application = application
        self._now_ms = now_ms
        self._on_placed = on_placed
        self._on_version = on_version
        self._unique = 0

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """The subscription of the next JoinGroup (subscriptionUserData)."""
        unique = self._unique if self._unique <= _INT8_MAX else self._unique - _INT8_SPAN
        self._unique = (self._unique + 1) % _INT8_SPAN
        return encode_subscription_info(
            SubscriptionInfo(
                self.used_version,
                self._version,
                self._process,
                None,
                self._offset_sums(),
                unique,
                AssignorError.NONE,
                self._client_tags,
            )
        )

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """Lead: bytes of subscriptions in, bytes of assignments out."""
        members = {
            name: StreamsMember(subscription.user_data or b"", subscription.owned, subscription.rack)
            for name, subscription in subscriptions.items()
        }
        found = rebalance(self._application(), members, self._now_ms())
        self._on_placed(found)
        return AssignmentResult(
            {name: own.partitions for name, own in found.assignments.items()},
            user_data_of={name: own.user_data for name, own in found.assignments.items()},
        )

    def on_assignment(self, user_data: bytes | None) -> tuple[AssignmentInfo, FollowUp | None]:
        """Read a new assignment (onAssignment). Returns it and the follow-up rebalance that it asks for."""
        info = decode_assignment_info(user_data or b"")
        if self._changes_version(info):
            return info, FollowUp("version-probing", 0)
        if info.next_rebalance_ms == 0:
            return info, FollowUp("tasks-change-owner", 0)
        if info.error_code == AssignorError.IMBALANCED_ASSIGNMENT:
            return info, FollowUp("watching", None)
        if info.next_rebalance_ms == NO_REBALANCE_MS:
            return info, None
        return info, FollowUp("probing", info.next_rebalance_ms)

    def _changes_version(self, info: AssignmentInfo) -> bool:
        """maybeUpdateSubscriptionVersion: up if all members know more, down if a member knows less.

        An assignment of our version 12 answers a subscription of version 11, the latest version.
        """
        if info.version < EARLIEST_PROBEABLE_VERSION:
            return False
        common = info.commonly_supported_version
        if common > self.used_version:
            self.used_version = common
            self._on_version(common, "upgrade")
            return True
        if info.version < self.used_version:
            self.used_version = common
            self._on_version(common, "downgrade")
            return True
        return False
