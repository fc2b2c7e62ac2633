"""The two brokers that the probes are played on: the emulator without sockets, and Kafka in a JVM."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.authorization import user
from groupstorm.broker.broker import Broker
from groupstorm.protocol.codec import encoder, request_type
from groupstorm.protocol.codec.schemas import field_names
from groupstorm.protocol.endpoints import Endpoint
from tests.broker import wire
from tests.broker.asking import acl, acl_filter
from tests.broker.authorization.playing import ADMIN, USER, Asker, must_ask
from tests.broker.authorization.probes import TOPICS, heartbeat
from tests.broker.driver import PEER
from tests.broker.wire import RawClient, framed
from tests.waiting import wait_until

PASSWORD = "secret"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{ADMIN}",
}
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
#: As of Kafka in a JVM.
_INTERNAL_TOPICS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}

_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
#: What Kafka needs so that clients are users: its one listener of clients takes SASL/PLAIN. The broker itself
#: is a super user, and so is nobody, as whom it reaches the controller.
KAFKA_SETTINGS = {
    **SETTINGS,
    **AUTHORIZER,
    "super.users": f"User:{ADMIN};User:ANONYMOUS",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        f'{_LOGIN_MODULE} required username="{ADMIN}" password="{PASSWORD}" '
        + " ".join(f'user_{name}="{PASSWORD}"' for name in (ADMIN, USER))
        + ";"
    ),
}


def prepare(asker: Asker, topic_ids: Callable[[], Mapping[str, uuid.UUID]]) -> None:
    """Make the topics, groups and offsets that the probes are about."""
    topics = [
        {"name": name, "num_partitions": count, "replication_factor": 1} for name, count in TOPICS.items()
    ]
    must_ask(asker, wire.CREATE_TOPICS, 5, {"topics": topics, "timeout": 10_000, "validate_only": False})
    wait_until(lambda: set(topic_ids()) >= set(TOPICS))
    for key_type, key in ((0, "g"), (1, "t")):
        wait_until(partial(_has_coordinator, asker, key_type, key))
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    offsets = [{"name": name, "partitions": [partition]} for name in TOPICS]
    commit = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "", "topics": offsets}
    wait_until(lambda: must_ask(asker, wire.OFFSET_COMMIT, 8, commit).topics[0].partitions[0].error_code == 0)
    must_ask(asker, wire.CONSUMER_GROUP_HEARTBEAT, 1, heartbeat("modern", "orders"))


def _has_coordinator(asker: Asker, key_type: int, key: str) -> bool:
    answer = must_ask(asker, wire.FIND_COORDINATOR, 4, {"key_type": key_type, "coordinator_keys": (key,)})
    return bool(answer.coordinators[0].error_code == 0)


class Emulator:
    """The emulator, asked as several users."""

    def __init__(self, settings: Mapping[str, str] = AUTHORIZER) -> None:
        self.broker: Broker = make_broker({**SETTINGS, **_INTERNAL_TOPICS, **settings}, {})
        #: The time of the batches that `wire.batch` makes.
        self.now_ms = 1_700_000_000_000
        self._connection = 0

    def ask(self, name: str, api_key: int, version: int, body: Any) -> Any:
        self._connection += 1
        fields = {field: getattr(body, field) for field in field_names(body.__class__)}
        frame = wire.request(api_key, version, self._connection, **fields)
        peer = PEER._replace(principal=user(name))
        for output in self.broker.receive(self._connection, peer, frame, self.now_ms).outputs:
            if output.payload is not None:
                return wire.parse_response(api_key, version, output.payload[4:])[1]
        return None

    def settle(self) -> None:
        """Do what the broker has put off: it asks for the partitions of a share group behind an answer."""
        while (deadline_ms := self.broker.next_deadline()) is not None and deadline_ms <= self.now_ms:
            self.broker.fire(self.now_ms)

    def topic_ids(self) -> Mapping[str, uuid.UUID]:
        return {topic.name: topic.topic_id for topic in self.broker.state.topics}


class Kafka:
    """Kafka over TCP, a connection for each user."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._address = (endpoint.host, endpoint.port)
        self._clients: dict[str, RawClient] = {}
        self._correlation_id = 0

    def ask(self, name: str, api_key: int, version: int, body: Any) -> Any:
        client = self._clients.get(name) or self._connect(name)
        self._correlation_id += 1
        header = wire.request_header(api_key, version, self._correlation_id)
        message_type = request_type(api_key, version)
        client.send(framed(header + b"".join(encoder(message_type)(body))))
        try:
            answer = client.answer(api_key, version, self._correlation_id)
        except ConnectionError:
            answer = None
        if answer is None or getattr(answer, "throttle_time", None):
            self._clients.pop(name).socket.close()  # closed by the broker, or muted
        return answer

    def _connect(self, name: str) -> RawClient:
        client = self._clients[name] = RawClient(self._address)
        client.ask(wire.SASL_HANDSHAKE, 1, mechanism="PLAIN")
        token = f"\0{name}\0{PASSWORD}".encode()
        assert client.ask(wire.SASL_AUTHENTICATE, 2, auth_bytes=token).error_code == 0
        return client

    def settle(self) -> None:
        """The controller has written all changes: a broker that has read a later one has read them."""
        marker = f"marker-{uuid.uuid4().hex[:8]}"
        rule = acl(resource_type=3, resource_name=marker, principal="User:marker")
        found = acl_filter(resource_type_filter=3, resource_name_filter=marker, pattern_type_filter=3)
        must_ask(self, wire.CREATE_ACLS, 3, {"creations": (rule,)})
        wait_until(lambda: bool(must_ask(self, wire.DESCRIBE_ACLS, 3, found).resources))
        must_ask(self, wire.DELETE_ACLS, 3, {"filters": (found,)})
        wait_until(lambda: not must_ask(self, wire.DESCRIBE_ACLS, 3, found).resources)

    def topic_ids(self) -> Mapping[str, uuid.UUID]:
        topics = must_ask(self, wire.METADATA, 12, {"topics": None}).topics
        return {topic.name: topic.topic_id for topic in topics}

    def close(self) -> None:
        for client in self._clients.values():
            client.socket.close()
