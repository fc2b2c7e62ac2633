"""The application's rebalance listener (ConsumerRebalanceListener), and the consumer's calls of it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.committer import OffsetCommitter
from groupstorm.clients.consumer.errors import ConsumerError, ListenerFailed
from groupstorm.clients.consumer.fetch_buffer import FetchBuffer
from groupstorm.clients.operations import CallbackKind, RunCallback

_METHODS: Mapping[CallbackKind, str] = {
    CallbackKind.ASSIGNED: "on_partitions_assigned",
    CallbackKind.REVOKED: "on_partitions_revoked",
    CallbackKind.LOST: "on_partitions_lost",
}


class RebalanceListener:
    """Override the methods that you need. They may be plain or ``async``; the rebalance waits for them.

    Each gets only the partitions that come or go. A call for revoked or lost partitions begins when the
    application asks for its next record, so that it has processed all of theirs; the consumer gives out no
    more records of these partitions. Records of the other partitions go on during the call.
    """

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These are new; none in a generation that changes nothing for this consumer.

        Their records begin when this method has returned; a `seek` in it sets the first offset.
        """

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These will go. The consumer still owns them: this method may commit their offsets."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These are gone and may have other owners: a commit fails. By default as revoked, like Kafka."""
        return self.on_partitions_revoked(partitions)


class ListenerCalls:
    """Calls ``listener``, which may be replaced between two calls; None: the application has none.

    ``commits_revoked``: whether partitions that an assignment takes away are committed before the call.
    ``on_failure`` gets what the listener raises, for the next poll() to raise. ``on_return`` is called after
    each call.
    """

    def __init__(
        self,
        listener: RebalanceListener | None,
        buffer: FetchBuffer,
        committer: OffsetCommitter,
        commits_revoked: bool,
        on_failure: Callable[[ConsumerError], None],
        on_return: Callable[[], None],
    ) -> None:
        self.listener = listener
        #: Whether a method of the listener is running.
        self.running = False
        self._buffer = buffer
        self._committer = committer
        self._commits_revoked = commits_revoked
        self._on_failure = on_failure
        self._on_return = on_return

    async def run(self, operation: RunCallback) -> bool:
        """Call the listener's method for ``operation``. Returns whether it has raised."""
        partitions, is_assigned = operation.partitions, operation.kind is CallbackKind.ASSIGNED
        if is_assigned:
            self._buffer.hold(partitions)
        elif operation.cause == "assignment" and self._commits_revoked:
            await self._commit_revoked(partitions)
        call = asyncio.create_task(self._call(operation))
        self.running = True
        try:
            await _until_returned(call)
            problem = asyncio.CancelledError() if call.cancelled() else call.exception()
            if problem is not None:
                failed = ListenerFailed(f"{_METHODS[operation.kind]}: {problem!r}")
                failed.__cause__ = problem
                self._on_failure(failed)
            return problem is not None
        finally:
            call.cancel()
            self.running = False
            if is_assigned:
                self._buffer.hold(())
            else:
                self._buffer.forget(partitions)
            self._on_return()

    async def _commit_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Records of these were given out during the round too: Kafka's consumer commits before it only."""
        with contextlib.suppress(ConsumerError):  # the next owner reads them again, as after any lost commit
            await self._committer.commit(self._buffer.to_commit(partitions))

    async def _call(self, operation: RunCallback) -> None:
        if self.listener is not None:
            answer = getattr(self.listener, _METHODS[operation.kind])(operation.partitions)
            if inspect.isawaitable(answer):
                await answer


async def _until_returned(call: asyncio.Task[None]) -> None:
    """Wait for ``call``. A first cancellation waits for it too, a second one does not.

    close() cancels the task that calls the listener. It may have begun a call in the same turn of the event
    loop: the listener is told of partitions that it has loaded, or never of them, as in Kafka's consumer,
    where one thread does both.
    """
    try:
        await asyncio.wait({call})
    except asyncio.CancelledError:
        await asyncio.wait({call})
        raise
