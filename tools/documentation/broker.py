"""The tables of docs/serve.md that are made from the code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from groupstorm.broker.apis import APIS
from groupstorm.broker.apis.key_51_alter_user_scram_credentials import ITERATIONS_MAX
from groupstorm.broker.apis.key_75_describe_topic_partitions import PARTITIONS_DESCRIBED
from groupstorm.broker.config import OPTIONS, BrokerConfig, shown
from groupstorm.broker.log.topics import MAX_PARTITIONS_PER_REQUEST
from groupstorm.broker.settings import COORDINATOR_SETTINGS, SETTINGS
from groupstorm.broker.topic_configs import TOPIC_OPTIONS
from groupstorm.coordinator.config import OPTIONS as COORDINATOR_OPTIONS
from groupstorm.coordinator.consumer.regexes import PROGRAM_BYTES

#: What each setting does.
SETTING_NOTES: Mapping[str, str] = {
    "advertised.listeners": "where clients are sent, `PROTOCOL://HOST:PORT` or `HOST:PORT`; none: to where "
    "they have reached the broker",
    "allow.everyone.if.no.acl.found": "whether everybody may use a resource about which there is no ACL",
    "authorizer.class.name": "`org.apache.kafka.metadata.authorizer.StandardAuthorizer`: clients may do what "
    "ACLs say, see [below](#who-may-do-what); none: everything",
    "auto.create.topics.enable": "whether a topic that Metadata asks for is created",
    "broker.rack": "the rack of all brokers, or `RACK,RACK,...`: of each in order",
    "connection.failed.authentication.delay.ms": "how long the answer to a failed authentication waits",
    "connections.max.idle.ms": "a connection without requests is closed after so long; negative: never",
    "connections.max.reauth.ms": "after so long a client must authenticate again; 0: never",
    "default.replication.factor": "replicas of a topic that is created without a number of them",
    "delete.topic.enable": "whether topics can be deleted",
    "fetch.max.bytes": "the most that one Fetch returns",
    "group.consumer.assignment.interval.ms": (
        "KIP-848: the least time between two computations of a group's targets; 0: none"
    ),
    "group.consumer.assignors": ("KIP-848: the broker's assignors that members may name, the default first"),
    "group.consumer.heartbeat.interval.ms": (
        "KIP-848: how often members send heartbeats; the broker tells them"
    ),
    "group.consumer.max.assignment.interval.ms": (
        "the most that one group may set for itself (`consumer.assignment.interval.ms`)"
    ),
    "group.consumer.max.heartbeat.interval.ms": (
        "the most that one group may set for itself (`consumer.heartbeat.interval.ms`)"
    ),
    "group.consumer.max.session.timeout.ms": (
        "the most that one group may set for itself (`consumer.session.timeout.ms`)"
    ),
    "group.consumer.max.size": "KIP-848: members of a group",
    "group.consumer.migration.policy": (
        "which live groups may change their protocol, see [consumer groups](consumer-groups.md)"
    ),
    "group.consumer.min.assignment.interval.ms": (
        "the least that one group may set for itself (`consumer.assignment.interval.ms`)"
    ),
    "group.consumer.min.heartbeat.interval.ms": (
        "the least that one group may set for itself (`consumer.heartbeat.interval.ms`)"
    ),
    "group.consumer.min.session.timeout.ms": (
        "the least that one group may set for itself (`consumer.session.timeout.ms`)"
    ),
    "group.consumer.regex.refresh.interval.ms": (
        "KIP-848: how often subscribed regular expressions are resolved anew"
    ),
    "group.consumer.session.timeout.ms": "KIP-848: how long a silent member stays",
    "group.initial.rebalance.delay.ms": "how long a new group waits for more members",
    "group.max.session.timeout.ms": "the longest session timeout that a member may ask for",
    "group.max.size": "members of a group",
    "group.min.session.timeout.ms": "the shortest session timeout that a member may ask for",
    "group.share.assignment.interval.ms": (
        "KIP-932: the least time between two computations of a group's targets; 0: none"
    ),
    "group.share.delivery.count.limit": (
        "KIP-932: how often a record is delivered until the group is done with it"
    ),
    "group.share.heartbeat.interval.ms": (
        "KIP-932: how often members send heartbeats; the broker tells them"
    ),
    "group.share.initialize.retry.interval.ms": (
        "KIP-932: partitions whose initialisation was not answered are initialised again after this time"
    ),
    "group.share.max.assignment.interval.ms": (
        "the most that one group may set for itself (`share.assignment.interval.ms`)"
    ),
    "group.share.max.delivery.count.limit": (
        "the most that one group may set for itself (`share.delivery.count.limit`)"
    ),
    "group.share.max.heartbeat.interval.ms": (
        "the most that one group may set for itself (`share.heartbeat.interval.ms`)"
    ),
    "group.share.max.partition.max.record.locks": (
        "the most that one group may set for itself (`share.partition.max.record.locks`)"
    ),
    "group.share.max.record.lock.duration.ms": (
        "the most that one group may set for itself (`share.record.lock.duration.ms`)"
    ),
    "group.share.max.session.timeout.ms": (
        "the most that one group may set for itself (`share.session.timeout.ms`)"
    ),
    "group.share.max.share.sessions": ("KIP-932: share sessions of a broker"),
    "group.share.max.size": ("KIP-932: members of a group"),
    "group.share.min.assignment.interval.ms": (
        "the least that one group may set for itself (`share.assignment.interval.ms`)"
    ),
    "group.share.min.delivery.count.limit": (
        "the least that one group may set for itself (`share.delivery.count.limit`)"
    ),
    "group.share.min.heartbeat.interval.ms": (
        "the least that one group may set for itself (`share.heartbeat.interval.ms`)"
    ),
    "group.share.min.partition.max.record.locks": (
        "the least that one group may set for itself (`share.partition.max.record.locks`)"
    ),
    "group.share.min.record.lock.duration.ms": (
        "the least that one group may set for itself (`share.record.lock.duration.ms`)"
    ),
    "group.share.min.session.timeout.ms": (
        "the least that one group may set for itself (`share.session.timeout.ms`)"
    ),
    "group.share.partition.max.record.locks": (
        "KIP-932: the records of a partition that a group has in flight"
    ),
    "group.share.record.lock.duration.ms": ("KIP-932: how long a member may keep a record"),
    "group.share.session.timeout.ms": ("KIP-932: how long a silent member stays"),
    "group.streams.acceptable.recovery.lag": ("KIP-1071: told to members, which do nothing with it yet"),
    "group.streams.assignment.interval.ms": (
        "KIP-1071: the least time between two computations of a group's targets; 0: none"
    ),
    "group.streams.heartbeat.interval.ms": (
        "KIP-1071: how often members send heartbeats; the broker tells them"
    ),
    "group.streams.initial.rebalance.delay.ms": ("KIP-1071: how long a new group waits for more members"),
    "group.streams.max.assignment.interval.ms": (
        "the most that one group may set for itself (`streams.assignment.interval.ms`)"
    ),
    "group.streams.max.heartbeat.interval.ms": (
        "the most that one group may set for itself (`streams.heartbeat.interval.ms`)"
    ),
    "group.streams.max.session.timeout.ms": (
        "the most that one group may set for itself (`streams.session.timeout.ms`)"
    ),
    "group.streams.max.size": ("KIP-1071: members of a group"),
    "group.streams.max.standby.replicas": (
        "the most that one group may set for itself (`streams.num.standby.replicas`)"
    ),
    "group.streams.max.warmup.replicas": (
        "the most that one group may set for itself (`streams.num.warmup.replicas`)"
    ),
    "group.streams.min.assignment.interval.ms": (
        "the least that one group may set for itself (`streams.assignment.interval.ms`)"
    ),
    "group.streams.min.heartbeat.interval.ms": (
        "the least that one group may set for itself (`streams.heartbeat.interval.ms`)"
    ),
    "group.streams.min.session.timeout.ms": (
        "the least that one group may set for itself (`streams.session.timeout.ms`)"
    ),
    "group.streams.min.task.offset.interval.ms": (
        "the least that one group may set for itself (`streams.task.offset.interval.ms`)"
    ),
    "group.streams.num.standby.replicas": ("KIP-1071: standby tasks of each stateful task"),
    "group.streams.num.warmup.replicas": (
        "KIP-1071: as in Kafka no member gets warm-up tasks; 0 makes the coordinator forget what it gave"
    ),
    "group.streams.rack.aware.assignment.tags": (
        "KIP-1071: client tags that each member must have, or it is told MISSING_CLIENT_TAGS"
    ),
    "group.streams.session.timeout.ms": ("KIP-1071: how long a silent member stays"),
    "group.streams.task.offset.interval.ms": (
        "KIP-1071: how often members report the offsets of their tasks; the broker tells them"
    ),
    "groupstorm.compatibility": "the Kafka whose rules count, see [coordinator](coordinator.md)",
    "groupstorm.append.latency.ms": "ours: how long each append of group records to the offsets topic takes, "
    "see [below](#appends-that-take-time)",
    "groupstorm.max.groups": "ours: groups of all brokers together",
    "groupstorm.max.partitions": "ours: partitions of all topics together",
    "groupstorm.max.topics": "ours: topics",
    "log.cleaner.backoff.ms": "how long until compacted topics are looked at again if none was due",
    "log.cleaner.delete.retention.ms": "how long compaction keeps tombstones and markers of transactions",
    "log.cleaner.max.compaction.lag.ms": "records are compacted after so long, however few they are",
    "log.cleaner.min.cleanable.ratio": "a log is compacted if more than this part of its bytes is new since",
    "log.cleaner.min.compaction.lag.ms": "records are not compacted before",
    "log.cleanup.policy": "`delete`, `compact` or both, see [below](#compaction)",
    "log.message.timestamp.after.max.ms": "how far ahead of the broker's time a record may be",
    "log.message.timestamp.before.max.ms": "how far behind the broker's time a record may be",
    "log.retention.bytes": "per partition: the oldest batches beyond this size are dropped; -1: none",
    "log.retention.check.interval.ms": "how often the age of batches is checked",
    "log.retention.ms": "batches whose newest record is older are dropped; -1: none",
    "log.roll.ms": "a record that is so much newer than its segment's first one begins another segment",
    "log.segment.bytes": "the size of a segment; the newest one is not compacted",
    "max.connections": "connections of each broker; further ones are closed at once",
    "max.incremental.fetch.session.cache.slots": "fetch sessions of each broker",
    "message.max.bytes": "the largest record batch",
    "node.id": "the id of the first broker; the others have the ids behind it",
    "num.partitions": "partitions of a topic that is created without a number of them",
    "offset.metadata.max.bytes": "the largest metadata of a committed offset",
    "offsets.retention.check.interval.ms": "how often committed offsets are checked for their age",
    "offsets.retention.minutes": "how long the offsets of an empty group are kept",
    "offsets.topic.num.partitions": "how groups are spread over several brokers",
    "quota.window.num": "over how many windows the rates of client quotas are measured",
    "quota.window.size.seconds": "how long each of these windows is",
    "sasl.enabled.mechanisms": "the mechanisms that a client may choose from",
    "sasl.server.max.receive.size": "the largest request of a client that has not authenticated yet",
    "socket.request.max.bytes": "the largest request",
    "super.users": "who may do everything whatever ACLs say: `User:NAME;User:NAME`",
    "transaction.max.timeout.ms": "the longest timeout that a transactional producer may ask for",
    "transaction.state.log.num.partitions": "how transactional ids are spread over several brokers",
}


def settings_table() -> str:
    """Every setting that `--set` takes, with its default."""
    rows = [(f"`{name}`", _default(name), SETTING_NOTES[name]) for name in SETTINGS]
    return _table(("setting", "default", ""), rows)


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
    return _table(("limit", "of", "default", "beyond it"), rows)


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
    return _table(("configuration", "default"), rows)


def apis_table() -> str:
    """Every API that is served, with its versions."""
    rows = [(api.name, str(api.key), f"{api.min_version}-{api.max_version}") for api in APIS.values()]
    return _table(("API", "key", "versions"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
