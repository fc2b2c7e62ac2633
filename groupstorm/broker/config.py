"""The settings of `groupstorm serve --set`, by Kafka's names and with Kafka's defaults.

`BrokerConfig` has the broker's own (ServerConfigs, ServerLogConfigs), `groupstorm.coordinator.config` the
group coordinator's.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Final, NamedTuple, get_args, get_type_hints

from groupstorm.broker.authorization import read_super_users
from groupstorm.coordinator.config import OPTIONS as COORDINATOR_OPTIONS
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.config_options import ConfigType
from groupstorm.problems import InputError, did_you_mean
from groupstorm.protocol.endpoints import Endpoint

_DOCUMENTATION: Final = "https://kafka.apache.org/44/documentation.html"


class KafkaConfig(NamedTuple):
    """``changes``: whether it can change while the broker runs. ``synonym``: the broker's setting that is its
    default, if it has one."""

    kind: ConfigType
    default: str | None
    changes: bool
    is_sensitive: bool
    synonym: str | None
    #: The place in Kafka's documentation; its sentences are Kafka's own.
    documentation: str


@cache
def kafka_configs(of: str) -> Mapping[str, KafkaConfig]:
    """The configurations of a ``broker``, a ``topic`` or a ``group``, by name."""
    lines = (files("groupstorm.broker") / "kafka_configs.jsonl").read_text("utf-8").splitlines()
    rows = (json.loads(line) for line in lines)
    return {
        row["name"]: KafkaConfig(
            ConfigType(row["type"]),
            row.get("default"),
            row.get("changes", False),
            row.get("sensitive", False),
            row.get("synonym"),
            f"{_DOCUMENTATION}#{of}configs_{row['name']}",
        )
        for row in rows
        if row["of"] == of
    }


#: All APIs in all versions that are served, which are Kafka 4.3's.
NEWEST = "4.x"
#: The releases of Kafka whose versions can be advertised. Each API says its own (`Api.older`). Source: the
#: message schemas of those releases (`validVersions`).
RELEASES = ("2.8", "3.9", NEWEST)
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
CLEANUP_POLICIES = ("compact", "delete")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_LISTENER = re.compile(
    r"(?:(?P<name>[A-Za-z0-9_]+)://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/\[\]]+):(?P<port>\d{1,5})"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Advertised(Endpoint):
    """The address that clients are sent to; ``protocol``: one of `PROTOCOLS`, None: the listener's."""

    protocol: str | None = None


def shown(value: object) -> str:
    """A value of `BrokerConfig` as Kafka writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Advertised):
        return f"{value.protocol or 'PLAINTEXT'}://{value.host}:{value.port}"
    if isinstance(value, tuple):
        return ",".join(value)
    return "" if value is None else str(value)


def _boolean(name: str, text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise InputError(f"option {name}={text}: expected true or false")
    return text.strip().lower() == "true"


def _integer(least: int, most: int) -> Callable[[str, str], int]:
    def parse(name: str, text: str) -> int:
        digits = text.strip()
        if re.fullmatch(r"[+-]?[0-9]{1,19}", digits) and least <= int(digits) <= most:
            return int(digits)
        raise InputError(f"option {name}={text}: expected an integer from {least} to {most}")

    return parse


def _ratio(name: str, text: str) -> float:
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,19})?", text.strip()) and float(text) <= 1:
        return float(text)
    raise InputError(f"option {name}={text}: expected a number from 0 to 1")


def _some_of(known: Sequence[str], expected: str) -> Callable[[str, str], tuple[str, ...]]:
    def parse(name: str, text: str) -> tuple[str, ...]:
        named = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
        if not set(named) <= set(known):
            raise InputError(f"option {name}={text}: expected {expected}")
        return named

    return parse


_policies = _some_of(CLEANUP_POLICIES, f"{' or '.join(CLEANUP_POLICIES)}, or both with a comma")
_mechanisms = _some_of(SASL_MECHANISMS, f"some of {', '.join(SASL_MECHANISMS)}, with commas")


def _racks(name: str, text: str) -> tuple[str, ...]:
    racks = tuple(part.strip() for part in text.split(","))
    if not all(racks):
        raise InputError(
            f"option {name}={text}: expected one rack, or one of each broker, none of them empty"
        )
    return racks


def _advertised(name: str, text: str) -> Advertised:
    match = _LISTENER.fullmatch(text.strip())
    if match is None or not 0 < int(match["port"]) < 2**16:
        raise InputError(f"option {name}={text}: expected one [PROTOCOL://]HOST:PORT")
    protocol = match["name"].upper() if match["name"] else None
    if protocol not in (None, *PROTOCOLS):
        raise InputError(f"option {name}={text}: expected one of {', '.join(PROTOCOLS)} as protocol")
    return Advertised(match["host"].strip("[]"), int(match["port"]), protocol)


def _authorizer(name: str, text: str) -> str:
    if text != STANDARD_AUTHORIZER:
        raise InputError(f"option {name}={text}: expected {STANDARD_AUTHORIZER}")
    return text


def _principals(name: str, text: str) -> str:
    read_super_users(name, text)
    return text


@dataclasses.dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The settings apart from the groups', each with its reader. Field names are Kafka's with underscores for
    dots."""

    node_id: Annotated[int, _integer(0, INT32_MAX)] = 1
    """The id under which the broker appears in Metadata."""
    broker_rack: Annotated[tuple[str, ...], _racks] = ()
    """The rack of all brokers, or one of each."""
    auto_create_topics_enable: Annotated[bool, _boolean] = True
    num_partitions: Annotated[int, _integer(1, INT32_MAX)] = 1
    """Partitions of a topic that is created on demand, or without a number."""
    message_max_bytes: Annotated[int, _integer(0, INT32_MAX)] = 1_048_588
    """The largest record batch."""
    log_cleaner_backoff_ms: Annotated[int, _integer(0, INT64_MAX)] = 15_000
    """The time until compacted topics are looked at again if none of them was due."""
    log_cleaner_delete_retention_ms: Annotated[int, _integer(0, INT64_MAX)] = 86_400_000
    log_cleaner_max_compaction_lag_ms: Annotated[int, _integer(1, INT64_MAX)] = INT64_MAX
    log_cleaner_min_cleanable_ratio: Annotated[float, _ratio] = 0.5
    log_cleaner_min_compaction_lag_ms: Annotated[int, _integer(0, INT64_MAX)] = 0
    log_cleanup_policy: Annotated[tuple[str, ...], _policies] = ("delete",)
    log_message_timestamp_after_max_ms: Annotated[int, _integer(0, INT64_MAX)] = 3_600_000
    log_message_timestamp_before_max_ms: Annotated[int, _integer(0, INT64_MAX)] = INT64_MAX
    log_retention_bytes: Annotated[int, _integer(-1, INT64_MAX)] = -1
    """Per partition: the oldest batches beyond this size are dropped; -1 keeps all."""
    log_retention_ms: Annotated[int, _integer(-1, INT64_MAX)] = 604_800_000
    """Batches whose newest record is older are dropped; -1 keeps all."""
    log_retention_check_interval_ms: Annotated[int, _integer(1, INT64_MAX)] = 300_000
    log_roll_ms: Annotated[int, _integer(1, INT64_MAX)] = 604_800_000
    log_segment_bytes: Annotated[int, _integer(1_048_576, INT32_MAX)] = 1_073_741_824
    """The newest batches, at most so many bytes, are not compacted."""
    default_replication_factor: Annotated[int, _integer(1, 2**15 - 1)] = 1
    """The replicas of topics that are created on demand, or without a number."""
    delete_topic_enable: Annotated[bool, _boolean] = True
    fetch_max_bytes: Annotated[int, _integer(1024, INT32_MAX)] = 57_671_680
    """The most that one Fetch returns."""
    max_incremental_fetch_session_cache_slots: Annotated[int, _integer(0, INT32_MAX)] = 1000
    """The most fetch sessions on each broker (KIP-227)."""
    transaction_max_timeout_ms: Annotated[int, _integer(1, INT32_MAX)] = 900_000
    """The longest timeout that a transactional producer may ask for."""
    max_connections: Annotated[int, _integer(0, INT32_MAX)] = INT32_MAX
    """The most connections of each broker; further ones are closed at once."""
    connections_max_idle_ms: Annotated[int, _integer(-1, INT64_MAX)] = 600_000
    """A connection without requests is closed after so long; below 0: never."""
    groupstorm_append_latency_ms: Annotated[int, _integer(0, 60_000)] = 0
    """Our own: how long each append of group records to the offsets topic takes; 0: none."""
    groupstorm_max_groups: Annotated[int, _integer(0, INT32_MAX)] = INT32_MAX
    """Our own: a request that would make one more group is refused."""
    groupstorm_max_topics: Annotated[int, _integer(0, INT32_MAX)] = INT32_MAX
    groupstorm_max_partitions: Annotated[int, _integer(0, INT32_MAX)] = INT32_MAX
    """Our own: the most partitions of all topics together."""
    offsets_topic_num_partitions: Annotated[int, _integer(1, INT32_MAX)] = 50
    """Groups are spread over several brokers by these partitions."""
    transaction_state_log_num_partitions: Annotated[int, _integer(1, INT32_MAX)] = 50
    """Transactional ids are spread over several brokers by these partitions."""
    socket_request_max_bytes: Annotated[int, _integer(1, INT32_MAX)] = 104_857_600
    """The largest request; a larger one closes the connection before it is read."""
    sasl_enabled_mechanisms: Annotated[tuple[str, ...], _mechanisms] = SASL_MECHANISMS
    """The mechanisms that a client may choose from."""
    sasl_server_max_receive_size: Annotated[int, _integer(1, INT32_MAX)] = 524_288
    """The largest request of a client that has not authenticated."""
    connections_max_reauth_ms: Annotated[int, _integer(0, INT64_MAX)] = 0
    """After so long a client must authenticate again (KIP-368); 0: never."""
    connection_failed_authentication_delay_ms: Annotated[int, _integer(0, INT32_MAX)] = 100
    """The time for which the answer to a failed authentication waits."""
    authorizer_class_name: Annotated[str | None, _authorizer] = None
    """The class that decides about access by ACLs; None: every client may do everything."""
    quota_window_num: Annotated[int, _integer(1, INT32_MAX)] = 11
    """The windows over which the rates of client quotas are measured."""
    quota_window_size_seconds: Annotated[int, _integer(1, INT32_MAX // 1000)] = 1
    super_users: Annotated[str | None, _principals] = None
    """Principals that may do everything, with semicolons between them."""
    allow_everyone_if_no_acl_found: Annotated[bool, _boolean] = False
    """Whether everybody may use a resource about which there is no ACL."""
    advertised_listeners: Annotated[Advertised | None, _advertised] = None
    """The address to which clients are sent; None: the address at which they have reached the broker."""

    @classmethod
    def from_mapping(cls, options: Mapping[str, str]) -> BrokerConfig:
        """Settings by Kafka's names, those of `OPTIONS`. Raises InputError naming the one that is wrong."""
        values: dict[str, Any] = {
            name.replace(".", "_"): OPTIONS[name](name, text) for name, text in options.items()
        }
        return dataclasses.replace(cls(), **values)


#: The reader of each setting.
OPTIONS: dict[str, Callable[[str, str], object]] = {
    name.replace("_", "."): get_args(hint)[1]
    for name, hint in get_type_hints(BrokerConfig, include_extras=True).items()
}


#: Why a setting of Kafka's would do nothing, by the beginning of its name.
REFUSED: Mapping[str, str] = {
    "offsets.commit.timeout.ms": "a commit is written at once and cannot time out",
    "offsets.load.buffer.size": "the offsets topic has no files",
    "offsets.topic.segment.bytes": "the offsets topic has no files",
    "offsets.topic.compression.codec": "the offsets topic has no files",
    "offsets.topic.replication.factor": "the offsets topic has no replicas",
    "group.coordinator.rebalance.protocols": "all kinds of group are served, always",
    "group.coordinator.": "the coordinator has no threads and no buffers",
    "group.consumer.assignor.offload.enable": "assignors have no thread of their own",
    "group.streams.assignor.offload.enable": "assignors have no thread of their own",
    "group.streams.assignors": "there is one assignor, sticky",
    "group.share.assignor.offload.enable": "assignors have no thread of their own",
    "group.share.assignors": "there is one assignor, simple",
    "group.streams.topology.description.plugin.class": "plugins are Java classes",
    "errors.deadletterqueue.": "dead letter topics are named dlq.*, and nobody creates them",
}

#: The settings of the group coordinator.
COORDINATOR_SETTINGS = tuple(
    name for name in COORDINATOR_OPTIONS if name not in OPTIONS and not name.startswith(tuple(REFUSED))
)

#: All of them, sorted.
SETTINGS = tuple(sorted({*OPTIONS, *COORDINATOR_SETTINGS}))

_OF_AUTHORIZER = ("super.users", "allow.everyone.if.no.acl.found")


def read_settings(settings: Mapping[str, str]) -> tuple[BrokerConfig, CoordinatorConfig]:
    """The broker's configuration and its group coordinator's. Raises InputError, which names the setting.

    A setting of Kafka's that would do nothing is refused with the reason: somebody who sets it expects an
    effect.
    """
    for name in settings:
        if name not in SETTINGS:
            raise InputError(f"option {name}: {_reason(name)}")
    broker = BrokerConfig.from_mapping(_only(settings, OPTIONS))
    coordinator = CoordinatorConfig.from_mapping(_only(settings, COORDINATOR_OPTIONS))
    if broker.authorizer_class_name is None:
        for name in _OF_AUTHORIZER:
            if name in settings:
                raise InputError(
                    f"option {name}: does nothing without authorizer.class.name={STANDARD_AUTHORIZER}"
                )
    return broker, coordinator


def _only(settings: Mapping[str, str], known: Mapping[str, object]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name in known}


def _reason(name: str) -> str:
    if name in COORDINATOR_OPTIONS:
        why = next(why for beginning, why in REFUSED.items() if name.startswith(beginning))
        return f"a setting of Kafka's that would do nothing here: {why}; leave it out"
    if name in kafka_configs("broker"):
        return "a setting of Kafka's that would do nothing here; leave it out"
    return f"not known here{did_you_mean(name, SETTINGS)}; accepted are {', '.join(SETTINGS)}"
