"""One consumer in a consumer group: what a driver talks to (Kafka's ConsumerMembershipManager and
ConsumerHeartbeatRequestManager, 4.3.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeat_fields import HeartbeatFields, Partitions
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.reconciling import LocalAssignment, Reconciliation, reconciliation
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.consumer_group.timing import CommitAttempts
from groupstorm.clients.operations import (
    Disconnected,
    HeartbeatRequest,
    HeartbeatResponse,
    RefreshTopics,
    SendHeartbeat,
)
from groupstorm.coordinator.errors import NO_ERROR
from groupstorm.coordinator.messages import ConsumerGroupHeartbeatResponse
from groupstorm.coordinator.share.messages import ShareGroupHeartbeatResponse


class ConsumerGroupMember(HeartbeatingMember[Partitions]):
    """One consumer's membership in a consumer group (KIP-848).

    ``topic_names``: the names of the topic ids that the client knows now.
    """

    __slots__ = ("_fields", "_names", "_topic_names")

    def __init__(
        self,
        config: ConsumerConfig,
        member_id: str,
        topic_names: Callable[[], Mapping[UUID, str]],
        has_positions: Callable[[], bool],
        now_ms: int,
    ) -> None:
        super().__init__(config, member_id, {}, has_positions, now_ms)
        self._fields = HeartbeatFields(config, member_id)
        self._topic_names = topic_names
        self._names: dict[UUID, str] = {}

    @property
    def missed_an_answer(self) -> bool:
        return self._fields.forgotten

    @property
    def assigned_topic_ids(self) -> frozenset[UUID]:
        """The topics of the assignment that the broker sent last."""
        return frozenset(self._target.assigned)

    # -- heartbeats ------------------------------------------------------------------------------

    def _heartbeat_fields(self, epoch: int, joins: bool) -> HeartbeatRequest:
        return self._fields.heartbeat(epoch, self._subscription, self._current, joins)

    def _forget(self) -> None:
        self._fields.forget()

    def answered(self, sent: SendHeartbeat, response: HeartbeatResponse | Disconnected, now_ms: int) -> None:
        super().answered(sent, response, now_ms)
        joined = sent.awaited and sent.request.member_epoch == 0 and self._has_nothing_to_acknowledge
        if joined and not isinstance(response, Disconnected) and response.error is NO_ERROR:
            self._forget()

    def _take(self, response: HeartbeatResponse) -> None:
        assert isinstance(response, ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse)
        if response.assignment is not None:
            self._assigned(
                {topic: tuple(sorted(set(numbers))) for topic, numbers in response.assignment.items()}
            )

    # -- reconciliation --------------------------------------------------------------------------

    def _begin(self, in_poll: bool, now_ms: int) -> None:
        """Commits and revocations begin in a poll(): only there are the application's positions final."""
        known = self._resolve()
        target = LocalAssignment(self._target.local_epoch, known)
        if not self._current.is_none and known == self._current.assigned:
            # the topics that are new have no name yet: the member acknowledges what it has
            self._current = target
            self._go(MemberState.ACKNOWLEDGING)
            return
        names = self._names
        assigned = sorted(
            TopicPartition(names[topic], number) for topic, numbers in known.items() for number in numbers
        )
        plan = reconciliation(target, tuple(assigned), self.owned)
        commits = self._config.enable_auto_commit
        if not in_poll and (commits or plan.revoked):
            return
        self._follow(plan)
        if commits and self._has_positions():
            deadline_ms = now_ms + self._config.rebalance_timeout_ms
            self._commit = CommitAttempts(now_ms, deadline_ms, self._backoff)
        else:
            self._commit_ended()

    def _revoked(self, plan: Reconciliation[Partitions], failed: bool) -> None:
        super()._revoked(plan, failed)
        if not failed and self._reconciliation is not None:
            topics = {partition.topic for partition in plan.assigned}
            self._names = {topic: name for topic, name in self._names.items() if name in topics}

    def _assigned(self, assigned: Partitions) -> None:
        if self._is_nothing_new(assigned):
            self._go(MemberState.STABLE)
        else:
            super()._assigned(assigned)

    @property
    def _has_nothing_to_acknowledge(self) -> bool:
        """The member has joined and got no partitions, which its client library does not acknowledge."""
        return self.state is MemberState.STABLE and self._is_nothing_new({})

    def _is_nothing_new(self, partitions: Partitions) -> bool:
        silent = not self._config.profile.acknowledges_nothing
        return silent and not partitions and self._current.is_none

    def _resolve(self) -> Partitions:
        """The part of the target whose topics have a name. Names of owned topics stay known."""
        names, target = self._topic_names(), self._target.assigned
        for topic in target:
            if topic in names:
                self._names[topic] = names[topic]
        known = {topic: numbers for topic, numbers in target.items() if topic in self._names}
        if len(known) < len(target):
            self._operations.append(RefreshTopics())
        return known

    def _forget_target(self) -> None:
        super()._forget_target()
        self._names.clear()
