"""The brokers that the suite runs on: which there are, how they are set, one of each kept for a whole run.

A broker lives on an event loop of its own thread, so that tests may block and so that it outlives the
event loop of one test. A real broker takes seconds to start; tests share it and have groups of their own.
"""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple, TypeVar

from groupstorm.clients.brokers import CONTAINER, EMULATOR, JVM, open_broker, read_kind
from groupstorm.clients.brokers.container import PUBLIC_IMAGE, container
from groupstorm.clients.brokers.contract import BrokerUnavailable, RunningBroker
from groupstorm.clients.brokers.jars import KAFKA_VERSION
from groupstorm.clients.brokers.jvm import jvm
from groupstorm.clients.wire.admin import await_coordinator, create_topics
from groupstorm.clients.wire.cluster import METADATA, ClusterClient
from groupstorm.clients.wire.connection import ClientApi, RequestTypes
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.events.coordinator import Event
from tests.conformance.cleaning import clean_up
from tests.needs import needed
from tests.processes import DEADLINE_S

_T = TypeVar("_T")

#: ``HOST:PORT`` of a broker of yours that the suite shall run on, too.
ADDRESS_VARIABLE = "GROUPSTORM_CONFORMANCE_BROKER"
ADDRESS = "address"
KINDS = (EMULATOR, JVM, CONTAINER, ADDRESS)

_DESCRIBE_CONFIGS = ClientApi(32, "DescribeConfigs", 1, 4)
_BROKER = 4
_TIMEOUT_MS = 30_000

#: The initial delay of the tests that are about it.
INITIAL_DELAY_MS = 1_000
#: More members than any other test has.
MAX_SIZE = 8

_COMMON = {"group.min.session.timeout.ms": "100", "group.max.size": str(MAX_SIZE)}


class Configuration(NamedTuple):
    """Settings of a broker that several tests need, and the release of Kafka whose rules they are about."""

    name: str
    settings: Mapping[str, str]
    version: str = KAFKA_VERSION


#: Groups form at once.
QUICK = Configuration("quick", {"group.initial.rebalance.delay.ms": "0", **_COMMON})
#: Groups wait for more members before they first form.
DELAYED = Configuration("delayed", {"group.initial.rebalance.delay.ms": str(INITIAL_DELAY_MS), **_COMMON})
#: Consumer groups get new targets at once, and their members' times may be short.
CONSUMERS = Configuration(
    "consumers",
    {
        **QUICK.settings,
        "group.consumer.max.size": str(MAX_SIZE),
        "group.consumer.assignment.interval.ms": "0",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.heartbeat.interval.ms": "300",
        "group.consumer.min.session.timeout.ms": "500",
        "group.consumer.session.timeout.ms": "15000",
    },
)

#: Members of streams groups are told to send heartbeats often, and a silent one is soon removed.
STREAMS = Configuration(
    "streams",
    {
        **QUICK.settings,
        "group.streams.initial.rebalance.delay.ms": "0",
        "group.streams.assignment.interval.ms": "0",
        "group.streams.max.size": str(MAX_SIZE),
        "group.streams.min.heartbeat.interval.ms": "100",
        "group.streams.heartbeat.interval.ms": "500",
        "group.streams.min.session.timeout.ms": "500",
        "group.streams.session.timeout.ms": "15000",
    },
    "4.4.0",
)
#: Members of share groups are told to send heartbeats often, and a record is soon somebody else's.
SHARES = Configuration(
    "shares",
    {
        **QUICK.settings,
        "group.share.assignment.interval.ms": "0",
        "group.share.max.size": str(MAX_SIZE),
        "group.share.min.heartbeat.interval.ms": "100",
        "group.share.heartbeat.interval.ms": "500",
        "group.share.min.session.timeout.ms": "500",
        "group.share.session.timeout.ms": "15000",
        "group.share.min.record.lock.duration.ms": "1000",
    },
    "4.4.0",
)
#: Our setting of the release whose rules hold.
_RULES = "groupstorm.compatibility"

#: For clients that take long to start: a static member that returns does so within its session.
PATIENT = Configuration("patient", {**CONSUMERS.settings, "group.consumer.session.timeout.ms": "45000"})


class Backend:
    """A broker that runs, seen from another thread."""

    def __init__(
        self, kind: str, broker: RunningBroker, events: Sequence[Event], loop: asyncio.AbstractEventLoop
    ) -> None:
        """``events``: what the coordinator did, of a broker that tells it."""
        self.kind = kind
        self.broker = broker
        self.events = events
        self._loop = loop
        self._topics: list[str] = []
        self._groups: list[str] = []

    @property
    def address(self) -> str:
        """Return the value of bootstrap.servers."""
        return self.broker.address

    def group(self, about: str) -> str:
        """A name that no other group has."""
        name = f"{self.broker.prefix}{about}-{uuid.uuid4().hex[:8]}"
        self._groups.append(name)
        return name

    def topic(self, partitions: int, about: str = "orders") -> str:
        """Make a topic of its own; its partitions have leaders when this returns."""
        name = f"{self.broker.prefix}{about}-{uuid.uuid4().hex[:8]}"
        self._topics.append(name)
        self.run(with_cluster(self.broker, lambda cluster: create_topics(cluster, {name: partitions})))
        return name

    def topic_id(self, topic: str) -> str:
        """The id that the cluster gave it, as text."""
        answer = self.run(with_cluster(self.broker, lambda cluster: _metadata(cluster, [topic])))
        return str(answer.topics[0].topic_id)

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """On the broker's event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(DEADLINE_S)

    def clean_up(self) -> None:
        """Remove what was made on somebody's cluster; a broker of our own is thrown away as a whole."""
        if not self.broker.prefix:
            return
        self.run(with_cluster(self.broker, lambda cluster: clean_up(cluster, self._groups, self._topics)))


class Backends:
    """All that a run has started, each kind and configuration once."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="brokers", daemon=True)
        self._stack = AsyncExitStack()
        self._open: dict[tuple[str, str], Backend | BrokerUnavailable] = {}
        self._thread.start()

    def get(self, kind: str, configuration: Configuration) -> Backend:
        """Raises BrokerUnavailable with a line that says how to have it."""
        key = kind, configuration.name
        if key not in self._open:
            try:
                self._open[key] = self._start(kind, configuration)
            except BrokerUnavailable as unavailable:
                self._open[key] = unavailable
        found = self._open[key]
        if isinstance(found, BrokerUnavailable):
            raise found
        return found

    def needed(self, kind: str, configuration: Configuration) -> Backend:
        """For a test, which is skipped where there is no such broker."""
        with needed():
            return self.get(kind, configuration)

    def close(self) -> None:
        for backend in self._open.values():
            if isinstance(backend, Backend):
                backend.clean_up()
        asyncio.run_coroutine_threadsafe(self._stack.aclose(), self._loop).result(DEADLINE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _start(self, kind: str, configuration: Configuration) -> Backend:
        wanted = read_kind(os.environ[ADDRESS_VARIABLE] if kind == ADDRESS else kind)
        events: list[Event] = []

        async def start() -> RunningBroker:
            settings, version = configuration.settings, configuration.version
            if kind == JVM:
                return await self._stack.enter_async_context(jvm(settings, version))
            if kind == EMULATOR:
                settings = {**settings, _RULES: f"{version}-repaired"}
            if kind == CONTAINER and version != KAFKA_VERSION:
                image = PUBLIC_IMAGE.replace(KAFKA_VERSION, version)
                return await self._stack.enter_async_context(container(settings, image))
            context = open_broker(wanted, settings, events.extend)
            return await self._stack.enter_async_context(context)

        broker = asyncio.run_coroutine_threadsafe(start(), self._loop).result(DEADLINE_S)
        backend = Backend(kind, broker, events, self._loop)
        if kind == ADDRESS:
            backend.run(
                with_cluster(broker, lambda cluster: _check_settings(cluster, configuration.settings))
            )
        backend.run(with_cluster(broker, lambda cluster: await_coordinator(cluster, "nobody")))
        return backend


async def with_cluster(broker: RunningBroker, act: Callable[[ClusterClient], Awaitable[_T]]) -> _T:
    """Return what ``act`` gives with a cluster connection of its own."""
    cluster = ClusterClient(broker.bootstrap, "conformance", _TIMEOUT_MS)
    try:
        return await act(cluster)
    finally:
        cluster.close()


async def _metadata(cluster: ClusterClient, topics: Sequence[str]) -> Any:
    def build(types: RequestTypes) -> Any:
        asked = tuple(types.make("MetadataRequestTopic", name=topic, topic_id=None) for topic in topics)
        return types.make(
            types.root.__name__,
            topics=asked,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )

    return await cluster.ask_any(METADATA, build)


async def _check_settings(cluster: ClusterClient, wanted: Mapping[str, str]) -> None:
    """A broker that is not ours keeps its settings: tests that need others cannot run on it."""
    broker = (await _metadata(cluster, ())).brokers[0]

    def build(types: RequestTypes) -> Any:
        resource = types.make(
            "DescribeConfigsResource",
            resource_type=_BROKER,
            resource_name=str(broker.node_id),
            configuration_keys=tuple(wanted),
        )
        return types.make(
            types.root.__name__, resources=(resource,), include_synonyms=False, include_documentation=False
        )

    connection = await cluster.connect(Endpoint(broker.host, broker.port))
    try:
        answer = await connection.ask(_DESCRIBE_CONFIGS, _DESCRIBE_CONFIGS.highest, build, _TIMEOUT_MS)
    finally:
        connection.close()
    has = {entry.name: entry.value for result in answer.results for entry in result.configs}
    for name, value in wanted.items():
        if has.get(name) != value:
            raise BrokerUnavailable(f"{broker.host}:{broker.port}: needs {name}={value}, has {has.get(name)}")
