"""A consumer for asyncio with cooperative rebalancing (KIP-429): partitions move one by one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self, Unpack

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.application import (
    ListenerCalls,
    OffsetCommitter,
    PollCalls,
    RebalanceListener,
)
from groupstorm.clients.consumer.errors import (
    ConsumerClosed,
    ConsumerError,
    ConsumerFailed,
    ListenerFailed,
    NoOffsetForPartition,
    NotAssigned,
    time_limit,
)
from groupstorm.clients.consumer.fetcher import Fetcher, OffsetAndTimestamp, find_offsets
from groupstorm.clients.consumer.records import ConsumerRecord, FetchBuffer
from groupstorm.clients.consumer.settings import Options, read_settings
from groupstorm.clients.operations import RunCallback
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.clients.wire.consumer import WireConsumer, monotonic_us
from groupstorm.clients.wire.logs import OffsetReset
from groupstorm.clients.wire.parts import ApplicationBehaviour, OnEvent
from groupstorm.clients.wire.waiting import ChangeNotifier
from groupstorm.coordinator.messages import CommittedOffset
from groupstorm.problems import InputError

#: The time limit of close(), Kafka's default, and the time that its connections get beyond it.
_CLOSE_TIMEOUT_MS, _CLOSE_GRACE_MS = 30_000, 1_000


class CooperativeConsumer:
    """One member of a group; it reads the partitions that the group assigns to it.

    ```python
    async with CooperativeConsumer("orders", bootstrap_servers="...", group_id="billing") as consumer:
        async for record in consumer:
            ...
    ```

    A rebalance interrupts only the partitions that move. A record counts as processed when the application
    asks for the next one: only then auto-commit may commit it, and only then the consumer gives up revoked
    partitions. One task at a time may ask for records. ``listener`` is called when partitions come and go.
    ``on_event`` gets the member's events of a trace, with microseconds of ``monotonic_us``. For ``options``
    see `Options`. Raises InputError for an invalid option.
    """

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Iterable[str],
        group_id: str,
        listener: RebalanceListener | None = None,
        on_event: OnEvent = lambda _time_us, _event: None,
        **options: Unpack[Options],
    ) -> None:
        self._settings = read_settings(topics, bootstrap_servers, group_id, options)
        self._changes = ChangeNotifier()
        self._problem: ConsumerError | None = None
        self._life: asyncio.Task[None] | None = None
        self._fetches: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._closed = False
        config, fetch = self._settings.config, self._settings.fetch
        self._member = WireConsumer(
            config,
            self._settings.bootstrap,
            on_event,
            application=ApplicationBehaviour(
                auto_offset_reset=fetch.reset,
                listen=self._listen,
                at_poll=self._at_poll,
                on_change=self._changed,
                read_committed=fetch.decoding.read_committed,
            ),
            clock=monotonic_us,
            security=self._settings.security,
        )
        self._buffer = FetchBuffer(self._member.positions, self._fetch_more)
        self._poll_calls = PollCalls(self._member, self._buffer, self._changes, self._check)
        self._committer = OffsetCommitter(self._member, self._changes, self._settings.default_api_timeout_ms)
        # the consumer protocol stops partitions before it commits and revokes them
        commits_again = config.enable_auto_commit and config.group_protocol is GroupProtocol.CLASSIC
        self._listener_calls = ListenerCalls(
            listener, self._buffer, self._committer, commits_again, self._note, self._changed
        )
        self._fetcher = Fetcher(self._member, fetch, self._buffer, self._changes.notify, self._note)

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to join the group. Raises InputError without topics and without pattern."""
        if self._closed:
            raise ConsumerClosed("a consumer cannot be opened twice")
        if self._life is not None:
            return
        if not self._subscription and self._member.membership.config.subscription_pattern is None:
            raise InputError("topics: at least one is needed, or subscribe() before the consumer is opened")
        self._member.polling.leave()
        self._life = asyncio.create_task(self._member.run())
        self._fetches = asyncio.create_task(self._fetcher.run())
        for task in (self._life, self._fetches):
            task.add_done_callback(lambda _: self._changes.notify())

    async def close(self, *, leave_group: bool | None = None) -> None:
        """Commit the records given out (with auto-commit), call the listener, leave the group.

        Another task's ``async for`` ends at once. Every call of close() waits for the same end; the consumer
        closes even if one of the calls is cancelled. ``leave_group``: True leaves also as a static member,
        False stays in the group until the session expires (KIP-1092). Raises ListenerFailed at the end.
        """
        self._buffer.processed()
        await self._close(leave_group)
        self._raise_of_listener()

    async def _close(self, leave_group: bool | None = None) -> None:
        if not self._closed:
            self._closed = True
            self._poll_calls.end()
            self._changes.notify()
            if self._life is not None and self._fetches is not None:
                self._ending = asyncio.create_task(self._end(self._life, self._fetches, leave_group))
        if self._ending is not None:
            await asyncio.shield(self._ending)

    async def _end(
        self, life: asyncio.Task[None], fetches: asyncio.Task[None], leave_group: bool | None
    ) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT_MS / 1000):
                while self._listener_calls.running:
                    await self._changes.wait()
        fetches.cancel()
        self._member.close(leave_group)
        await asyncio.wait({life, fetches}, timeout=(_CLOSE_TIMEOUT_MS + _CLOSE_GRACE_MS) / 1000)
        life.cancel()
        await asyncio.gather(life, fetches, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """As `close`; after an exception the last record, or the last batch, does not count as processed."""
        if kind is None:
            self._buffer.processed()
        else:
            self._buffer.failed()  # a revocation that has waited for the application commits, too
        await self._close()
        if kind is None:
            self._raise_of_listener()

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None = None) -> None:
        """Read these topics from the next round on, and none of a pattern. ``listener`` replaces the present
        one.
        """
        names = tuple(dict.fromkeys((topics,) if isinstance(topics, str) else topics))
        if not names:
            raise InputError("topics: at least one is needed")
        if listener is not None:
            self._listener_calls.listener = listener
        self._member.polling.resubscribe(names)

    # -- records ---------------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        try:
            return await self.getone()
        except ConsumerClosed:
            if self._life is None:
                raise
            raise StopAsyncIteration from None

    async def getone(self, *partitions: TopicPartition) -> ConsumerRecord:
        """The next record, of these partitions if any are named; waits without a time limit.

        Raises ConsumerClosed, ConsumerFailed, NoOffsetForPartition, OffsetOutOfRange, FetchRefused,
        RecordCorrupt, ListenerFailed, PollInProgress; InputError if the broker is too old or refuses the
        credentials.
        """
        record = await self._poll_calls.poll(lambda: self._buffer.next(partitions), None)
        assert record is not None  # only a timeout ends the wait without a record
        return record

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The fetched records, or the first ones within ``timeout_ms``; raises as `getone`.

        At most ``max_records``, by default max_poll_records; of these partitions if any are named.
        """
        most = self._settings.max_poll_records if max_records is None else max_records
        if most < 1:
            raise InputError(f"max_records: {most}, expected 1 or more")
        return (
            await self._poll_calls.poll(lambda: self._buffer.next_batch(most, partitions) or None, timeout_ms)
            or {}
        )

    # -- partitions ------------------------------------------------------------------------------

    @property
    def subscription(self) -> frozenset[str]:
        """The topics; with a pattern those of the assignment."""
        if self._member.membership.config.subscription_pattern is not None:
            return frozenset(partition.topic for partition in self.assignment)
        return frozenset(self._subscription)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions of this consumer; during on_partitions_revoked with the revoked ones."""
        return frozenset(self._member.membership.owned)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return self._buffer.paused

    def pause(self, *partitions: TopicPartition) -> None:
        """Give out no records of these until `resume`; the consumer keeps them. Raises NotAssigned."""
        self._buffer.pause(self._owned(partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """Give out records of these again. Raises NotAssigned."""
        self._buffer.resume(self._owned(partitions))
        self._changes.notify()

    # -- positions -------------------------------------------------------------------------------

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record; waits until it is known. Raises NotAssigned, ConsumerTimeout."""
        async with self._in_time(f"the position of {partition} is not known"):
            while (position := self._buffer.position(*self._owned([partition]))) is None:
                self._check()
                await self._changes.wait()
        return position.offset

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at ``offset``. Raises NotAssigned."""
        if offset < 0:
            raise InputError(f"offset: {offset}, expected 0 or more")
        _ = self._owned([partition])
        self._buffer.seek(partition, offset)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Without arguments all assigned partitions. Raises NotAssigned, FetchRefused, ConsumerTimeout."""
        await self._seek_to(OffsetReset.EARLIEST, partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        """As `seek_to_beginning`; with read_committed to the last stable offset."""
        await self._seek_to(OffsetReset.LATEST, partitions)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Partition -> milliseconds: the first record at or after that time. Raises as `seek_to_end`."""
        async with self._in_time("no offsets for these times"):
            return await self._find_offsets(times)

    async def commit(self, offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None) -> None:
        """Commit ``offsets``, by default those after all records given out.

        Raises CommitFailed, RebalanceInProgress, ConsumerFailed, ConsumerTimeout.
        """
        self._check_open()
        if offsets is None:
            offsets = self._buffer.to_commit(self._member.membership.owned)
        await self._committer.commit(
            {
                partition: CommittedOffset(offset) if isinstance(offset, int) else offset
                for partition, offset in offsets.items()
            }
        )

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, CommittedOffset | None]:
        """The committed offsets; None: none. Raises OffsetsRefused, ConsumerTimeout."""
        self._check_open()
        return await self._committer.committed(partitions)

    # -- parts -----------------------------------------------------------------------------------

    @property
    def _subscription(self) -> tuple[str, ...]:
        return self._member.polling.subscription

    def _owned(self, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        named = tuple(TopicPartition(*partition) for partition in partitions)
        for partition in named:
            if partition not in self._member.membership.owned:
                raise NotAssigned(partition)
        return named

    async def _seek_to(self, end: OffsetReset, partitions: Collection[TopicPartition]) -> None:
        named = self._owned(partitions) or self._member.membership.owned
        async with self._in_time("the logs' ends are not known"):
            found = await self._find_offsets(dict.fromkeys(named, int(end)))
        for partition in self._owned(named):
            self._buffer.seek(partition, found[partition].offset)

    async def _find_offsets(
        self, asked: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        return await find_offsets(self._member, asked, self._settings.fetch.decoding.read_committed)

    def _in_time(self, what: str) -> AbstractAsyncContextManager[None]:
        """Raises ConsumerClosed unless the consumer is open; ConsumerTimeout if the body takes too long."""
        self._check_open()
        return time_limit(self._settings.default_api_timeout_ms, f"{what} after")

    def _check_open(self) -> None:
        """Raise ConsumerClosed unless the consumer is open; during close() the listener may still commit."""
        if self._life is None:
            raise ConsumerClosed("the consumer is not open")
        if self._ending is not None and self._ending.done():
            raise ConsumerClosed("the consumer is closed")

    def _check(self) -> None:
        """Raise the error that this poll() has to raise, if there is one."""
        self._check_open()
        if self._closed:
            raise ConsumerClosed("the consumer is being closed")
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
        for task in (self._life, self._fetches):
            if task is not None and task.done() and not task.cancelled():
                _raise_of(task)
        if self._life is not None and self._life.done():
            raise ConsumerFailed(self._member.failure or "the consumer's tasks were cancelled")
        if missing := [one for one in self._member.without_offset if self._lacks_position(one)]:
            raise NoOffsetForPartition(missing)

    def _raise_of_listener(self) -> None:
        problem, self._problem = self._problem, None
        if isinstance(problem, ListenerFailed):
            raise problem

    def _lacks_position(self, partition: TopicPartition) -> bool:
        return partition in self._member.membership.owned and self._buffer.position(partition) is None

    def _note(self, problem: ConsumerError) -> None:
        """Keep an error for the next poll() to raise; of several the first one."""
        if self._problem is None:
            self._problem = problem
        self._changes.notify()

    def _fetch_more(self) -> None:
        self._fetcher.wake()

    def _changed(self) -> None:
        self._fetcher.wake()
        self._changes.notify()

    async def _at_poll(self) -> None:
        await self._poll_calls.at_poll()

    async def _listen(self, operation: RunCallback) -> bool:
        return await self._listener_calls.run(operation)


def _raise_of(task: asyncio.Task[None]) -> None:
    """Raise the exception of a task that has ended, or the first one of a group; nothing if it has none."""
    problem = task.exception()
    if isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    if problem is not None:
        raise problem
