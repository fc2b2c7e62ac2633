"""A real broker as a test has it: Kafka in a JVM, in a container, or at somebody's address."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from groupstorm.clients.brokers import BrokerKind, open_broker
from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.clients.wire.admin import (
    await_coordinator,
    committed_offsets,
    create_topics,
    delete_group,
    delete_topics,
    describe_group,
)
from groupstorm.clients.wire.cluster import Cluster
from groupstorm.coordinator.messages import DescribeGroupResponse
from groupstorm.coordinator.server.loop_thread import LoopThread
from groupstorm.coordinator.states import DEAD
from groupstorm.coordinator.subscriptions import assigned_partitions
from groupstorm.problems import InputError
from groupstorm.testing.broker import Broker
from groupstorm.testing.groups import NO_GROUP, Group, GroupView, MemberView, Wanted
from groupstorm.testing.values import Setting, as_settings, as_topics
from groupstorm.testing.waiting import Happening

_CLIENT_ID = "groupstorm-testing"
_REQUEST_TIMEOUT_MS = 30_000
#: How often a group is asked for that a test waits for.
POLL_S = 0.05


class RealBroker(Broker):
    """Runs, or is reached, from entering the context to leaving it.

    On somebody's cluster topics and groups get a prefix of their own, see `topic` and `group`, and are
    deleted at the end. Settings are those that the cluster has.
    """

    def __init__(
        self,
        kind: BrokerKind,
        topics: Mapping[str, int] | None = None,
        settings: Mapping[str, Setting] | None = None,
        *,
        allow_writes: bool = False,
    ) -> None:
        """Raises InputError for an address without ``allow_writes``."""
        if kind.bootstrap and not allow_writes:
            raise InputError(
                f"{kind.name}: topics and groups will be made there, under a prefix of their own, and taken"
                " away again: say allow_writes=True (pytest: --kafka-allow-writes)"
            )
        self.name = kind.name
        self._kind = kind
        self._wanted = as_topics(topics or {})
        self._settings = as_settings(settings or {})
        self._thread = LoopThread("real-broker")
        self._open = AsyncExitStack()
        self._groups: set[str] = set()
        self._topics: dict[str, int] = {}
        self._prefix = ""
        self._running: RunningBroker | None = None
        self._cluster: Cluster | None = None

    def start(self) -> None:
        """Raises BrokerUnavailable where there is none, with one line that says how to have it, and
        InputError or ConnectionLost where it does not do what it is asked."""
        self._thread.start()
        try:
            self._thread.run(self._begin())
        except BaseException:  # whatever it was, an interrupt too: nothing is left there, and it goes on up
            self.stop()
            raise

    def stop(self) -> None:
        try:
            self._thread.run(self._end())
        finally:
            self._thread.stop()

    async def _begin(self) -> None:
        opening = open_broker(self._kind, self._settings, lambda _events: None)
        self._running = await self._open.enter_async_context(opening)
        self.name, self._prefix = self._running.name, self._running.prefix
        there, security = self._running.bootstrap, self._running.security
        self._cluster = Cluster(there, _CLIENT_ID, _REQUEST_TIMEOUT_MS, security)
        self._open.callback(self._cluster.close)
        await self._create({self.topic(name): partitions for name, partitions in self._wanted.items()})
        await await_coordinator(self._cluster, self._prefix + _CLIENT_ID)

    async def _create(self, topics: Mapping[str, int]) -> None:
        if topics:
            self._topics |= topics
            await create_topics(self._there(), topics)

    async def _end(self) -> None:
        """What was made on somebody's cluster goes, as far as it was made and can go."""
        async with self._open:
            if self._prefix and self._cluster is not None:
                await self._clean_up(self._cluster)

    async def _clean_up(self, cluster: Cluster) -> None:
        problems = []
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

    def _there(self) -> Cluster:
        if self._cluster is None:
            raise InputError(f"{self.name}: use it inside `with` or `async with`")
        return self._cluster

    @property
    def bootstrap_servers(self) -> str:
        self._there()
        assert self._running is not None
        return self._running.address

    def topic(self, name: str) -> str:
        return name if name.startswith(self._prefix) else self._prefix + name

    def create_topic(self, name: str, partitions: int = 1) -> str:
        topic = self.topic(name)
        self._thread.run(self._create({topic: partitions}))
        return topic

    def group(self, name: str) -> Group:
        group = name if name.startswith(self._prefix) else self._prefix + name
        self._groups.add(group)
        return _RealGroup(group, self, self._there(), self._thread)


class _RealGroup(Group):
    """Asked for again and again while a test waits: a real broker does not tell what happens."""

    def __init__(self, group_id: str, broker: Broker, cluster: Cluster, thread: LoopThread) -> None:
        super().__init__(group_id)
        self._broker = broker
        self._cluster = cluster
        self._thread = thread

    def view(self) -> GroupView:
        return self._thread.run(self._look())

    def committed(self, topic: str, partition: int) -> int | None:
        offsets = self._thread.run(committed_offsets(self._cluster, self.id))
        return offsets.get(f"{self._broker.topic(topic)}-{partition}")

    async def _look(self) -> GroupView:
        return _viewed(await describe_group(self._cluster, self.id))

    def _waiting(self, wanted: Wanted) -> Happening:
        return self._thread.begin(self._until(wanted))

    async def _until(self, wanted: Wanted) -> None:
        while not wanted.is_met(await self._look()):
            await asyncio.sleep(POLL_S)

    def _last_events(self) -> Sequence[str]:
        return ()


def _viewed(described: DescribeGroupResponse) -> GroupView:
    """DescribeGroups tells no generation, and assignments of a stable group only."""
    if described.state == DEAD:
        return NO_GROUP
    members = tuple(
        MemberView(
            member.client_id,
            member.member_id,
            member.group_instance_id,
            member.client_host,
            assigned_partitions(member.assignment) or (),
        )
        for member in described.members
    )
    return GroupView(described.state, None, members, is_settled=True)
