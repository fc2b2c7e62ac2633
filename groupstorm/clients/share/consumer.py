"""A share consumer for asyncio (KIP-932): any member of the group gets any record."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from types import TracebackType
from typing import Self, TypeAlias, Unpack

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import ConsumerClosed, ConsumerError, PollInProgress, time_limit
from groupstorm.clients.consumer.records import ConsumerRecord
from groupstorm.clients.share.driver import ShareDriver
from groupstorm.clients.share.records import (
    AcknowledgementRefused,
    Acknowledgements,
    AcknowledgeType,
    HeldRecords,
    ImplicitMode,
    Woken,
)
from groupstorm.clients.share.settings import ShareOptions, read_share_settings
from groupstorm.clients.wire.waiting import ChangeNotifier
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError

#: The time limit of close(), Kafka's default.
_CLOSE_TIMEOUT_MS = 30_000

#: Gets the offsets of a partition whose acknowledgements were answered, and the error if they were refused.
OnAcknowledged: TypeAlias = Callable[[TopicPartition, frozenset[int], AcknowledgementRefused | None], None]


class ShareConsumer:
    """One member of a share group.

    ```python
    async with ShareConsumer("orders", bootstrap_servers="...", group_id="billing") as consumer:
        async for record in consumer:
            ...
    ```

    Without ``share_acknowledgement_mode="explicit"`` a record counts as accepted when the application asks
    for the next one. Names and meaning are those of Kafka's KafkaShareConsumer. One task at a time may ask
    for records. For ``options`` see `ShareOptions`. Raises InputError for an invalid option.
    """

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Iterable[str],
        group_id: str,
        **options: Unpack[ShareOptions],
    ) -> None:
        self._settings = read_share_settings(topics, bootstrap_servers, group_id, options)
        self._changes = ChangeNotifier()
        self._held = HeldRecords(self._settings.explicit, self._settings.decoding)
        self._driver = ShareDriver(self._settings, self._held, self._changes, self._note, self._answered)
        self._on_acknowledged: OnAcknowledged | None = None
        self._problem: ConsumerError | None = None
        self._life: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._polls = False
        self._woken = False

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to join the group. Raises ConsumerClosed, and InputError without topics."""
        if self._ending is not None:
            raise ConsumerClosed("a consumer cannot be opened twice")
        if self._life is not None:
            return
        if not self.subscription:
            raise InputError("topics: at least one is needed, or subscribe() before the consumer is opened")
        self._driver.subscribe(self._driver.config.topics)
        self._driver.poll()
        self._life = asyncio.create_task(self._driver.run())
        self._life.add_done_callback(lambda _: self._changes.notify())

    async def close(self, timeout_ms: int = _CLOSE_TIMEOUT_MS) -> None:
        """Send all acknowledgements, release the other records, leave the group.

        Without explicit acknowledgement the records that the application has received count as accepted.
        Every call waits for the same end, ``timeout_ms`` at most; another task's ``async for`` ends at once.
        """
        if self._ending is None and not self._settings.explicit:
            self._held.ask()
        await self._close(timeout_ms)

    async def _close(self, timeout_ms: int = _CLOSE_TIMEOUT_MS) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(timeout_ms))
            self._changes.notify()
        await asyncio.shield(self._ending)

    async def _end(self, timeout_ms: int) -> None:
        if self._life is None:
            return
        _ = self._send()
        ending = asyncio.create_task(self._driver.close())
        await asyncio.wait(
            {ending, self._life}, timeout=timeout_ms / 1000, return_when=asyncio.FIRST_COMPLETED
        )
        ending.cancel()
        self._life.cancel()
        await asyncio.gather(ending, self._life, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """As `close`; after an exception the records of the last poll are released, or with ``async for`` the
        last record.
        """
        if kind is None:
            await self.close()
        else:
            await self._close()

    @property
    def subscription(self) -> frozenset[str]:
        return frozenset(self._driver.config.topics)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this member reads; others read them, too."""
        return frozenset(self._driver.owned)

    @property
    def member_id(self) -> str:
        return self._driver.member_id

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics from now on. Raises InputError without topics."""
        names = tuple(dict.fromkeys((topics,) if isinstance(topics, str) else topics))
        if not names:
            raise InputError("topics: at least one is needed; unsubscribe() leaves the group")
        self._driver.subscribe(names)

    async def unsubscribe(self) -> None:
        """Leave the group. Records that the application has can still be acknowledged."""
        self._check()
        async with time_limit(self._settings.default_api_timeout_ms, "the group was not left within"):
            await self._driver.leave()

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """The time that records stay locked for this member, as a broker told it last; None before that."""
        return self._driver.lock_timeout_ms

    # -- records ---------------------------------------------------------------------------------

    async def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> list[ConsumerRecord]:
        """The next records, at most ``max_records``; none when the time is up. By default they are
        max_poll_records, with batch_optimized up to the end of a record batch, as with Kafka's consumer.

        Records whose renewal has succeeded come again, before all others. Raises NotAcknowledged, Woken,
        PollInProgress, FetchRefused, RecordCorrupt, ConsumerClosed, ConsumerFailed; InputError if the broker
        is too old or refuses the credentials.
        """
        fetch = self._settings.fetch
        if max_records is not None and max_records < 1:
            raise InputError(f"max_records: {max_records}, expected 1 or more")
        with self._polling():
            whole_batches = max_records is None and not fetch.strict
            return await self._poll(max_records or fetch.max_records, timeout_ms, whole_batches)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        """The next record; raises as `poll`, and ends when the consumer is closed."""
        try:
            with self._polling():
                taken: list[ConsumerRecord] = []
                if self._held.has_fetched:  # acknowledgements wait until all of these are given out
                    self._check()
                    self._held.ask()
                    _ = self._driver.poll()
                    taken = self._held.take(1)
                return (taken or await self._poll(1, None))[0]
        except ConsumerClosed:
            if self._life is None:
                raise
            raise StopAsyncIteration from None

    def wakeup(self) -> None:
        """Let the present call of `poll`, or the next one, raise Woken."""
        self._woken = True
        self._changes.notify()

    @contextlib.contextmanager
    def _polling(self) -> Iterator[None]:
        if self._polls:
            raise PollInProgress("two tasks ask for records: only one may")
        self._polls = True
        try:
            yield
        finally:
            self._polls = False

    async def _poll(
        self, most: int, timeout_ms: int | None, whole_batches: bool = False
    ) -> list[ConsumerRecord]:
        loop = asyncio.get_running_loop()
        ends_s = None if timeout_ms is None else loop.time() + timeout_ms / 1000
        self._check()
        if not self.subscription:
            raise InputError("topics: the consumer is not subscribed to any")
        self._held.ask()
        while True:
            self._check()
            if self._woken:
                self._woken = False
                raise Woken("wakeup() was called")
            _ = self._send()
            taken = self._held.take(most, whole_batches)
            if not (taken or self._held.waits_for_renewal):
                self._driver.want_records()
            again_s = loop.time() + self._driver.poll() / 1000
            if taken or (ends_s is not None and loop.time() >= ends_s):
                return taken
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(again_s if ends_s is None else min(again_s, ends_s)):
                    await self._changes.wait()

    # -- acknowledgements ------------------------------------------------------------------------

    def acknowledge(self, record: ConsumerRecord, kind: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Say what became of a record; the next `poll` or commit tells the broker.

        Raises ImplicitMode without ``share_acknowledgement_mode="explicit"``, and NotHeld for a record that
        is not among those that were received and not acknowledged yet.
        """
        if not self._settings.explicit:
            raise ImplicitMode("acknowledge() needs share_acknowledgement_mode='explicit'")
        self._held.acknowledge(record, kind)

    async def commit_sync(
        self, timeout_ms: int | None = None
    ) -> dict[TopicPartition, AcknowledgementRefused | None]:
        """Send what was acknowledged, and wait for the answers; of each partition its error, None if there is
        none. Without explicit acknowledgement all received records count as accepted.

        Raises ConsumerClosed, ConsumerTimeout.
        """
        if timeout_ms is None:
            timeout_ms = self._settings.default_api_timeout_ms
        sent = self._commit(timeout_ms)
        async with time_limit(timeout_ms, "acknowledgements were not answered within"):
            while any(one.error is None for one in sent):
                self._check()
                await self._changes.wait()
        answers: dict[TopicPartition, AcknowledgementRefused | None] = {}
        for one in sent:
            answers[one.name] = answers.get(one.name) or _refusal(one)
        return answers

    def commit_async(self) -> None:
        """`commit_sync` without waiting: the callback gets the answers. Raises ConsumerClosed."""
        _ = self._commit(self._settings.default_api_timeout_ms)

    def set_acknowledgement_commit_callback(self, callback: OnAcknowledged | None) -> None:
        """Call this with every answer to acknowledgements."""
        self._on_acknowledged = callback

    def _commit(self, timeout_ms: int) -> list[Acknowledgements]:
        self._check()
        if not self._settings.explicit:
            self._held.ask()
        sent = self._send(timeout_ms)
        self._driver.advance()
        return sent

    def _send(self, timeout_ms: int | None = None) -> list[Acknowledgements]:
        """Hand what was said since the last call to the network side."""
        said = self._held.acknowledgements()
        self._driver.acknowledge(
            said, self._settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
        )
        return said

    # -- what the network side reports -----------------------------------------------------------

    def _answered(self, done: Collection[Acknowledgements]) -> None:
        if self._on_acknowledged is not None:
            for one in done:
                self._on_acknowledged(one.name, one.offsets, _refusal(one))

    def _note(self, problem: ConsumerError) -> None:
        """Keep an error for the next poll() to raise; of several the first one."""
        if self._problem is None:
            self._problem = problem
        self._changes.notify()

    def _check(self) -> None:
        """Raise the error that this call has to raise, if there is one."""
        if self._life is None:
            raise ConsumerClosed("the consumer is not open")
        if self._ending is not None:
            raise ConsumerClosed("the consumer is closed")
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
        if self._life.done():
            self._life.result()


def _refusal(one: Acknowledgements) -> AcknowledgementRefused | None:
    return None if one.error in (None, Error.NONE) else AcknowledgementRefused(one.error.name)
