"""A member of the consumer protocol as the shared parts of a consumer over TCP see it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.member import ConsumerGroupMember
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.error_tables import COORDINATOR_UNKNOWN
from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import NO_GENERATION


class GroupMemberStatus:
    """``on_coordinator_moved`` and ``on_metadata`` are called when a response says so."""

    #: The broker assigns the partitions.
    is_leader = False
    #: A commit goes out with the present epoch; the member may be on its way to another one.
    is_joining = False

    def __init__(
        self,
        config: ConsumerConfig,
        member: ConsumerGroupMember,
        on_coordinator_moved: Callable[[], None],
        on_metadata: Callable[[], None],
    ) -> None:
        self.config = config
        #: The error that has ended the member.
        self.failure: str | None = None
        self._member = member
        self._on_coordinator_moved = on_coordinator_moved
        self._on_metadata = on_metadata

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        return self._member.owned

    @property
    def generation(self) -> Generation:
        epoch = self._member.epoch
        return Generation(epoch if epoch > 0 else NO_GENERATION, self._member.member_id)

    @property
    def may_commit(self) -> bool:
        return self._member.epoch > 0

    @property
    def is_settled(self) -> bool:
        return self._member.state is MemberState.STABLE

    @property
    def assigned_topic_ids(self) -> Collection[UUID]:
        return self._member.assigned_topic_ids

    def commit_answered(self, error: Error, sent: Generation) -> None:
        """Only the next heartbeat tells the member that it is out of the group (CommitRequestManager)."""
        if error in COORDINATOR_UNKNOWN:
            self._on_coordinator_moved()

    def metadata_refreshed(self) -> None:
        self._on_metadata()
