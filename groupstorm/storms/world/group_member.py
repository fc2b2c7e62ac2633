"""A member of the group, of either protocol, as the parts of its process see it."""

from __future__ import annotations

from typing import Protocol

from groupstorm.assignors.contract import RebalanceProtocol
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import LeaveGroup


class GroupMember(Protocol):
    """`clients.membership.Membership`, or `consumer_group.view.ConsumerGroupView`."""

    coordinator_known: bool
    #: The exception that poll() throws; None as long as the consumer runs.
    failure: str | None

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        """The partitions that the member owns as far as it knows."""
        ...

    @property
    def generation(self) -> Generation:
        """The generation and the member id; of a consumer group's member, its epoch and id."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether it has joined and asks for nothing more."""
        ...

    @property
    def rejoin_needed(self) -> bool:
        """Whether the next poll() matters to the member."""
        ...

    @property
    def awaits_poll(self) -> bool:
        """Whether the member waits for poll() also with a client that joins again at once."""
        ...

    @property
    def heartbeating(self) -> bool:
        """Whether it sends heartbeats."""
        ...

    @property
    def lost_cause(self) -> str:
        """Why it has lost what it owns; "" if it has not."""
        ...

    @property
    def rebalance_protocol(self) -> RebalanceProtocol: ...

    def poll_timed_out(self) -> LeaveGroup | None:
        """max.poll.interval.ms has passed without a poll(). Returns a request to send."""
        ...

    def commit_answered(self, error: Error, sent: Generation) -> None:
        """A commit was answered that had been sent in that generation."""
        ...
