"""The site's page of all that `serve` takes and serves."""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.broker.apis import APIS
from groupstorm.broker.apis.authentication import ITERATIONS_MAX
from groupstorm.broker.apis.metadata import PARTITIONS_DESCRIBED
from groupstorm.broker.config import COORDINATOR_SETTINGS, OPTIONS, SETTINGS, BrokerConfig, shown
from groupstorm.broker.log.topics import MAX_PARTITIONS_PER_REQUEST
from groupstorm.broker.topic_configs import TOPIC_OPTIONS
from groupstorm.coordinator.config import OPTIONS as COORDINATOR_OPTIONS
from groupstorm.coordinator.consumer.regexes import PROGRAM_BYTES
from tools.documentation.reference import table

#: Settings of ours, and those of Kafka's that mean something else here or need a word.
REMARKS: Mapping[str, str] = {
    "advertised.listeners": (
        "where clients are sent, `PROTOCOL://HOST:PORT` or `HOST:PORT`; none: to where they have "
        "reached the broker"
    ),
    "authorizer.class.name": (
        "`org.apache.kafka.metadata.authorizer.StandardAuthorizer`: clients may do what ACLs say, "
        "see [who may do what](serve.md#who-may-do-what); none: everything"
    ),
    "broker.rack": "the rack of all brokers, or `RACK,RACK,...`: of each in order",
    "group.consumer.assignors": "the broker's assignors that members may name, the default first",
    "group.consumer.migration.policy": (
        "which live groups may change their protocol, see [consumer groups](consumer-groups.md)"
    ),
    "group.streams.acceptable.recovery.lag": "told to members, which do nothing with it yet",
    "group.streams.num.warmup.replicas": (
        "as in Kafka no member gets warm-up tasks; 0 makes the coordinator forget what it gave"
    ),
    "groupstorm.compatibility": "the Kafka whose rules count, see [coordinator](coordinator.md)",
    "groupstorm.append.latency.ms": (
        "ours: how long each append of group records to the offsets topic takes, see "
        "[appends that take time](serve.md#appends-that-take-time)"
    ),
    "groupstorm.max.groups": "ours: groups of all brokers together",
    "groupstorm.max.partitions": "ours: partitions of all topics together",
    "groupstorm.max.topics": "ours: topics",
    "log.cleanup.policy": "`delete`, `compact` or both, see [compaction](serve.md#compaction)",
    "log.roll.ms": "a record that is so much newer than its segment's first one begins another segment",
    "log.segment.bytes": "the size of a segment; the newest one is not compacted",
    "max.connections": "connections of each broker; further ones are closed at once",
    "node.id": "the id of the first broker; the others have the ids behind it",
    "offsets.topic.num.partitions": "how groups are spread over several brokers",
    "sasl.enabled.mechanisms": "the mechanisms that a client may choose from",
    "super.users": "who may do everything whatever ACLs say: `User:NAME;User:NAME`",
    "transaction.state.log.num.partitions": "how transactional ids are spread over several brokers",
}


def reference_page() -> str:
    """All settings, limits, configurations of topics, and APIs with their versions."""
    told = "What [`groupstorm serve`](serve.md) takes and serves. Settings have Kafka's meaning."
    apis = [(api.name, str(api.key), f"{api.min_version}-{api.max_version}") for api in APIS.values()]
    sections = (
        "# Broker reference",
        told,
        "## Settings",
        settings_table(),
        "## Limits",
        limits_table(),
        "## Configurations of topics that have an effect",
        topic_configs_table(),
        "## APIs",
        table(("API", "key", "versions"), apis),
    )
    return "\n\n".join(sections) + "\n"


def settings_table() -> str:
    """Settings that `--set` takes, with their defaults."""
    rows = [(f"`{name}`", _default(name), REMARKS.get(name, "")) for name in SETTINGS]
    return table(("setting", "default", ""), rows)


def _default(name: str) -> str:
    if name in COORDINATOR_SETTINGS:
        value = str(COORDINATOR_OPTIONS[name].default)
        return f"`{value}`" if value else "none"
    assert name in OPTIONS
    value = shown(getattr(BrokerConfig(), name.replace(".", "_")))
    return f"`{value}`" if value else "none"


#: A setting or a fixed number, the thing that it limits, and what a client sees beyond the limit.
LIMITS: tuple[tuple[str | int, str, str], ...] = (
    ("socket.request.max.bytes", "", "the connection is closed before the request is read"),
    ("sasl.server.max.receive.size", "before a client has authenticated", "the same"),
    ("max.connections", "of each broker", "further connections are closed at once, before TLS's handshake"),
    ("connections.max.idle.ms", "", "a connection without requests is closed, during its handshake too"),
    ("group.max.size", "", "GROUP_MAX_SIZE_REACHED for further members"),
    ("group.consumer.max.size", "", "the same"),
    ("group.share.max.size", "", "the same"),
    ("group.streams.max.size", "", "the same"),
    ("groupstorm.max.groups", "ours", "POLICY_VIOLATION for a request that would make one more"),
    ("groupstorm.max.topics", "ours", "the same; Metadata says it of the topic"),
    ("groupstorm.max.partitions", "ours", "the same"),
    (MAX_PARTITIONS_PER_REQUEST, "partitions that one request creates", "POLICY_VIOLATION for all of its "
     "topics; Metadata with more unknown topics creates none"),
    ("message.max.bytes", "of a batch", "MESSAGE_TOO_LARGE"),
    ("message.max.bytes", "of what a request writes about a group: its members' metadata and assignments, "
     "offsets", "UNKNOWN_SERVER_ERROR, and the group stays as it was"),
    ("offset.metadata.max.bytes", "", "OFFSET_METADATA_TOO_LARGE"),
    ("max.incremental.fetch.session.cache.slots", "", "fetches are answered in full"),
    (PROGRAM_BYTES, "bytes of a regular expression's program and automaton: some 40,000 instructions; ours",
     "INVALID_REGULAR_EXPRESSION: pattern too large - compile failed"),
    (ITERATIONS_MAX, "iterations of a SCRAM credential", "UNACCEPTABLE_CREDENTIAL: Too many iterations"),
    (PARTITIONS_DESCRIBED, "partitions in one answer to DescribeTopicPartitions", "a cursor to go on with"),
)  # fmt: skip


def limits_table() -> str:
    """Every limit. Those without a name of a setting cannot be changed."""
    rows = [
        (f"{limit:,}" if isinstance(limit, int) else f"`{limit}`", what, _default_of(limit), beyond)
        for limit, what, beyond in LIMITS
    ]
    return table(("limit", "of", "default", "beyond it"), rows)


def _default_of(limit: str | int) -> str:
    return "fixed" if isinstance(limit, int) else _default(limit)


#: Configurations of topics that have an effect, on retention, compaction, accepted batches or timestamps.
_EFFECTIVE = (
    "cleanup.policy",
    "delete.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
)


def topic_configs_table() -> str:
    """The configurations of topics that do something here, with their defaults."""
    rows = [(f"`{name}`", f"`{TOPIC_OPTIONS[name].default}`") for name in _EFFECTIVE]
    return table(("configuration", "default"), rows)
