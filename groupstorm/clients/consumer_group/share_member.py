"""One share consumer as a member of a share group (KIP-932): what a driver talks to.

Kafka 4.4.0 has it in ShareMembershipManager and ShareHeartbeatRequestManager. The application has no
rebalance listener: a member takes its partitions over as soon as it knows them, and commits nothing before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeat_fields import Partitions
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.reconciling import LocalAssignment
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.operations import HeartbeatResponse, RefreshTopics
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat, ShareGroupHeartbeatResponse


class ShareGroupMember(HeartbeatingMember[Partitions]):
    """One consumer's membership in a share group.

    ``topic_names``: the names of the topic ids that the client knows now.
    """

    __slots__ = ("_told_topics", "_topic_names")

    def __init__(
        self,
        config: ConsumerConfig,
        member_id: str,
        topic_names: Callable[[], Mapping[UUID, str]],
        now_ms: int,
    ) -> None:
        super().__init__(config, member_id, {}, lambda: False, now_ms)
        self._topic_names = topic_names
        self._told_topics: frozenset[str] | None = None

    @property
    def assigned_topic_ids(self) -> frozenset[UUID]:
        """The topics of the assignment that the broker sent last."""
        return frozenset(self._target.assigned)

    @property
    def missed_an_answer(self) -> bool:
        return self._told_topics is None

    def _forget(self) -> None:
        self._told_topics = None

    def _heartbeat_fields(self, epoch: int, joins: bool) -> ShareGroupHeartbeat:
        """A join tells everything, later heartbeats the topics if they are others."""
        config, topics = self._config, self._subscription.topics
        tells_topics = joins or topics != self._told_topics
        self._told_topics = topics
        return ShareGroupHeartbeat(
            config.group_id,
            self.member_id,
            epoch,
            config.client_rack if joins else None,
            tuple(sorted(topics)) if tells_topics else None,
            client_id=config.client_id,
        )

    def _take(self, response: HeartbeatResponse) -> None:
        assert isinstance(response, ShareGroupHeartbeatResponse)
        if response.assignment is not None:
            self._assigned(dict(response.assignment))

    def _begin(self, in_poll: bool, now_ms: int) -> None:
        """Nothing is committed and no callback runs: partitions are the member's at once."""
        del in_poll, now_ms
        names, target = self._topic_names(), self._target.assigned
        known: Partitions = {topic: numbers for topic, numbers in target.items() if topic in names}
        if len(known) < len(target):
            self._operations.append(RefreshTopics())
        after = LocalAssignment(self._target.local_epoch, known)
        if after == self._current:
            return
        self._own(
            tuple(
                sorted([TopicPartition(names[topic], number) for topic in known for number in known[topic]])
            )
        )
        self._current = after
        self._go(MemberState.ACKNOWLEDGING)

    def _lose(self, cause: str, then: Callable[[bool], None]) -> None:
        """There is no onPartitionsLost."""
        del cause
        then(False)
