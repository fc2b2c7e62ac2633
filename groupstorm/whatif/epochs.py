"""The rounds of a consumer group (KIP-848): its epochs, each until its last partition has an owner.

The states of such a group follow from the epochs of its members, which a broker logs at DEBUG alone. The
epochs of the group, and the partitions that members take, stand in logs of every level.
"""

from __future__ import annotations

from typing import Final

from groupstorm.trace.events.coordinator import GroupEpochBumped, MemberAdded, MemberRemoved, MemberReplaced
from groupstorm.trace.events.member import PartitionsAssigned
from groupstorm.trace.rows import TracedEvent
from groupstorm.whatif.rounds import Round, cause_class

#: The cause of an epoch before which no member came or went.
_SUBSCRIPTIONS: Final = "subscriptions or topics changed"


class EpochReader:
    """Takes the events of one group in their order. ``rounds``: those that have ended.

    A round goes from one epoch to the next. It lasts until a member takes partitions for the last time: what
    members give up before they leave belongs to the next epoch.
    """

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self._open: Round | None = None
        self._cause = _SUBSCRIPTIONS
        self._members: set[str] = set()

    def add(self, time_us: int, event: TracedEvent) -> None:
        """Take an event of the group; events of other kinds change nothing."""
        if isinstance(event, MemberAdded):
            self._members.add(event.member_id)
            self._cause = cause_class(event.cause)
        elif isinstance(event, MemberReplaced):
            self._members.discard(event.previous_member_id)
            self._members.add(event.member_id)
        elif isinstance(event, MemberRemoved):
            self._members.discard(event.member_id)
            self._cause = cause_class(event.cause)
        elif isinstance(event, GroupEpochBumped):
            self.finish()
            self._open = Round(time_us, time_us, self._cause, len(self._members), completed=True)
            self._cause = _SUBSCRIPTIONS
        elif isinstance(event, PartitionsAssigned) and event.partitions and self._open is not None:
            self._open = self._open._replace(ended_us=time_us)

    def finish(self) -> None:
        """The last epoch ends with the trace."""
        if self._open is not None:
            self.rounds.append(self._open)
            self._open = None
