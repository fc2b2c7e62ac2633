"""What a thread does when a rebalance gives it partitions or takes them (StreamsRebalanceListener)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.generation import Generation
from groupstorm.clients.operations import CallbackKind, Disconnected, RunCallback
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import OffsetCommitResponse, Response
from groupstorm.storms.answers import first_error
from groupstorm.storms.consumer import TAKES_TIME
from groupstorm.storms.rebalance_listener import RebalanceListener

if TYPE_CHECKING:
    from groupstorm.storms.streams.thread import StreamThread

CLOSE = "close"
_CAUSES = {CallbackKind.REVOKED: "revoked", CallbackKind.LOST: "lost"}


class TaskListener(RebalanceListener):
    """Tasks are suspended, and committed, before their partitions go; state comes before processing."""

    __slots__ = ("_stream_thread",)

    def __init__(self, thread: StreamThread) -> None:
        super().__init__(thread)
        self._stream_thread = thread

    def _give_up(self, operation: RunCallback) -> Any:
        thread = self._stream_thread
        closing = operation.cause == CLOSE
        thread.suspend(operation.partitions, CLOSE if closing else _CAUSES[operation.kind])
        positions: Mapping[TopicPartition, int] = {}
        if operation.kind is CallbackKind.REVOKED and not closing:
            # TaskManager.handleRevocation commits what it suspends
            positions = self._positions(operation.partitions)
        duration_us = self._let_go(operation)
        thread.given_up(operation.partitions)
        if not positions:
            return thread.later(duration_us)
        return self._commit(positions, duration_us)

    def _positions(self, partitions: tuple[TopicPartition, ...]) -> Mapping[TopicPartition, int]:
        """Of those of them that it owns."""
        owned = self._stream_thread.work.positions(self._stream_thread.clock.now_us)
        return {partition: position for partition, position in owned.items() if partition in partitions}

    def _commit(self, positions: Mapping[TopicPartition, int], duration_us: int) -> Any:
        """Whatever the answer is, the callback returns; what was not committed is processed again."""
        thread = self._stream_thread
        sent, returned = thread.membership.generation, thread.expected_result()

        def answered(response: Response | Disconnected) -> None:
            if isinstance(response, OffsetCommitResponse):
                error = first_error(response)
                if error is Error.NONE:
                    thread.world.commit(positions)
                thread.membership.commit_answered(error, sent)
            thread.clock.after(duration_us, returned, None)

        request = thread.offset_commit(positions, sent)
        thread.connection.send(request, thread.config.request_timeout_ms, answered)
        return TAKES_TIME

    def _take(self, added: tuple[TopicPartition, ...]) -> Any:
        self._stream_thread.take_assignment()
        return super()._take(added)

    def _starts(self, begun: tuple[TopicPartition, ...]) -> tuple[int, ...]:
        """Kafka Streams begins at the beginning where nothing is committed (auto.offset.reset)."""
        return tuple(max(0, offset) for offset in super()._starts(begun))

    def _fetch(self, added: tuple[TopicPartition, ...], generation: Generation, duration_us: int) -> None:
        super()._fetch(added, generation, duration_us)
        if self._stream_thread.alive:
            self._stream_thread.fetching([part for part in added if part in self._stream_thread.work])
