"""The releases of Kafka and the client libraries whose logs are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Final, NamedTuple

from groupstorm.clients.profiles import GroupProtocol

#: Of every minor release line that changed the lines: the last Scala coordinators, and the Java one.
VERSIONS: Final = ("2.8.2", "3.4.1", "3.8.1", "4.0.0", "4.3.1", "4.4.0")

SESSION_TIMEOUT_MS: Final = 6_000
#: Of static members, and of all members of consumer groups: a process has to be back before it ends.
LONG_SESSION_TIMEOUT_MS: Final = 15_000
HEARTBEAT_INTERVAL_MS: Final = 1_000
MAX_POLL_INTERVAL_MS: Final = 8_000

_JAVA, _LIBRDKAFKA = "java", "confluent-kafka"


class Clients(NamedTuple):
    """The members of one recording. ``library``: a name of `--with`. ``cooperative``: of the second group."""

    name: str
    library: str
    cooperative: str
    protocol: GroupProtocol = GroupProtocol.CLASSIC


CLIENTS: Final[Mapping[str, Clients]] = {
    one.name: one
    for one in (
        Clients("java", _JAVA, "cooperative-sticky"),
        Clients("librdkafka", _LIBRDKAFKA, "cooperative-sticky"),
        Clients("aiokafka", "aiokafka", "sticky"),
        Clients("kafka-python", "kafka-python", "cooperative-sticky"),
        Clients("java-consumer-group", _JAVA, "", GroupProtocol.CONSUMER),
        Clients("librdkafka-consumer-group", _LIBRDKAFKA, "", GroupProtocol.CONSUMER),
    )
}

#: Before Kafka 4 consumer groups (KIP-848) are a preview.
_FIRST_CONSUMER_GROUPS: Final = 4

#: The broker times members out as quickly as they ask for, and waits for more of them as Kafka does, only
#: shorter.
_BROKER: Final[Mapping[str, str]] = {
    "group.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.initial.rebalance.delay.ms": "1000",
}
_CONSUMER_GROUPS: Final[Mapping[str, str]] = {
    "group.consumer.session.timeout.ms": str(LONG_SESSION_TIMEOUT_MS),
    "group.consumer.min.session.timeout.ms": str(LONG_SESSION_TIMEOUT_MS),
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
    "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
}


def has_consumer_groups(release: str) -> bool:
    return int(release.partition(".")[0]) >= _FIRST_CONSUMER_GROUPS


def broker_options(release: str) -> Mapping[str, str]:
    """Return the options that start the broker of this release, beside `jvm`'s own options."""
    return {**_BROKER, **_CONSUMER_GROUPS} if has_consumer_groups(release) else _BROKER


def recordable(release: str) -> list[Clients]:
    """The clients whose protocol this release has."""
    return [
        one
        for one in CLIENTS.values()
        if one.protocol is GroupProtocol.CLASSIC or has_consumer_groups(release)
    ]


def client_version(clients: Clients, release: str) -> str:
    """The library's package and version; Java's consumer is of the broker's release."""
    if clients.library == _JAVA:
        return f"kafka-clients {release}"
    return f"{clients.library} {version(clients.library)}"
