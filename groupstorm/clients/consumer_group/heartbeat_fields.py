"""Which fields a heartbeat carries (ConsumerHeartbeatRequestManager.HeartbeatState of Kafka 4.3.1).

A heartbeat that joins carries everything. Later ones carry what has changed since the heartbeat before. After
an error or a lost connection the member forgets what it sent: the next heartbeat carries everything again,
apart from the rack, which only a join carries. What other client libraries do is in their profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.reconciling import LocalAssignment, Subscription
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat

#: Topic id -> its partitions, in order.
Partitions = Mapping[UUID, tuple[int, ...]]

#: "As before", in the field of the rebalance timeout.
_UNCHANGED_MS = -1


class HeartbeatFields:
    """Remembers what the broker knows."""

    __slots__ = ("_assignment", "_assignor", "_config", "_member_id", "_regex", "_timeout_ms", "_topics")

    def __init__(self, config: ConsumerConfig, member_id: str) -> None:
        self._config = config
        self._member_id = member_id
        self.forget()

    @property
    def forgotten(self) -> bool:
        """Whether the next heartbeat carries everything, and its answer tells the whole assignment."""
        return self._topics is None

    def forget(self) -> None:
        self._timeout_ms = _UNCHANGED_MS
        self._topics: frozenset[str] | None = None
        self._regex: str | None = None
        self._assignor: str | None = None
        self._assignment: LocalAssignment[Partitions] | None = None

    def heartbeat(
        self, epoch: int, subscription: Subscription, owned: LocalAssignment[Partitions], joins: bool
    ) -> ConsumerGroupHeartbeat:
        """The next heartbeat. It counts as sent."""
        config, profile = self._config, self._config.profile
        if epoch < 0 and not profile.tells_when_leaving:
            subscription, owned = (
                Subscription(self._topics or frozenset(), self._regex),
                self._assignment or owned,
            )
        is_full = joins or self.forgotten
        timeout_ms = config.rebalance_timeout_ms
        tells_timeout = joins or timeout_ms != self._timeout_ms
        tells_topics = joins or subscription.topics != self._topics
        regex_changed = subscription.regex != self._regex
        # an expression that is gone is told as an empty one
        tells_regex = regex_changed or (joins and subscription.regex is not None)
        tells_regex |= is_full and profile.tells_empty_regex
        tells_assignor = joins or config.group_remote_assignor != self._assignor
        tells_owned = joins or owned != self._assignment
        self._timeout_ms = timeout_ms
        self._topics, self._regex = subscription.topics, subscription.regex
        self._assignor = config.group_remote_assignor
        self._assignment = owned
        return ConsumerGroupHeartbeat(
            config.group_id,
            self._member_id,
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
