"""A real broker for a test: Kafka in a JVM, in a container, or a cluster at an address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.broker.embedded import LoopThread
from groupstorm.clients.brokers import BrokerKind, open_broker
from groupstorm.clients.brokers.contract import BrokerUnavailable, RunningBroker, new_prefix
from groupstorm.clients.consumer.records import AbortedRecords, ConsumerRecord
from groupstorm.clients.wire.admin import (
    CONSUMER_GROUP_DESCRIBE,
    await_coordinator,
    committed_offsets,
    configure_group,
    create_topics,
    delete_group,
    delete_topics,
    describe_group,
    share_group_lag,
)
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import ClientApi, fields
from groupstorm.clients.wire.logs import append_batch, fetch_batches, log_ends
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from groupstorm.testing.arguments import (
    Setting,
    Topics,
    as_settings,
    as_topics,
    number,
    text,
)
from groupstorm.testing.broker import BrokerUnderTest
from groupstorm.testing.faults import FaultControl
from groupstorm.testing.groups import (
    NO_GROUP,
    SHARE,
    GroupUnderTest,
    GroupView,
    LogEnds,
    Progress,
    Wanted,
    topics_of,
)
from groupstorm.testing.proxy import FaultProxy
from groupstorm.testing.records import decoded
from groupstorm.testing.viewed import (
    described_classic_group,
    described_consumer_group,
    described_share_group,
)
from groupstorm.testing.waiting import WaitFuture

#: So many run at once: a test that needs other settings ends the one that was asked for least lately.
BROKERS_MAX = 2

_T = TypeVar("_T")

_Key = tuple[str, str | None, tuple[tuple[str, str], ...]]


class SharedBrokers:
    """One broker per kind and settings, started when a test first asks for it; `stop` ends them all."""

    def __init__(self) -> None:
        self._thread = LoopThread("shared-brokers")
        self._running: dict[_Key, tuple[RunningBroker, AsyncExitStack]] = {}
        self._missing: dict[_Key, str] = {}

    def get(self, kind: BrokerKind, settings: Mapping[str, str]) -> RunningBroker:
        """Raises BrokerUnavailable, each time anew, without a second attempt, and InputError."""
        key = (kind.name, kind.image, tuple(sorted(settings.items())))
        if key in self._missing:
            raise BrokerUnavailable(self._missing[key])
        if not self._thread.is_running:
            self._thread.start()
        found = self._running.pop(key, None) or self._start(key, kind, settings)
        self._running[key] = found
        while len(self._running) > BROKERS_MAX:
            self._end(next(iter(self._running)))
        return found[0]

    def _start(
        self, key: _Key, kind: BrokerKind, settings: Mapping[str, str]
    ) -> tuple[RunningBroker, AsyncExitStack]:
        opened = AsyncExitStack()
        opening = open_broker(kind, settings, lambda _events: None)
        try:
            return self._thread.run(opened.enter_async_context(opening)), opened
        except BrokerUnavailable as problem:
            self._missing[key] = str(problem)
            raise

    def _end(self, key: _Key) -> None:
        _, opened = self._running.pop(key)
        self._thread.run(opened.aclose())

    def stop(self) -> None:
        """End all of them."""
        if not self._thread.is_running:
            return
        try:
            while self._running:
                self._end(next(iter(self._running)))
        finally:
            self._thread.stop()


_CLIENT_ID = "groupstorm-testing"
_REQUEST_TIMEOUT_MS = 30_000
#: The interval at which the broker is asked about a group that a test waits for.
POLL_S = 0.05

#: The requests that describe groups of the newer types.
_DESCRIBED: Mapping[ClientApi, Callable[[Any], GroupView]] = {
    CONSUMER_GROUP_DESCRIBE: described_consumer_group,
    ClientApi(77, "ShareGroupDescribe", 1, 1): described_share_group,
}


class RealBroker(BrokerUnderTest):
    """Runs, or is connected to, as long as the context lasts.

    On a cluster at an address, and on one that tests share, topics and groups get a prefix of their own, see
    `topic` and `group`, and are deleted at the end. At an address the settings are the cluster's.
    """

    def __init__(
        self,
        kind: BrokerKind,
        topics: Topics | None = None,
        settings: Mapping[str, Setting] | None = None,
        *,
        allow_writes: bool = False,
        shared: SharedBrokers | None = None,
        faults: bool = False,
    ) -> None:
        """``shared``: take the broker from there, and leave it there; ``faults``: clients go through a proxy.

        Raises InputError for an address without ``allow_writes``.
        """
        super().__init__()
        if kind.bootstrap and not allow_writes:
            raise InputError(
                f"{kind.name}: topics and groups will be made there, under a prefix of their own, and taken"
                " away again: say allow_writes=True (pytest: --kafka-allow-writes)"
            )
        self.name = kind.name
        self._kind = kind
        self._shared = shared
        self._settings = as_settings(settings)
        self._wanted = as_topics(topics, self._settings)
        self._thread = LoopThread("real-broker")
        self._open = AsyncExitStack()
        self._groups: set[str] = set()
        self._configured: dict[str, set[str]] = {}
        self._topics: dict[str, int] = {}
        self._prefix = ""
        self._running: RunningBroker | None = None
        self._cluster: ClusterClient | None = None
        self._wants_faults = faults
        self._proxy: FaultProxy | None = None

    def start(self) -> None:
        """Raises BrokerUnavailable if this machine cannot start the broker, with one line that says what is
        missing, and InputError or ConnectionLost if the broker refuses the topics."""
        self._thread.start()
        try:
            self._thread.run(self._begin())
        except BaseException:  # any error, an interrupt too: clean up, then raise it
            self.stop()
            raise

    def stop(self) -> None:
        if not self._thread.is_running:  # stopped by the test itself
            return
        try:
            self._thread.run(self._end())
        finally:
            self._thread.stop()

    async def _begin(self) -> None:
        if self._shared is None or self._kind.bootstrap:
            opening = open_broker(self._kind, self._settings, lambda _events: None)
            self._running = await self._open.enter_async_context(opening)
        else:
            running = await asyncio.to_thread(self._shared.get, self._kind, self._settings)
            self._running = running._replace(prefix=new_prefix())
        self.name, self._prefix = self._running.name, self._running.prefix
        there, security = self._running.bootstrap, self._running.security
        self._cluster = ClusterClient(
            there, _CLIENT_ID, _REQUEST_TIMEOUT_MS, security, may_create_topics=False
        )
        self._open.callback(self._cluster.close)
        if self._wants_faults:
            await self._start_proxy(self._running)
        await self._create({self.topic(name): partitions for name, partitions in self._wanted.items()})
        await await_coordinator(self._cluster, self._prefix + _CLIENT_ID)

    async def _start_proxy(self, running: RunningBroker) -> None:
        if running.security.tls is not None:
            raise BrokerUnavailable(
                f"{self.name}: faults are carried out by a proxy, which does not speak TLS"
            )
        self._proxy = FaultProxy(running.bootstrap)
        await self._proxy.start()
        self._open.push_async_callback(self._proxy.stop)

    async def _create(self, topics: Mapping[str, int]) -> None:
        if topics:
            self._topics |= topics
            await create_topics(self._there(), topics)

    async def _end(self) -> None:
        """Delete the topics and groups that were made on a shared cluster."""
        async with self._open:
            if self._prefix and self._cluster is not None:
                await self._clean_up(self._cluster)

    async def _clean_up(self, cluster: ClusterClient) -> None:
        problems = []
        for group, names in self._configured.items():
            await configure_group(cluster, group, dict.fromkeys(names))
        for group in sorted(self._groups):
            try:
                await delete_group(cluster, group)
            except InputError as problem:
                problems.append(str(problem))
        if self._topics:
            try:
                await delete_topics(cluster, self._topics)
            except InputError as problem:
                problems.append(str(problem))
        if problems:
            raise InputError(f"{self.name}: could not be cleaned up: {'; '.join(problems)}")

    def _there(self) -> ClusterClient:
        if self._cluster is None:
            raise InputError(f"{self.name}: use it inside `with` or `async with`")
        return self._cluster

    @property
    def bootstrap_servers(self) -> str:
        self._there()
        assert self._running is not None
        reached = (
            self._running if self._proxy is None else self._running._replace(bootstrap=self._proxy.bootstrap)
        )
        return reached.address

    def topic(self, name: str) -> str:
        text("name", name)
        return name if name.startswith(self._prefix) else self._prefix + name

    def create_topic(self, name: str, partitions: int = 1) -> str:
        topic = self.topic(name)
        number("partitions", partitions, 1)
        self._thread.run(self._create({topic: partitions}))
        return topic

    def group(self, name: str) -> GroupUnderTest:
        text("name", name)
        group = name if name.startswith(self._prefix) else self._prefix + name
        self._groups.add(group)
        return _RealGroup(group, self, self._there(), self._thread)

    def configure_group(self, group: str, options: Mapping[str, str]) -> None:
        """On a shared cluster the options go with the group."""
        self._configured.setdefault(group, set()).update(options)
        self._thread.run(configure_group(self._there(), group, options))

    # faults

    def _on_faults(self, act: Callable[[FaultControl], _T]) -> _T:
        self._check_running()
        proxy = self._proxy
        if proxy is None:
            raise InputError(
                f"{self.name} is a real broker: for faults, clients have to go through a proxy: mark the test"
                " with @pytest.mark.groupstorm(faults=True)"
            )
        return self._thread.call(lambda: act(proxy))

    def _check_running(self) -> None:
        self._there()

    # records

    def _partitions(self, topic: str) -> int:
        cluster = self._there()
        self._thread.run(cluster.refresh([topic]))
        if topic not in cluster.topics:
            raise InputError(f"topic: {topic!r}: {self.name} has no such topic: create_topic makes one")
        return cluster.topics[topic]

    def _append(self, topic: str, partition: int, batch: bytes) -> int:
        return self._thread.run(append_batch(self._there(), TopicPartition(topic, partition), batch))

    def _read(self, topic: str, partition: int, committed_only: bool) -> Sequence[ConsumerRecord]:
        return self._thread.run(self._read_all(TopicPartition(topic, partition), committed_only))

    async def _read_all(self, partition: TopicPartition, committed_only: bool) -> list[ConsumerRecord]:
        """Up to the end that the log has when it is asked for."""
        cluster = self._there()
        offset, end = (await log_ends(cluster, [partition.topic], committed_only))[partition]
        found: list[ConsumerRecord] = []
        while offset < end:
            data, aborted = await fetch_batches(cluster, partition, offset, committed_only)
            dropped = [AbortedRecords(*one) for one in aborted]
            more, offset = decoded(partition, offset, data, dropped, committed_only)
            found += more
        return [record for record in found if record.offset < end]


class _RealGroup(GroupUnderTest):
    """A real broker does not tell its events: while a test waits, it is asked every `POLL_S`."""

    def __init__(self, group_id: str, broker: RealBroker, cluster: ClusterClient, thread: LoopThread) -> None:
        super().__init__(group_id)
        self._broker = broker
        self._cluster = cluster
        self._thread = thread

    def view(self) -> GroupView:
        return self._thread.run(self._look())

    def configure(self, settings: Mapping[str, Setting]) -> None:
        self._broker.configure_group(self.id, as_settings(settings))

    def _topic(self, name: str) -> str:
        return self._broker.topic(name)

    def _progress(self, topics: Sequence[str] | None) -> Progress:
        return self._thread.run(self._look_at_progress(topics))

    async def _look_at_progress(self, topics: Sequence[str] | None) -> Progress:
        view = await self._look()
        lag = await share_group_lag(self._cluster, self.id) if view.type == SHARE else {}
        committed = {} if lag else await committed_offsets(self._cluster, self.id)
        assigned = view.owners.keys()
        wanted = topics_of([*committed, *lag, *assigned]) if topics is None else topics
        ends = await log_ends(self._cluster, {*wanted, *topics_of(lag)})
        by_partition = {f"{one.topic}-{one.partition}": LogEnds(*found) for one, found in ends.items()}
        done = {one: by_partition[one].end - left for one, left in lag.items() if one in by_partition}
        return Progress(by_partition, committed | done, assigned)

    def _waiting_caught_up(self, topics: Sequence[str]) -> WaitFuture:
        return self._thread.begin(self._until_caught_up(topics))

    async def _until_caught_up(self, topics: Sequence[str]) -> None:
        while not (await self._look_at_progress(topics or None)).is_at_end(topics):
            await asyncio.sleep(POLL_S)

    async def _look(self) -> GroupView:
        classic = described_classic_group(await describe_group(self._cluster, self.id))
        return await self._look_for_newer_types() if classic == NO_GROUP else classic

    async def _look_for_newer_types(self) -> GroupView:
        """The group if it is one of another type: DescribeGroups says of these that they do not exist."""
        found = await self._cluster.find_coordinator(self.id)
        if found.error is not Error.NONE:
            return NO_GROUP
        asked = fields(group_ids=(self.id,), include_authorized_operations=False)
        connection = await self._cluster.connect(found.endpoint)
        try:
            for api, described in _DESCRIBED.items():
                answer = await connection.ask(api, api.highest, asked, _REQUEST_TIMEOUT_MS)
                (group,) = answer.groups
                if not group.error_code:
                    return described(group)
        except InputError:  # an older Kafka does not have the request, and no such groups
            pass
        finally:
            connection.close()
        return NO_GROUP

    def _waiting(self, wanted: Wanted) -> WaitFuture:
        return self._thread.begin(self._until(wanted))

    async def _until(self, wanted: Wanted) -> None:
        # a test's own condition may ask the broker, which this thread has to answer
        while not await asyncio.to_thread(wanted.is_met, await self._look()):
            await asyncio.sleep(POLL_S)

    def _last_events(self) -> Sequence[str]:
        return ()
