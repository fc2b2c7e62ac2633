"""What the responses of JoinGroup and SyncGroup do to a member's session if the round fails.

Kafka: AbstractCoordinator's JoinGroupResponseHandler and SyncGroupResponseHandler, joinGroupIfNeeded.
"""

from __future__ import annotations

from groupstorm.clients.causes import needs_member_id
from groupstorm.clients.error_tables import (
    COORDINATOR_MOVED,
    EXCEPTIONS,
    EXPECTED_OF_JOIN,
    EXPECTED_OF_SYNC,
    GENERATION_RESET,
)
from groupstorm.clients.member_session import (
    COMPLETING_REBALANCE,
    PREPARING_REBALANCE,
    Generation,
    MemberSession,
)
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import NO_GENERATION, JoinGroupResponse, SyncGroupResponse


class RoundResponses(MemberSession):
    """Reads the responses of a round. Each method returns the error that ends it, or NO_ERROR."""

    __slots__ = ()

    def _join_error(self, response: JoinGroupResponse | Disconnected) -> Error:
        """JoinGroupResponseHandler."""
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
        """SyncGroupResponseHandler."""
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
