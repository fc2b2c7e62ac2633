"""The two members that the situations are played with: Kafka's Java consumer and ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.brokers.jvm import stop_process
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.operations import CallbackKind
from groupstorm.clients.wire.consumer import WireConsumer
from groupstorm.clients.wire.parts import ApplicationBehaviour
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.events import member as events
from tests.oracle.build import Built
from tests.oracle.member.requests import Json
from tests.oracle.member.situation import Act

Config = Mapping[str, str | int]

_JAVA_STRATEGIES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
#: How long the JVM may take to end.
_END_S = 60.0

_JAVA_PACKAGE = "org.apache.kafka.clients.consumer"


class Observations(list[dict[str, Json]]):
    """Observations of the application: its listener's calls, then ``failed`` if poll() threw."""

    def called(self, callback: str, partitions: Sequence[str]) -> None:
        """Kafka's eager consumer calls onPartitionsRevoked before its first join, with nothing in it;
        a call without partitions counts only where it says that the assignment has come.
        """
        if partitions or callback == CallbackKind.ASSIGNED.value:
            self.append({"event": callback, "partitions": list(partitions)})

    def failed(self, error: str) -> None:
        self.append({"event": "failed", "error": error})


class Member(Protocol):
    """A consumer and its application, one incarnation after another."""

    observed: Observations

    async def start(self, endpoint: Endpoint, config: Config, topics: Sequence[str]) -> None: ...

    async def act(self, act: Act) -> None: ...

    async def ended(self) -> None:
        """Wait until the consumer is closed."""


class OurMember:
    """`groupstorm.clients.wire` in this process."""

    def __init__(self) -> None:
        self.observed = Observations()
        self._consumer: WireConsumer | None = None
        self._running: asyncio.Task[None] | None = None

    async def start(self, endpoint: Endpoint, config: Config, topics: Sequence[str]) -> None:
        self._consumer = WireConsumer(
            consumer_config(config, topics),
            [endpoint],
            self._on_event,
            application=ApplicationBehaviour(on_callback=self._on_callback),
        )
        self._running = asyncio.create_task(self._consumer.run())

    async def act(self, act: Act) -> None:
        assert self._consumer is not None
        {
            Act.LEAVE_POLL: self._consumer.polling.leave,
            Act.ENTER_POLL: self._consumer.polling.enter,
            Act.CLOSE: self._consumer.close,
        }[act]()

    async def ended(self) -> None:
        assert self._running is not None
        await self._running  # cancelled with whoever waits for it

    def _on_callback(self, kind: CallbackKind, partitions: Sequence[TopicPartition]) -> None:
        self.observed.called(kind.value, [str(partition) for partition in partitions])

    def _on_event(self, _time_us: int, event: events.Event) -> None:
        if isinstance(event, events.MemberFailed):
            self.observed.failed(event.error)


def consumer_config(config: Config, topics: Sequence[str]) -> ConsumerConfig:
    """Kafka's options as our configuration."""
    values: dict[str, object] = {name.replace(".", "_"): value for name, value in config.items()}
    values["partition_assignment_strategy"] = tuple(str(config["partition.assignment.strategy"]).split(","))
    values["enable_auto_commit"] = config["enable.auto.commit"] == "true"
    return ConsumerConfig(topics=tuple(topics), **values)  # type: ignore[arg-type]  # the names are Kafka's


class JavaMember:
    """Kafka's KafkaConsumer in a JVM of its own, which lives as long as the context."""

    def __init__(self, built: Built) -> None:
        self.observed = Observations()
        self._built = built
        self._jvm: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> JavaMember:
        self._jvm = await asyncio.create_subprocess_exec(
            self._built.java,
            *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-cp", self._built.classpath, "groupstorm.oracle.Main", "member"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._jvm is not None
        assert self._jvm.stdin is not None
        self._jvm.stdin.close()
        try:
            async with asyncio.timeout(_END_S):
                await self._jvm.wait()
        finally:
            await stop_process(self._jvm, 0)

    async def start(self, endpoint: Endpoint, config: Config, topics: Sequence[str]) -> None:
        java = {
            "group.protocol": "classic",
            **config,
            "bootstrap.servers": f"{endpoint.host}:{endpoint.port}",
            "reconnect.backoff.ms": 20,
            "fetch.max.wait.ms": 50,  # close() waits for the fetch that is under way
        }
        if "partition.assignment.strategy" in config:
            strategies = str(config["partition.assignment.strategy"]).split(",")
            java["partition.assignment.strategy"] = ",".join(
                f"{_JAVA_PACKAGE}.{_JAVA_STRATEGIES[name]}" for name in strategies
            )
        self._order({"command": "start", "config": java, "topics": list(topics)})

    async def act(self, act: Act) -> None:
        self._order({"command": act.value})

    async def ended(self) -> None:
        assert self._jvm is not None
        assert self._jvm.stdout is not None
        while line := await self._jvm.stdout.readline():
            event = json.loads(line)
            if event["event"] == "ended":
                return
            if event["event"] == "failed":
                self.observed.failed(event["error"])
            else:
                self.observed.called(event["event"], event["partitions"])
        raise EOFError("the Java consumer's process has ended")

    def _order(self, order: Json) -> None:
        assert self._jvm is not None
        assert self._jvm.stdin is not None
        self._jvm.stdin.write(json.dumps(order).encode() + b"\n")
