"""A member's session: its generation and state, and how responses change them between two polls.

The plain methods are what the heartbeat thread, commit callbacks and metadata updates do in Kafka's client
(AbstractCoordinator, ConsumerCoordinator). There is no clock, socket or thread here: a driver calls them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

from groupstorm.assignors.userdata import decode_subscription
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.error_tables import (
    COORDINATOR_MOVED,
    COORDINATOR_UNKNOWN,
    EXCEPTIONS,
    EXPECTED_OF_JOIN,
    EXPECTED_OF_SYNC,
    GENERATION_RESET,
    REASONS,
    RejoinCause,
    needs_member_id,
)
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import NO_ERROR, REBALANCE_IN_PROGRESS, Error
from groupstorm.coordinator.messages import (
    NO_GENERATION,
    NO_MEMBER_ID,
    JoinGroupMember,
    JoinGroupResponse,
    SyncGroupResponse,
)
from groupstorm.trace.events import member as events


class Generation(NamedTuple):
    """The generation that a member believes to be part of (AbstractCoordinator.Generation).

    ``id`` -1: no generation. ``member_id`` "": the coordinator has not given one. ``protocol``: the assignor.
    """

    id: int = NO_GENERATION
    member_id: str = NO_MEMBER_ID
    protocol: str | None = None


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


class MemberSession:
    """The generation, the state and the reason of the next JoinGroup.

    ``emit`` takes the member's events. ``topics`` returns the topic metadata that this client has now
    (name -> number of partitions).
    """

    def __init__(
        self,
        config: ConsumerConfig,
        topics: Callable[[], Mapping[str, int]],
        emit: Callable[[events.Event], None],
        refresh_topics: Callable[[], None] | None = None,
    ) -> None:
        """``refresh_topics``: a member with a pattern fetches metadata before it joins (KAFKA-7126)."""
        self.config = config
        self.state = UNJOINED
        #: The states in which the heartbeat thread sends: from the JoinGroup response on, or from the
        #: SyncGroup response on, until the next JoinGroup.
        self.heartbeats_in = (
            (STABLE, COMPLETING_REBALANCE) if config.profile.heartbeats_while_syncing else (STABLE,)
        )
        self.generation = Generation()
        self.rejoin_needed = False
        #: The fatal error by Kafka's name, or the exception that poll() throws; None while it runs.
        self.failure: str | None = None
        self.coordinator_known = False
        self._topics = topics
        self._refresh_topics = refresh_topics
        self._pattern = None if config.topic_pattern is None else re.compile(config.topic_pattern)
        #: The topics of the subscription; with a pattern, those that matched when the member last looked.
        self.subscribed = config.topics
        self._emit = emit
        self._needs_join_prepare = True
        self._lost_cause = ""
        self._rejoin_reason = ""
        #: The topics that this member assigned as the leader, and the subscriptions of its group.
        self._topics_assigned: Mapping[str, int] | None = None
        self._group_metadata: frozenset[bytes] = frozenset()

    @property
    def may_commit(self) -> bool:
        """Whether the coordinator takes commits of this member now."""
        return self.state is STABLE

    @property
    def is_joining(self) -> bool:
        """Whether a round is under way: commits have to wait for its generation."""
        return self.state is PREPARING_REBALANCE or self.state is COMPLETING_REBALANCE

    @property
    def is_settled(self) -> bool:
        """Whether the member is in the group and no other round is to follow."""
        return self.state is STABLE and not self.rejoin_needed

    @property
    def assigned_topic_ids(self) -> tuple[UUID, ...]:
        """The classic protocol names topics by their names."""
        return ()

    @property
    def heartbeating(self) -> bool:
        """Whether the heartbeat thread sends."""
        return self.state in self.heartbeats_in

    def heartbeat_answered(self, error: Error, sent: Generation) -> None:
        """HeartbeatResponseHandler. ``sent``: the generation in the request."""
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
        """OffsetCommitResponseHandler. ``sent``: the generation in the request."""
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

    # -- the responses of a round: joinGroupIfNeeded -----------------------------------------------

    def _join_error(self, response: JoinGroupResponse | Disconnected) -> Error:
        """JoinGroupResponseHandler. Returns the error that ends the round, or NO_ERROR."""
        if isinstance(response, Disconnected):
            return self._connection_lost()
        error = response.error
        if error is NO_ERROR:
            if response.protocol_type not in (None, self.config.protocol_type):
                return Error.INCONSISTENT_GROUP_PROTOCOL
            if self.state is PREPARING_REBALANCE:
                return NO_ERROR
            # A heartbeat response has reset the generation meanwhile: pause, and join again.
            self._rejoin_reason = "rebalance failed due to UnjoinedGroupException"
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        if error is Error.MEMBER_ID_REQUIRED:
            self.generation = Generation(NO_GENERATION, response.member_id)
            self._rejoin_reason = needs_member_id(response.member_id)
        elif error is Error.UNKNOWN_MEMBER_ID:
            self._reset_and_rejoin(error.name, reset_member_id=True)
        return self._refused(error, EXPECTED_OF_JOIN)

    def _sync_error(self, response: SyncGroupResponse | Disconnected) -> Error:
        """SyncGroupResponseHandler. Returns as `_join_error`."""
        if isinstance(response, Disconnected):
            return self._connection_lost()
        error = response.error
        if error is NO_ERROR:
            if response.protocol_type not in (None, self.config.protocol_type):
                return Error.INCONSISTENT_GROUP_PROTOCOL
            if self.state is not COMPLETING_REBALANCE:
                # A heartbeat response has reset the generation meanwhile: this round does not count.
                error = Error.ILLEGAL_GENERATION
            elif response.protocol in (None, self.generation.protocol):
                return NO_ERROR
            else:
                return Error.INCONSISTENT_GROUP_PROTOCOL
        elif error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            self._reset_and_rejoin(error.name, reset_member_id=GENERATION_RESET[error])
        return self._refused(error, EXPECTED_OF_SYNC)

    def _refused(self, error: Error, expected: frozenset[Error]) -> Error:
        """The round has failed: the reason of the next JoinGroup names the error."""
        if error not in expected:
            return Error.UNKNOWN_SERVER_ERROR
        if error in COORDINATOR_MOVED:
            self.coordinator_known = False
        if error in EXCEPTIONS:
            self._rejoin_reason = f"rebalance failed due to {EXCEPTIONS[error]}"
        return error

    def _connection_lost(self) -> Error:
        self.coordinator_known = False
        return self._refused(Error.NETWORK_EXCEPTION, frozenset(EXCEPTIONS))

    # -- topics and the wish to join -----------------------------------------------------------------

    def metadata_refreshed(self) -> None:
        """New topic metadata has arrived (rejoinNeededOrPending).

        The leader compares it with what it assigned; with some clients each member does, for its own topics.
        A member with a pattern compares its matches.
        """
        self._watched_topics_changed()
        if self._match_topics() and self.state is not UNJOINED:
            self.request_rejoin(RejoinCause.SUBSCRIPTION_CHANGED)

    def _match_topics(self) -> bool:
        """Subscribe to the topics that match now (updatePatternSubscription). Returns if they changed."""
        if self._pattern is None:
            return False
        matching = tuple(sorted(filter(self._pattern.fullmatch, self._topics())))
        changed, self.subscribed = matching != self.subscribed, matching
        return changed

    def _match_topics_before_join(self) -> None:
        if self._pattern is not None:
            if self._refresh_topics is not None:
                self._refresh_topics()
            self._match_topics()

    def _watched_topics_changed(self) -> None:
        before, now = self._topics_assigned, self._topics()
        if before is None or before is now or self.rejoin_needed:
            return
        watched = [decode_subscription(metadata).topics for metadata in self._group_metadata]
        if self.config.profile.every_member_watches_topics:
            watched.append(self.subscribed)
        if any(before.get(topic) != now.get(topic) for topics in watched for topic in topics):
            self.request_rejoin(RejoinCause.METADATA_CHANGED)

    def _watch_group(self, group: Sequence[JoinGroupMember], is_assigned: bool) -> None:
        """The leader watches the topics of the whole ``group``, from `assignor_begins` on.

        ``is_assigned``: it need not assign, and takes the topics of now for those that it has assigned.
        """
        self._group_metadata = frozenset(member.metadata for member in group)
        self._topics_assigned = self._topics() if is_assigned else None

    def assignor_begins(self) -> None:
        """The leader has fetched metadata of the whole group's topics (updateGroupSubscription): the assignor
        runs on these, and what comes while it runs is new."""
        self._topics_assigned = self._topics()

    def _watch_own_topics(self) -> None:
        """A member that does not lead watches the topics that it subscribes to."""
        self._group_metadata = frozenset()
        self._topics_assigned = self._topics()

    def request_rejoin(self, cause: str) -> None:
        """Make the member join. The event has the first cause, the JoinGroup the last one.

        A poll timeout has an event of its own each time: the member leaves the group by it.
        """
        if isinstance(cause, RejoinCause):
            self._rejoin_reason = REASONS[cause]
        if self.rejoin_needed and cause != RejoinCause.POLL_TIMEOUT:
            return
        self.rejoin_needed = True
        config, generation = self.config, self.generation
        self._emit(
            events.RejoinRequested(
                config.group_id, config.client_id, generation.member_id, generation.id, str(cause)
            )
        )

    @property
    def awaits_poll(self) -> bool:
        """The member left because nobody polled: it joins again at the next poll(), whatever its client.

        Until then it owns what it has lost, or some clients give it up first.
        """
        gives_up = self._needs_join_prepare and self.config.profile.gives_up_as_it_leaves
        return self._lost_cause == RejoinCause.POLL_TIMEOUT and self._generation_is_reset() and not gives_up

    @property
    def lost_cause(self) -> str:
        """Why what the member owns is lost: the error that has reset its generation; "" if none has."""
        return self._lost_cause if self._generation_is_reset() else ""

    def _generation_is_reset(self) -> bool:
        return self.generation.id == NO_GENERATION or not self.generation.member_id

    def _reset(self, reset_member_id: bool) -> None:
        self.state = UNJOINED
        self.generation = Generation(
            NO_GENERATION, NO_MEMBER_ID if reset_member_id else self.generation.member_id
        )

    def _reset_and_rejoin(self, cause: str, reset_member_id: bool) -> None:
        """resetStateAndRejoin: the owned partitions are lost when the member next joins."""
        self.request_rejoin(cause)
        self._reset(reset_member_id)
        self._lost_cause = str(cause)
        self._needs_join_prepare = True
