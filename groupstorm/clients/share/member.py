"""One consumer in a share group (KIP-932): ShareMembershipManager and ShareHeartbeatRequestManager, 4.4.0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeating import no_jitter
from groupstorm.clients.consumer_group.member import ConsumerGroupMember
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat


class ShareGroupMember(ConsumerGroupMember):
    """One consumer's membership in a share group.

    It takes an assignment as soon as it comes: it owns no partition alone, so it has nothing to commit before
    it gives one up, and its application has no listener. Its heartbeats are those of a member of a consumer
    group, with fewer fields.
    """

    __slots__ = ()

    def __init__(
        self,
        config: ConsumerConfig,
        member_id: str,
        topic_names: Callable[[], Mapping[UUID, str]],
        now_ms: int,
        jitter: Callable[[], float] = no_jitter,
    ) -> None:
        super().__init__(config, member_id, topic_names, lambda: False, now_ms, jitter)

    def _heartbeat_fields(self, epoch: int, joins: bool) -> ShareGroupHeartbeat:
        told = self._fields.heartbeat(epoch, self._subscription, self._current, joins)
        return ShareGroupHeartbeat(
            told.group, told.member_id, told.member_epoch, told.rack, told.topics, client_id=told.client_id
        )

    def _begin(self, in_poll: bool, now_ms: int) -> None:
        super()._begin(True, now_ms)
