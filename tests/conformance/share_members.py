"""Members of share groups, one kind per client library, unmodified, each on a thread of its own.

They behave alike: poll, note what came, acknowledge each record as the first word of its value says (release,
reject, and accept all others), commit after every poll, and close when told to stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from groupstorm.clients.share import AcknowledgeType, ShareConsumer
from tests.client_libraries.members import Threaded
from tests.conformance.members import Program
from tests.conformance.programs.building import Java, kafka_java, share_member
from tests.needs import needed

_POLL_MS = 50


class Delivered(NamedTuple):
    """A record that came to a member."""

    offset: int
    deliveries: int
    value: str


def type_name(value: str) -> str:
    """The type of the acknowledgement that a member gives a record."""
    word = value.partition(" ")[0].upper()
    return word if word in ("RELEASE", "REJECT") else "ACCEPT"


class ShareMember(Threaded):
    """Reads and acknowledges from its construction until `stop`."""

    def __init__(self, address: str, topic: str, group: str) -> None:
        self.address, self.topic, self.group = address, topic, group
        self.delivered: list[Delivered] = []
        self._start()


class OurShareMember(ShareMember):
    def _run(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        consumer = ShareConsumer(
            self.topic,
            bootstrap_servers=self.address,
            group_id=self.group,
            share_acknowledgement_mode="explicit",
        )
        async with consumer:
            while not self._stopping.is_set():
                for one in await consumer.poll(_POLL_MS):
                    assert one.value is not None
                    assert one.delivery_count is not None
                    found = Delivered(one.offset, one.delivery_count, one.value.decode())
                    self.delivered.append(found)
                    consumer.acknowledge(one, AcknowledgeType[type_name(found.value)])
                assert set((await consumer.commit_sync()).values()) <= {None}


class ConfluentShareMember(ShareMember):
    def _run(self) -> None:
        from confluent_kafka import AcknowledgeType as Type
        from confluent_kafka import ShareConsumer as Consumer

        config = {
            "bootstrap.servers": self.address,
            "group.id": self.group,
            "share.acknowledgement.mode": "explicit",
        }
        consumer = Consumer(config)
        consumer.subscribe([self.topic])
        while not self._stopping.is_set():
            for one in consumer.poll(timeout=_POLL_MS / 1000):
                assert one.error() is None, one.error()
                found = Delivered(one.offset(), one.delivery_count(), one.value().decode())
                self.delivered.append(found)
                consumer.acknowledge(one, getattr(Type, type_name(found.value)))
            consumer.commit_sync()
        consumer.close()


def java_share_member(release: str) -> Java:
    """Kafka's share consumer of a release. Raises ProgramUnavailable."""
    return share_member()._replace(jars=kafka_java(release).jars)


class JavaShareMember(Program, ShareMember):
    """Kafka's KafkaShareConsumer of one release."""

    release = "4.3.1"

    def _command(self) -> list[str]:
        arguments = [f"bootstrap.servers={self.address}", f"group.id={self.group}", "client.id=s"]
        return java_share_member(self.release).command("ShareMember", self.topic, *arguments)

    def _take(self, what: str, *about: str) -> bool:
        assert what != "refused", about
        if what == "record":
            self.delivered.append(Delivered(int(about[1]), int(about[2]), about[3]))
        return what == "record"


class Java44ShareMember(JavaShareMember):
    release = "4.4.0"


class ShareLibrary(NamedTuple):
    """A client library's member, and the check for what it needs."""

    member: Callable[[str, str, str], ShareMember]
    needs: Callable[[], Any]

    def check(self) -> None:
        """Skip the test where the library cannot be had."""
        with needed():
            self.needs()


def _confluent() -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka (extra `kafka`)")
    if not hasattr(confluent, "ShareConsumer"):
        pytest.skip(f"confluent-kafka {confluent.version()} has no ShareConsumer: install 2.16 or newer")


OURS, CONFLUENT, JAVA, JAVA_44 = "ShareConsumer", "confluent-kafka", "Java 4.3.1", "Java 4.4.0"
SHARE_LIBRARIES: Mapping[str, ShareLibrary] = {
    OURS: ShareLibrary(OurShareMember, lambda: pytest.importorskip("aiokafka")),
    CONFLUENT: ShareLibrary(ConfluentShareMember, _confluent),
    JAVA: ShareLibrary(JavaShareMember, lambda: java_share_member(JavaShareMember.release)),
    JAVA_44: ShareLibrary(Java44ShareMember, lambda: java_share_member(Java44ShareMember.release)),
}


def values(members: Sequence[ShareMember]) -> list[str]:
    """The values of all that was delivered, in no order across members."""
    return [one.value for member in members for one in member.delivered]
