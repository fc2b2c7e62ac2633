"""The periodic requests of one process that become events: they arrive, and the member receives an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.requests import heartbeat
from groupstorm.coordinator.errors import NO_ERROR, REBALANCE_IN_PROGRESS, Error
from groupstorm.coordinator.messages import HeartbeatResponse, OffsetCommitResponse, Response
from groupstorm.storms.record_positions import Records
from groupstorm.storms.response_errors import first_error
from groupstorm.storms.world.commit_requests import commit_request
from groupstorm.storms.world.connection import Network
from groupstorm.storms.world.instants import moment_of
from groupstorm.storms.world.periodic_requests.schedule import HEARTBEAT, RequestSchedule
from groupstorm.storms.world.periodic_requests.sender import Sender


class RealRequests:
    """The real requests of all series. ``exact``: every request is real.

    ``follow_membership``: called when a response may have changed the membership's state.
    """

    __slots__ = (
        "_broker",
        "_clock",
        "_config",
        "_connection",
        "_exact",
        "_follow_membership",
        "_membership",
        "_records",
        "_sender",
        "_work",
        "in_touch",
        "lost",
    )

    def __init__(
        self,
        network: Network,
        records: Records,
        exact: bool,
        sender: Sender,
        follow_membership: Callable[[], None],
    ) -> None:
        self._clock = network.clock
        self._broker = network.broker
        self._records = records
        self._exact = exact
        self._sender = sender
        self._config = sender.config
        self._membership = sender.membership
        self._connection = sender.connection
        self._work = sender.work
        self._follow_membership = follow_membership
        #: The coordinator was told IN_TOUCH and counts on the heartbeats to go on; it has started the session
        #: again if one of them is answered.
        self.in_touch = False
        #: The moment at which the connection was lost: what was under way never arrives, even if its series
        #: had ended.
        self.lost = -1

    def make_real(self, schedule: RequestSchedule, k: int) -> None:
        """Let the k-th request arrive if it is sent; in exact mode it does so anyway."""
        if not self._exact and k not in schedule.real:
            schedule.real += (k,)
            self._let_arrive(schedule, k)

    def simulate_each(self, schedule: RequestSchedule) -> None:
        """Exact mode: every request of the series leaves and arrives."""
        self._clock.at_moment(self._leaves(schedule, 1), self._send, (schedule, 1))

    def _send(self, schedule: RequestSchedule, k: int) -> None:
        if schedule.is_sent(k):
            self._let_arrive(schedule, k)
            self._clock.at_moment(self._leaves(schedule, k + 1), self._send, (schedule, k + 1))

    def _leaves(self, schedule: RequestSchedule, k: int) -> int:
        """The moment at which the k-th request leaves; now, if that has passed."""
        return moment_of(max(schedule.sent_us(k), self._clock.now_us), schedule.leaves_order)

    def _let_arrive(self, schedule: RequestSchedule, k: int) -> None:
        clock = self._clock
        arrival_us = max(schedule.arrival_us(k), clock.now_us)
        clock.at_moment(moment_of(arrival_us, schedule.order), self._arrive, (schedule, k))

    def _arrive(self, schedule: RequestSchedule, k: int) -> None:
        left = moment_of(schedule.sent_us(k), schedule.leaves_order)
        is_lost = left < self.lost < moment_of(schedule.arrival_us(k), schedule.order)
        if not schedule.is_sent(k) or is_lost:
            schedule.forget(k)
            return
        if self._broker.is_writing:
            self._make_next_real(schedule, k)  # it may arrive before this one is answered
        if schedule.api == HEARTBEAT:
            self._heartbeat_arrives(schedule, k)
        else:
            self._commit_arrives(schedule, k)

    def _heartbeat_arrives(self, schedule: RequestSchedule, k: int) -> None:
        error = self._broker.heartbeat(self._config, schedule.generation)
        if error is None or error is NO_ERROR or error is REBALANCE_IN_PROGRESS:
            self.in_touch = False  # the coordinator has started the session again
        elif not schedule.refused:
            schedule.refused = k
        if error is not None:
            self._answered(schedule, k, error)
        else:
            request = heartbeat(self._config, schedule.generation)
            self._broker.handle(request, partial(self._heartbeat_responded, schedule, k))

    def _heartbeat_responded(self, schedule: RequestSchedule, k: int, response: Response) -> None:
        assert isinstance(response, HeartbeatResponse)
        self._answered(schedule, k, response.error)

    def _commit_arrives(self, schedule: RequestSchedule, k: int) -> None:
        positions = schedule.under_way
        if schedule.end_us is None:
            positions = self._work.loop.polled_positions(schedule.sent_us(k))
        if positions:
            sent = schedule.generation_of(k)
            request = commit_request(self._config, positions, sent)
            self._broker.handle(request, partial(self._commit_responded, schedule, k, positions))
            if not schedule.refused and not self._broker.is_failing:
                self._accept(schedule, k, positions)  # its answer may wait for a write, and says no more
            if self._broker.is_of_earlier_epoch(sent):
                self._make_next_real(schedule, k)  # the member may not know its epoch by then

    def _accept(self, schedule: RequestSchedule, k: int, positions: Mapping[TopicPartition, int]) -> None:
        if schedule.settled < k:
            schedule.settled = k
            self._records.commit(positions)

    def _commit_responded(
        self,
        schedule: RequestSchedule,
        k: int,
        positions: Mapping[TopicPartition, int],
        response: Response,
    ) -> None:
        assert isinstance(response, OffsetCommitResponse)
        error = first_error(response)
        if error is NO_ERROR:
            self._accept(schedule, k, positions)
        elif error is not Error.COORDINATOR_NOT_AVAILABLE and not schedule.refused:
            schedule.refused = k  # at once; a write that failed says COORDINATOR_NOT_AVAILABLE
        self._answered(schedule, k, error)

    def _answered(self, schedule: RequestSchedule, k: int, error: Error) -> None:
        """The coordinator has answered a real request: an error travels to the member."""
        if error is NO_ERROR:
            return  # the member goes on as before
        connection = schedule.connection
        latency_us = connection.periodic_response_latency_us(schedule.sent_us(k))
        leaves_us = connection.response_passes_us(self._clock.now_us)
        moment = moment_of(leaves_us + latency_us, connection.response_order)
        self._clock.at_moment(moment, self._receive, (schedule, error))
        self._make_next_real(schedule, k)

    def _make_next_real(self, schedule: RequestSchedule, k: int) -> None:
        """Let the request behind the k-th arrive if it is sent: its answer may say more than the k-th's."""
        if not self._exact and k + 1 not in schedule.real:
            schedule.real += (k + 1,)
            self._clock.at_moment(self._leaves(schedule, k + 1), self._send_next, (schedule, k + 1))

    def _send_next(self, schedule: RequestSchedule, k: int) -> None:
        """The request behind a real one: mostly its series has ended by now."""
        if schedule.is_sent(k):
            self._let_arrive(schedule, k)
        else:
            schedule.forget(k)

    def _receive(self, schedule: RequestSchedule, error: Error) -> None:
        """The member receives the error of a response, unless its connection was lost meanwhile."""
        if not self._sender.receives() or schedule.epoch != self._connection.epoch:
            return
        if schedule.api == HEARTBEAT:
            self._sender.heartbeat_answered(error, schedule.generation)
        else:
            self._membership.commit_answered(error, schedule.generation)
        self._follow_membership()
        self._sender.nudge()
