"""The connection of one share consumer to the leader of its partitions, and its share session there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.acknowledgement import AcknowledgementBatch
from groupstorm.share_records.messages import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    Request,
    Response,
    ShareAcknowledge,
    ShareFetch,
    ShareFetchResponse,
)
from groupstorm.share_records.ports import TopicPartition
from groupstorm.share_records.sessions import next_epoch
from groupstorm.storms.scenario.randomness import Stream
from groupstorm.storms.share.leader import CLOSED, RELEASED, Holder, Sent, ShareLeader
from groupstorm.storms.world.environment import Environment

Acknowledged = Mapping[TopicPartition, Sequence[AcknowledgementBatch]]


class FetchSettings(NamedTuple):
    max_records: int
    max_wait_ms: int
    has_record_limit: bool


class ShareLink:
    """One request is under way at a time; ``is_free``: none is. ``broken_until_us``: without connection."""

    def __init__(
        self,
        environment: Environment,
        leader: ShareLeader,
        holder: Holder,
        member_id: str,
        incarnation: int,
        settings: FetchSettings,
    ) -> None:
        self._clock = environment.clock
        self._latency = environment.network.latency
        self._group = environment.group
        self._leader = leader
        self._holder = holder
        self._member_id = member_id
        self._incarnation = incarnation
        self._settings = settings
        self._draws = Stream(environment.seed, "share-net", holder.name, incarnation)
        self._sent = 0
        self._connections = 0
        self._epoch = INITIAL_EPOCH
        #: The partitions of the session.
        self._session: frozenset[TopicPartition] = frozenset()
        self.is_free = True
        self.broken_until_us = 0

    @property
    def connection_id(self) -> str:
        return f"{self._holder.name}/{self._incarnation}/{self._connections}"

    @property
    def has_session(self) -> bool:
        return self._epoch != INITIAL_EPOCH

    def fetch(
        self, wanted: Sequence[TopicPartition], acks: Acknowledged, receive: Callable[[Response], None]
    ) -> None:
        """Fetch from these partitions. What an ended session had not acknowledged was released."""
        acks = acks if self.has_session else {}
        added = [one for one in wanted if one not in self._session]
        forgotten = sorted(self._session.difference(wanted))
        partitions = {one: acks.get(one, ()) for one in (*added, *acks)}
        self._session = frozenset(wanted)
        settings = self._settings
        request = ShareFetch(
            self._group,
            self._member_id,
            self._epoch,
            partitions,
            forgotten=forgotten,
            max_wait_ms=settings.max_wait_ms,
            max_records=settings.max_records,
            batch_size=settings.max_records,
            has_record_limit=settings.has_record_limit,
            connection=self.connection_id,
        )
        self._send(request, wanted, receive, RELEASED)

    def acknowledge(
        self, acks: Acknowledged, receive: Callable[[Response], None], *, is_final: bool = False
    ) -> None:
        """Acknowledge records; the final request ends the session."""
        epoch = FINAL_EPOCH if is_final else self._epoch
        request = ShareAcknowledge(self._group, self._member_id, epoch, acks)
        self._send(request, (), receive, CLOSED if is_final else RELEASED)

    def break_for(self, duration_us: int) -> bool:
        """The connection is gone, and there is none for so long. Returns whether a request was under way."""
        self._leader.disconnect(self._holder)
        self._connections += 1
        self._epoch, self._session = INITIAL_EPOCH, frozenset()
        self.broken_until_us = max(self.broken_until_us, self._clock.now_us + duration_us)
        waited, self.is_free = not self.is_free, True
        return waited

    def _send(
        self,
        request: Request,
        partitions: Sequence[TopicPartition],
        receive: Callable[[Response], None],
        returns: str,
    ) -> None:
        self.is_free = False
        self._sent += 1
        there, back = self._draws.pair(self._sent)
        answered = partial(self._answered, self._connections, back, request, receive)
        sent = Sent(self._holder, request, partitions, answered)
        self._clock.after(self._latency.at(there), self._arrive, self._connections, sent, returns)

    def _arrive(self, connection: int, sent: Sent, returns: str) -> None:
        if connection == self._connections:
            self._leader.handle(sent, returns)

    def _answered(
        self,
        connection: int,
        draw: int,
        request: Request,
        receive: Callable[[Response], None],
        response: Response,
    ) -> None:
        """The leader has answered; ``draw``: of the way back."""
        delay_us = self._latency.at(draw)
        self._clock.after(delay_us, self._deliver, connection, request, receive, response)

    def _deliver(
        self, connection: int, request: Request, receive: Callable[[Response], None], response: Response
    ) -> None:
        if connection == self._connections:
            self._take(request, response)
            receive(response)

    def _take(self, request: Request, response: Response) -> None:
        self.is_free = True
        if request.epoch == FINAL_EPOCH or response.error is not Error.NONE:
            self._epoch, self._session = INITIAL_EPOCH, frozenset()
        else:
            self._epoch = next_epoch(request.epoch)
        if isinstance(response, ShareFetchResponse) and response.error is Error.NONE:
            failed = [one for one, found in response.partitions.items() if found.error is not Error.NONE]
            self._session -= frozenset(failed)
