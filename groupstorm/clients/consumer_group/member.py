"""One consumer as a member of a consumer group (KIP-848) or a share group (KIP-932), for a driver to run.

Kafka has them in ConsumerMembershipManager and ConsumerHeartbeatRequestManager (4.3.1), and in
ShareMembershipManager and ShareHeartbeatRequestManager (4.4.0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.reconciling import (
    LocalAssignment,
    Reconciliation,
    Subscription,
    reconciliation,
)
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.consumer_group.timing import CommitAttempts
from groupstorm.clients.operations import (
    Disconnected,
    HeartbeatResponse,
    RefreshTopics,
    SendHeartbeat,
)
from groupstorm.coordinator.errors import NO_ERROR
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResponse
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat, ShareGroupHeartbeatResponse

#: Topic id -> its partitions, in order.
Partitions = Mapping[UUID, tuple[int, ...]]

#: "As before", in the field of the rebalance timeout.
_UNCHANGED_MS = -1


class ConsumerGroupMember(HeartbeatingMember[Partitions]):
    """One consumer's membership in a consumer group (KIP-848).

    ``topic_names``: the names of the topic ids that the client knows now.
    """

    __slots__ = (
        "_names",
        "_told",
        "_told_assignor",
        "_told_regex",
        "_told_timeout_ms",
        "_told_topics",
        "_topic_names",
    )

    def __init__(
        self,
        config: ConsumerConfig,
        member_id: str,
        topic_names: Callable[[], Mapping[UUID, str]],
        has_positions: Callable[[], bool],
        now_ms: int,
    ) -> None:
        super().__init__(config, member_id, {}, has_positions, now_ms)
        self._topic_names = topic_names
        self._names: dict[UUID, str] = {}
        self._forget()

    @property
    def missed_an_answer(self) -> bool:
        return self._told_topics is None

    @property
    def assigned_topic_ids(self) -> frozenset[UUID]:
        """The topics of the assignment that the broker sent last."""
        return frozenset(self._target.assigned)

    # -- heartbeats ------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._told_timeout_ms = _UNCHANGED_MS
        self._told_topics: frozenset[str] | None = None
        self._told_regex: str | None = None
        self._told_assignor: str | None = None
        self._told: LocalAssignment[Partitions] | None = None

    def _heartbeat_fields(self, epoch: int, joins: bool) -> ConsumerGroupHeartbeat:
        """A join carries everything, a later heartbeat what has changed (HeartbeatState.buildRequestData).

        After an error or a lost connection the next heartbeat carries everything again, apart from the rack,
        which only a join carries. What other client libraries do is in their profiles.
        """
        subscription, owned = self._subscription, self._current
        config, profile = self._config, self._config.profile
        if epoch < 0 and not profile.tells_when_leaving:
            subscription, owned = (
                Subscription(self._told_topics or frozenset(), self._told_regex),
                self._told or owned,
            )
        is_full = joins or self.missed_an_answer
        timeout_ms = config.rebalance_timeout_ms
        tells_timeout = joins or timeout_ms != self._told_timeout_ms
        tells_topics = joins or subscription.topics != self._told_topics
        regex_changed = subscription.regex != self._told_regex
        # an expression that is gone is told as an empty one
        tells_regex = regex_changed or (joins and subscription.regex is not None)
        tells_regex |= is_full and profile.tells_empty_regex
        tells_assignor = joins or config.group_remote_assignor != self._told_assignor
        tells_owned = joins or owned != self._told
        self._told_timeout_ms = timeout_ms
        self._told_topics, self._told_regex = subscription.topics, subscription.regex
        self._told_assignor = config.group_remote_assignor
        self._told = owned
        return ConsumerGroupHeartbeat(
            config.group_id,
            self.member_id,
            epoch,
            config.group_instance_id,
            config.client_rack if joins else None,
            timeout_ms if tells_timeout else _UNCHANGED_MS,
            tuple(sorted(subscription.topics)) if tells_topics else None,
            (subscription.regex or "") if tells_regex else None,
            config.group_remote_assignor if tells_assignor else None,
            tuple(sorted(owned.assigned.items())) if tells_owned else None,
            client_id=config.client_id,
        )

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


class ShareGroupMember(HeartbeatingMember[Partitions]):
    """One consumer's membership in a share group.

    The application has no rebalance listener: a member takes its partitions over as soon as it knows them,
    and commits nothing before. ``topic_names``: the names of the topic ids that the client knows now.
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
