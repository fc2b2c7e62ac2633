"""The application's side of a consumer: its calls of poll(), its commits, and its rebalance listener.

Kafka's consumer does everything inside poll(): it joins, calls the listener, commits. Here background tasks
do most of it; a step that needs the application between two records waits for its next call.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TypeVar

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import (
    CommitFailed,
    ConsumerError,
    ConsumerFailed,
    ListenerFailed,
    OffsetsRefused,
    PollInProgress,
    RebalanceInProgress,
    time_limit,
)
from groupstorm.clients.consumer.records import FetchBuffer
from groupstorm.clients.error_tables import COMMIT_RETRIED
from groupstorm.clients.operations import CallbackKind, Disconnected, RunCallback
from groupstorm.clients.requests import offset_fetch
from groupstorm.clients.wire.consumer import WireConsumer
from groupstorm.clients.wire.offsets import OFFSET_FETCH_RETRIED
from groupstorm.clients.wire.positions import NO_POSITION, by_topic
from groupstorm.clients.wire.waiting import ChangeNotifier
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetFetchResponse

_T = TypeVar("_T")

#: The time for which poll() returns fetched records at once before it lets other tasks run.
_TURN_S = 0.005


class PollCalls:
    """One application's calls of poll(). ``check`` raises an error that a call has to raise."""

    def __init__(
        self, member: WireConsumer, buffer: FetchBuffer, changes: ChangeNotifier, check: Callable[[], None]
    ) -> None:
        self._member = member
        self._buffer = buffer
        self._changes = changes
        self._check = check
        self._called = False
        self._waiting = 0
        self._inside = asyncio.Event()
        self._ended = False
        self._turn_ends_s = 0.0

    async def poll(self, take: Callable[[], _T | None], timeout_ms: int | None) -> _T | None:
        """The result of ``take`` as soon as it is not None; None when the time is up."""
        if self._called:
            raise PollInProgress("two tasks ask for records: only one may")
        self._called = True
        try:
            self._check()
            self._buffer.processed()
            if not self._is_wanted() and time.monotonic() < self._turn_ends_s:
                taken = take()
                if taken is not None:
                    self._member.polling.polled()
                    return taken
            return await self._wait(take, timeout_ms)
        finally:
            self._called = False

    async def at_poll(self) -> None:
        """Wait until the application is inside poll() or has closed its consumer."""
        self._waiting += 1
        try:
            await self._inside.wait()
        finally:
            self._waiting -= 1

    def end(self) -> None:
        """The application closes its consumer: no task waits for its calls any more."""
        self._ended = True
        self._inside.set()

    # -- parts -----------------------------------------------------------------------------------

    async def _wait(self, take: Callable[[], _T | None], timeout_ms: int | None) -> _T | None:
        loop = asyncio.get_running_loop()
        ends_s = None if timeout_ms is None else loop.time() + timeout_ms / 1000
        self._inside.set()
        self._member.polling.enter()
        try:
            await asyncio.sleep(0)
            while True:
                while self._is_wanted():
                    await asyncio.sleep(0)  # the task that waits for this call runs now
                self._check()
                taken = take()
                if taken is not None or (ends_s is not None and loop.time() >= ends_s):
                    return taken
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(ends_s):
                        await self._changes.wait()
        finally:
            if not self._ended:
                self._inside.clear()
            self._member.polling.leave()
            self._turn_ends_s = time.monotonic() + _TURN_S

    def _is_wanted(self) -> bool:
        return not self._ended and (self._waiting > 0 or self._member.polling.has_work)


class OffsetCommitter:
    """``timeout_ms``: default.api.timeout.ms. ``changes`` wakes when the membership may have changed."""

    def __init__(self, member: WireConsumer, changes: ChangeNotifier, timeout_ms: int) -> None:
        self._member = member
        self._changes = changes
        self._timeout_ms = timeout_ms

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Raises CommitFailed, RebalanceInProgress, ConsumerFailed, ConsumerTimeout.

        While the member is joining, the commit waits for the new generation: the member owns its partitions
        until its listener is called.
        """
        by_name: dict[str, dict[int, CommittedOffset]] = {}
        for (topic, number), offset in offsets.items():
            by_name.setdefault(topic, {})[number] = offset
        async with time_limit(self._timeout_ms, "no commit within"):
            while not await self._commit_once(by_name):
                await self._back_off()

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """The committed offsets; None for a partition without one. Raises OffsetsRefused, ConsumerTimeout."""
        asked = tuple(partitions)
        async with time_limit(self._timeout_ms, "no committed offsets within"):
            while (found := await self._fetch_once(asked)) is None:
                await self._back_off()
        return {partition: found.get(partition) for partition in asked}

    # -- parts -----------------------------------------------------------------------------------

    async def _back_off(self) -> None:
        await asyncio.sleep(self._member.config.retry_backoff_ms / 1000)

    async def _commit_once(self, offsets: Mapping[str, Mapping[int, CommittedOffset]]) -> bool:
        membership = self._member.membership
        while membership.is_joining and membership.failure is None:
            if self._member.closing:
                # a member that closes does not end its round
                raise RebalanceInProgress(Error.REBALANCE_IN_PROGRESS.name)
            await self._changes.wait()
        if membership.failure is not None:
            raise ConsumerFailed(membership.failure)
        if not membership.may_commit:
            raise CommitFailed(Error.UNKNOWN_MEMBER_ID.name)
        answer = await self._member.commit(offsets)
        if isinstance(answer, Disconnected) or answer in COMMIT_RETRIED:
            return False
        if answer is Error.REBALANCE_IN_PROGRESS:
            raise RebalanceInProgress(answer.name)
        if answer is Error.FENCED_INSTANCE_ID:
            raise ConsumerFailed(answer.name)
        if answer is not Error.NONE:
            raise CommitFailed(answer.name)
        return True

    async def _fetch_once(
        self, asked: Iterable[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset] | None:
        request = offset_fetch(self._member.config, by_topic(asked), self._member.membership.generation)
        answer = await self._member.ask_coordinator(request)
        if isinstance(answer, Disconnected):
            return None
        if isinstance(answer, Error):
            raise OffsetsRefused(answer.name)
        assert isinstance(answer, OffsetFetchResponse)
        errors = [answer.error, *(error for _, _, _, error in answer.partitions)]
        worst = next((error for error in errors if error is not Error.NONE), Error.NONE)
        if worst in OFFSET_FETCH_RETRIED:
            return None
        if worst is not Error.NONE:
            raise OffsetsRefused(worst.name)
        return {
            TopicPartition(topic, number): committed
            for topic, number, committed, _ in answer.partitions
            if committed.offset != NO_POSITION
        }


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
