"""Where a consumer stands in its group, and what happens to that while its application is elsewhere.

What the client's heartbeat thread, its commit callbacks and its metadata tell, as plain methods (Kafka's
AbstractCoordinator and ConsumerCoordinator). No clock, no socket, no thread: a driver calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

from groupstorm.assignors.userdata import decode_subscription
from groupstorm.clients import events, requests
from groupstorm.clients.causes import REASONS, RejoinCause
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.generation import Generation
from groupstorm.clients.refusals import COORDINATOR_MOVED, COORDINATOR_UNKNOWN, GENERATION_RESET
from groupstorm.coordinator.errors import NO_ERROR, REBALANCE_IN_PROGRESS, Error
from groupstorm.coordinator.messages import (
    NO_GENERATION,
    NO_MEMBER_ID,
    Heartbeat,
    JoinGroupMember,
    LeaveGroup,
)


class MemberState(Enum):
    """AbstractCoordinator.MemberState."""

    UNJOINED = "UNJOINED"
    PREPARING_REBALANCE = "PREPARING_REBALANCE"
    COMPLETING_REBALANCE = "COMPLETING_REBALANCE"
    STABLE = "STABLE"


#: Looked up on the class, a member costs as much as a call before Python 3.12.
UNJOINED: Final = MemberState.UNJOINED
PREPARING_REBALANCE: Final = MemberState.PREPARING_REBALANCE
COMPLETING_REBALANCE: Final = MemberState.COMPLETING_REBALANCE
STABLE: Final = MemberState.STABLE
_GROUP_REBALANCING: Final = RejoinCause.GROUP_REBALANCING


class Standing:
    """The generation, the state and what the next JoinGroup will be for.

    ``emit`` takes the events that need no clock; ``topics`` gives the topic metadata (name ->
    partitions) as this client knows it now.
    """

    __slots__ = (
        "_emit",
        "_group_metadata",
        "_lost_cause",
        "_needs_join_prepare",
        "_rejoin_reason",
        "_topics",
        "_topics_assigned",
        "config",
        "coordinator_known",
        "failure",
        "generation",
        "heartbeats_in",
        "rejoin_needed",
        "state",
    )

    def __init__(
        self,
        config: ConsumerConfig,
        topics: Callable[[], Mapping[str, int]],
        emit: Callable[[events.Event], None],
    ) -> None:
        self.config = config
        self.state = UNJOINED
        #: Where the heartbeat thread sends: from the JoinGroup's answer, or the SyncGroup's, until the next
        #: JoinGroup.
        self.heartbeats_in = (
            (STABLE, COMPLETING_REBALANCE) if config.profile.heartbeats_while_syncing else (STABLE,)
        )
        self.generation = Generation()
        self.rejoin_needed = False
        #: What ended the consumer: Kafka's name of an error, or the exception that poll() would throw.
        self.failure: str | None = None
        self.coordinator_known = False
        self._topics = topics
        self._emit = emit
        self._needs_join_prepare = True
        self._lost_cause = ""
        self._rejoin_reason = ""
        #: The leader's: the topics that it assigned from, and the subscriptions of its group.
        self._topics_assigned: Mapping[str, int] | None = None
        self._group_metadata: frozenset[bytes] = frozenset()

    @property
    def heartbeating(self) -> bool:
        """Whether the heartbeat thread sends."""
        return self.state in self.heartbeats_in

    def heartbeat(self, generation: Generation) -> Heartbeat:
        """A heartbeat as it was sent in ``generation``."""
        return requests.heartbeat(self.config, generation)

    def heartbeat_answered(self, error: Error, sent: Generation) -> None:
        """HeartbeatResponseHandler: ``sent`` is the generation that the request carried."""
        if error is REBALANCE_IN_PROGRESS:
            if self.state is STABLE:
                self.request_rejoin(_GROUP_REBALANCING)
        elif error in GENERATION_RESET:
            if sent == self.generation:
                if error is Error.FENCED_INSTANCE_ID:
                    self.failure = error.name
                self._reset_and_rejoin(error.name, GENERATION_RESET[error])
                self._rejoin_reason = f"encountered {error.name} from HEARTBEAT response"
        elif error in COORDINATOR_MOVED:
            self.coordinator_known = False

    def commit_answered(self, error: Error, sent: Generation) -> None:
        """OffsetCommitResponseHandler: what a rejected commit tells the member."""
        if error is NO_ERROR:
            return
        if error is REBALANCE_IN_PROGRESS:
            if self.state is STABLE:
                self.request_rejoin(_GROUP_REBALANCING)
                self._rejoin_reason = "offset commit failed since group is already rebalancing"
        elif error is Error.FENCED_INSTANCE_ID:
            if sent == self.generation:
                self.failure = error.name
        elif error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            if sent == self.generation:
                self._reset_and_rejoin(error.name, GENERATION_RESET[error])
                self._rejoin_reason = f"encountered {error.name} from OFFSET_COMMIT response"
        elif error in COORDINATOR_UNKNOWN:
            self.coordinator_known = False

    def poll_timed_out(self) -> LeaveGroup | None:
        """max.poll.interval.ms passed without a poll(): a dynamic member leaves, to send now if any.

        A static member sends nothing, but forgets its generation as well (maybeLeaveGroup).
        """
        leave = None
        if self.config.group_instance_id is None:
            leave = self._leave_request("consumer poll timeout has expired.")
        self._reset_and_rejoin(RejoinCause.POLL_TIMEOUT, reset_member_id=True)
        return leave

    def metadata_refreshed(self) -> None:
        """New topic metadata came in: only the leader compares it (rejoinNeededOrPending)."""
        before, now = self._topics_assigned, self._topics()
        if before is None or before is now or self.rejoin_needed:
            return
        watched = (decode_subscription(metadata).topics for metadata in self._group_metadata)
        if any(before.get(topic) != now.get(topic) for topics in watched for topic in topics):
            self.request_rejoin(RejoinCause.METADATA_CHANGED)

    def _watch_topics(self, group: Sequence[JoinGroupMember]) -> None:
        """The leader watches the topics of the whole ``group`` (updateGroupSubscription)."""
        self._group_metadata = frozenset(member.metadata for member in group)
        self._topics_assigned = self._topics()

    def request_rejoin(self, cause: str) -> None:
        """Note that the member has to join: the event tells the first cause, JoinGroup the last."""
        if isinstance(cause, RejoinCause):
            self._rejoin_reason = REASONS[cause]
        if self.rejoin_needed:
            return
        self.rejoin_needed = True
        config, generation = self.config, self.generation
        self._emit(
            events.RejoinRequested(
                config.group_id, config.client_id, generation.member_id, generation.id, str(cause)
            )
        )

    def _leave_request(self, reason: str) -> LeaveGroup | None:
        """None where there is nobody to tell, or nothing to leave."""
        if not self.coordinator_known or self.state is UNJOINED or not self.generation.member_id:
            return None
        return requests.leave_group(self.config, self.generation, reason)

    def _generation_is_reset(self) -> bool:
        return self.generation.id == NO_GENERATION or not self.generation.member_id

    def _reset(self, reset_member_id: bool) -> None:
        self.state = UNJOINED
        self.generation = Generation(
            NO_GENERATION, NO_MEMBER_ID if reset_member_id else self.generation.member_id
        )

    def _reset_and_rejoin(self, cause: str, reset_member_id: bool) -> None:
        """resetStateAndRejoin: what is owned counts as lost when the member next joins."""
        self.request_rejoin(cause)
        self._reset(reset_member_id)
        self._lost_cause = str(cause)
        self._needs_join_prepare = True
