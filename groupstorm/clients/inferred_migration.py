"""The coordinator's events of a group that migrates between the protocols (KIP-848), inferred. Sans-IO.

At any time the group is a classic group or a consumer group, and the inference of that kind is in charge. The
group is taken for

* a consumer group if a heartbeat of the new protocol, or a JoinGroup whose response names no leader, was
  answered without an error;
* a classic group if the response to a JoinGroup names a leader, or if the last member of the new protocol has
  left, classic members are there, and `group.consumer.migration.policy` allows the downgrade.

In a consumer group, classic members are known by what they own: their JoinGroup says it before a round, the
response to their SyncGroup after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from groupstorm.assignors.userdata import (
    TopicPartition,
    UserDataError,
    decode_subscription,
)
from groupstorm.clients.inferred_consumer_group import InferredConsumerGroup, InferredMember, Owned
from groupstorm.clients.inferred_coordinator import (
    ClassicResponses,
    InferredCoordinator,
    assigned_partitions,
)
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause

#: Errors after which a classic member is no longer in its group.
_OUT = frozenset({Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID})


class InferredMigration(ClassicResponses):
    """The coordinator of one group. ``emit`` takes the events.

    ``topic_names``: topic id -> name; ``topics``: name -> number of partitions, of the group's topics;
    ``downgrades``: whether the broker's policy lets the group become a classic one again.
    """

    def __init__(
        self,
        group: str,
        emit: Callable[[events.Event], None],
        topic_names: Callable[[], Mapping[UUID, str]],
        topics: Callable[[], Mapping[str, int]],
        *,
        downgrades: bool,
    ) -> None:
        super().__init__(group, emit)
        self._topic_names = topic_names
        self._topics = topics
        self._downgrades = downgrades
        self._classic = InferredCoordinator(group, emit)
        self._consumer: InferredConsumerGroup | None = None
        #: The partitions of classic members by their last SyncGroup.
        self._assigned: dict[str, Owned] = {}

    def member_gone(self, client_id: str) -> None:
        """The process has died: its session goes on for a while."""
        if self._consumer is not None:
            self._consumer.member_gone(client_id)

    def request_sent(self, request: messages.Request) -> None:
        """A member sends ``request``."""
        consumer = self._consumer
        if consumer is None:
            self._classic.request_sent(request)
        elif not isinstance(request, messages.JoinGroup):
            consumer.request_sent(request)
        elif request.member_id:
            consumer.tells(request.member_id, self._owned(request))

    def response_received(
        self, request: messages.Request, response: messages.Response | Disconnected
    ) -> None:
        """A member received the response to ``request``, or lost its connection."""
        if isinstance(request, messages.ConsumerGroupHeartbeat):
            self._group_heartbeat_received(request, response)
            return
        if (
            isinstance(request, messages.JoinGroup)
            and isinstance(response, messages.JoinGroupResponse)
            and response.error is Error.NONE
        ):
            if self._consumer is not None and response.leader:
                self._downgrade_without_others(self._consumer)
            elif self._consumer is None and not response.leader:
                self._upgrade()
        if self._consumer is not None:
            self._classic_received(request, response)
            return
        self._classic.response_received(request, response)
        if isinstance(response, messages.SyncGroupResponse) and response.error is Error.NONE:
            assert isinstance(request, messages.SyncGroup)
            self._assigned[request.member_id] = self._by_id(assigned_partitions(response) or ())

    # -- which kind of group it is ---------------------------------------------------------------

    def _group_heartbeat_received(
        self, request: messages.ConsumerGroupHeartbeat, response: messages.Response | Disconnected
    ) -> None:
        is_member = (
            isinstance(response, messages.ConsumerGroupHeartbeatResponse) and response.error is Error.NONE
        )
        if self._consumer is None and is_member and request.member_epoch >= 0:
            self._upgrade()
        consumer = self._consumer
        if consumer is None:
            return
        if is_member and request.member_epoch == -1 and self._is_last_of_protocol(consumer, request):
            self._downgrade(consumer, [request.member_id], Cause.LEFT)
        else:
            consumer.response_received(request, response)

    def _is_last_of_protocol(
        self, consumer: InferredConsumerGroup, request: messages.ConsumerGroupHeartbeat
    ) -> bool:
        others = [one.classic for one_id, one in consumer.members.items() if one_id != request.member_id]
        return self._downgrades and request.member_id in consumer.members and bool(others) and all(others)

    def _upgrade(self) -> None:
        classic, instances = self._classic, self._classic.instances
        consumer = InferredConsumerGroup(self._group, self._emit, self._topic_names, self._topics)
        members = {
            member_id: InferredMember(
                client_id, instances.get(member_id), assigned=self._assigned.get(member_id, frozenset())
            )
            for member_id, client_id in classic.members.items()
        }
        if members:
            self._emit(events.GroupConverted(self._group, classic.generation, Cause.UPGRADED))
            consumer.upgrade(classic.state.value, classic.generation, members)
        elif classic.generation:
            self._emit(events.GroupCreated(self._group, "join"))
        self._consumer = consumer

    def _downgrade(self, consumer: InferredConsumerGroup, leaving: Iterable[str], cause: Cause) -> None:
        """The last members of the new protocol are out of the group: the others rebalance."""
        for member_id in leaving:
            consumer.remove(member_id, cause)
        self._go_on_as_classic(consumer)
        self._classic.prepare(Cause.DOWNGRADED)

    def _downgrade_without_others(self, consumer: InferredConsumerGroup) -> None:
        """A JoinGroup was answered as in a classic group: the members of the new protocol are gone."""
        gone = [member_id for member_id, member in consumer.members.items() if not member.classic]
        if len(gone) < len(consumer.members):
            self._downgrade(consumer, gone, Cause.SESSION_EXPIRED)
        else:  # a new group
            self._emit(events.GroupCreated(self._group, "join"))
            self._classic, self._consumer = InferredCoordinator(self._group, self._emit), None

    def _go_on_as_classic(self, consumer: InferredConsumerGroup) -> None:
        self._emit(events.GroupConverted(self._group, consumer.epoch, Cause.DOWNGRADED))
        members = {member_id: member.client_id for member_id, member in consumer.members.items()}
        instances = {
            member.instance: member_id for member_id, member in consumer.members.items() if member.instance
        }
        self._classic = InferredCoordinator(self._group, self._emit)
        # the group epoch is inferred and may be too high: the next generation has to be above this
        reached = max((member.epoch for member in consumer.members.values()), default=0)
        self._classic.downgrade(consumer.state, reached, members, instances)
        self._consumer = None
        self._assigned.clear()

    # -- classic members of a consumer group -----------------------------------------------------

    def _join_received(self, request: messages.JoinGroup, response: messages.JoinGroupResponse) -> None:
        consumer = self._group_now()
        if response.error is not Error.NONE:
            consumer.answered(request.member_id)
            if response.error in _OUT and request.member_id in consumer.members:
                consumer.fenced(request.member_id)
            return
        member = consumer.known(
            response.member_id, request.client_id, request.group_instance_id, classic=True
        )
        if self._downgrades and all(one.classic for one in consumer.members.values()):
            # a static member has taken the place of the last one of the new protocol: no rebalance
            self._go_on_as_classic(consumer)
        else:
            member.owned = self._owned(request)
            consumer.reached(response.member_id, response.generation, member.assigned & member.owned)

    def _sync_received(
        self, request: messages.SyncGroup, response: messages.SyncGroupResponse
    ) -> tuple[str, tuple[str, ...] | None]:
        consumer = self._group_now()
        member = consumer.members.get(request.member_id)
        if member is None:
            return request.client_id, None
        if response.error is Error.NONE:
            given = assigned_partitions(response) or ()
            consumer.reached(request.member_id, request.generation, self._by_id(given))
            return member.client_id, tuple(map(str, given))
        if response.error in _OUT:
            consumer.fenced(request.member_id)
        return member.client_id, None

    def _heartbeat_received(self, request: messages.Heartbeat, error: Error) -> None:
        if error in _OUT:
            self._group_now().fenced(request.member_id)

    def _member_left(self, member_id: str) -> None:
        self._group_now().left(member_id)

    def _group_now(self) -> InferredConsumerGroup:
        assert self._consumer is not None
        return self._consumer

    # -- partitions ------------------------------------------------------------------------------

    def _owned(self, request: messages.JoinGroup) -> Owned:
        """The partitions that a member owns by its subscription; nothing if it cannot be read."""
        try:
            return self._by_id(decode_subscription(request.protocols[0][1]).owned)
        except (UserDataError, IndexError):
            return frozenset()

    def _by_id(self, partitions: tuple[TopicPartition, ...]) -> Owned:
        ids = {name: topic_id for topic_id, name in self._topic_names().items()}
        return frozenset((ids[one.topic], one.partition) for one in partitions if one.topic in ids)
