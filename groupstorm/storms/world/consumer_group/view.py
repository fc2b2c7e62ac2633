"""A member of a group whose broker assigns, as the parts of its process see it that serve both protocols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupstorm.assignors.contract import COOPERATIVE
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.states import NOT_IN_GROUP, MemberState
from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import LeaveGroup


class ConsumerGroupView:
    """``on_coordinator_lost``: called if the client learns that there is no coordinator; ``on_poll_late``: if
    max.poll.interval.ms has passed since the last poll()."""

    #: Every member keeps what it is not asked to give up.
    rebalance_protocol = COOPERATIVE
    #: The member itself asks for onPartitionsLost.
    lost_cause = ""
    #: Reconciliations and callbacks begin in poll().
    awaits_poll = True

    def __init__(
        self,
        member: HeartbeatingMember[Any],
        on_coordinator_lost: Callable[[], None],
        on_poll_late: Callable[[], None],
    ) -> None:
        self._member = member
        self._on_coordinator_lost = on_coordinator_lost
        self._on_poll_late = on_poll_late
        self._generation = Generation(member.epoch, member.member_id)
        #: The number of callbacks that wait for a poll().
        self.callbacks_due = 0
        self.failure: str | None = None

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        return self._member.owned

    @property
    def generation(self) -> Generation:
        """The member's epoch and id."""
        if self._generation.id != self._member.epoch:
            self._generation = Generation(self._member.epoch, self._member.member_id)
        return self._generation

    @property
    def is_settled(self) -> bool:
        return self._member.state is MemberState.STABLE and not self.rejoin_needed

    @property
    def rejoin_needed(self) -> bool:
        return self.callbacks_due > 0 or self._member.waits_for_poll

    @property
    def heartbeating(self) -> bool:
        return self._member.state not in NOT_IN_GROUP

    @property
    def coordinator_known(self) -> bool:
        return self._member.coordinator_known

    @coordinator_known.setter
    def coordinator_known(self, known: bool) -> None:
        if not known:
            self._on_coordinator_lost()

    def poll_timed_out(self) -> LeaveGroup | None:
        """The member notices it when its network thread runs next, and leaves with a heartbeat."""
        self._on_poll_late()
        return None

    def commit_answered(self, error: Error, sent: Generation) -> None:
        """Heartbeats alone tell a member that it is out of the group."""
