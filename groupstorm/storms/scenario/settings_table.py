"""The table of what a scenario can set: name, kind, default, bounds, meaning.

Settings that Kafka has are spelled as Kafka spells them.
"""

from __future__ import annotations

from groupstorm.clients.profiles import JAVA, LATENESS, PROFILES
from groupstorm.storms.scenario.commit_settings import COMMIT_SETTINGS
from groupstorm.storms.scenario.deployment_settings import AUTOSCALER_SETTINGS, DEPLOYMENT_SETTINGS
from groupstorm.storms.scenario.group_protocol_settings import CONSUMER_GROUP_SETTINGS, PROTOCOL_SETTINGS
from groupstorm.storms.scenario.setting_types import INT_MAX, MAX_MEMBERS, MAX_PARTITIONS, Setting
from groupstorm.storms.scenario.share_settings import SHARE_SETTINGS
from groupstorm.storms.scenario.streams_settings import STREAMS_SETTINGS

SETTINGS: tuple[Setting, ...] = (
    # the group
    Setting("members", "integer", 10, "consumers of the group, or Streams instances", 1, MAX_MEMBERS),
    Setting(
        "members_per_pod",
        "integer",
        1,
        "consumers of one process, which start, drain, stop and crash together (concurrency in Spring); "
        "max_surge, max_unavailable and replicas count processes",
        1,
        MAX_MEMBERS,
        in_files=False,
    ),
    Setting("topics", "integer", 1, "topics: topic-0, topic-1, ...", 1, 10_000),
    Setting(
        "topic_pattern",
        "pattern",
        None,
        "regular expression: members subscribe to all topics whose whole name matches; null: to topic-0, ...",
    ),
    Setting("partitions", "integer", 20, "partitions of every topic", 1, MAX_PARTITIONS),
    Setting(
        "topic_partitions",
        "topic partitions",
        None,
        "topics by name, each with its partitions, in the place of topics and partitions: {orders: 12}",
        1,
        MAX_PARTITIONS,
        in_files=False,
    ),
    Setting(
        "partition.assignment.strategy",
        "names",
        ["range", "cooperative-sticky"],
        "assignors by name; module:attribute for your own",
    ),
    Setting(
        "group.instance.id",
        "choice",
        "none",
        "none: dynamic members; ordinal: static members, each named after its place; podname: after its pod "
        "(whose name is new in a Deployment)",
        allowed=("none", "ordinal", "podname"),
    ),
    Setting(
        "member_settings",
        "member rules",
        [],
        "settings and names of single members: [{members: [0, 1], settings: {process_ms: 20}}, "
        "{members: [2], name: app-a}]",
    ),
    Setting(
        "releases",
        "releases",
        [],
        "what the first, the second ... rolling-restart rolls out: [{session.timeout.ms: 60s}, {...}]",
    ),
    Setting(
        "client_profile",
        "names",
        ["java"],
        "client library whose defaults and behaviour members have; if several are given, members take turns",
        allowed=tuple(PROFILES),
    ),
    *PROTOCOL_SETTINGS,
    # the consumer
    Setting("session.timeout.ms", "integer", 45_000, "silence after which a member is removed", 1),
    Setting("heartbeat.interval.ms", "integer", 3_000, "between two heartbeats", 1),
    Setting("max.poll.interval.ms", "integer", 300_000, "between two polls; also the rebalance timeout", 1),
    Setting("max.poll.records", "integer", 500, "records that one poll() returns at most", 1),
    Setting(
        "max.partition.fetch.bytes", "integer", 1_048_576, "bytes of one partition in one fetch response", 1
    ),
    Setting("request.timeout.ms", "integer", 30_000, "wait for the response to any request but JoinGroup", 1),
    Setting("retry.backoff.ms", "integer", 100, "pause before a request is tried again", 1),
    Setting("metadata.max.age.ms", "integer", 300_000, "between two refreshes of topic metadata", 1),
    Setting(
        "enable.auto.commit",
        "flag",
        True,
        "commit positions in the background; false: the application commits by hand (commits)",
    ),
    Setting("auto.commit.interval.ms", "integer", 5_000, "between two background commits", 1),
    *COMMIT_SETTINGS,
    Setting(
        "leave_on_close", "optional flag", None, "send LeaveGroup on close; null: only dynamic members do"
    ),
    # the application
    Setting(
        "poll_interval_ms",
        "distribution",
        100,
        "least time from a poll() that returned less than max.poll.records to the next one",
    ),
    Setting("process_ms", "distribution", 1, "time that the application works on one record"),
    Setting("concurrency", "integer", 1, "records that the application works on at a time", 1, 100_000),
    Setting("revoke_callback_ms", "distribution", 0, "duration of onPartitionsRevoked and onPartitionsLost"),
    Setting("assign_callback_ms", "distribution", 0, "duration of onPartitionsAssigned"),
    Setting(
        "restore_ms",
        "distribution",
        0,
        "rebuilding the state of each partition that a process did not own just before (joins, aggregates)",
    ),
    Setting(
        "joins",
        "flag",
        False,
        "processes join their topics: partition n of all topics must have one owner at the end",
    ),
    Setting("assign_ms", "distribution", 0, "duration of the leader's assignor"),
    Setting(
        "assign_ns_per_member_partition",
        "integer",
        0,
        "added to assign_ms for every member times partition (KAFKA-9987: seconds grow with both)",
    ),
    # the broker
    Setting("group.initial.rebalance.delay.ms", "integer", 3_000, "wait for more members on a first join"),
    Setting("group.max.size", "integer", INT_MAX, "members that a group may have", 1),
    Setting("group.min.session.timeout.ms", "integer", 6_000, "shortest session.timeout.ms allowed", 1),
    Setting("group.max.session.timeout.ms", "integer", 1_800_000, "longest session.timeout.ms allowed", 1),
    *CONSUMER_GROUP_SETTINGS,
    *SHARE_SETTINGS,
    Setting("coordinator_service_us", "integer", 20, "time that the coordinator works on one request"),
    Setting(
        "append_latency_ms",
        "integer",
        2,
        "duration of a write of group metadata to the offsets topic",
        0,
        60_000,
    ),
    Setting(
        "net_latency_ms",
        "distribution",
        {"quantiles": {0: 0.2, 50: 0.5, 95: 2, 100: 10}},
        "one way between a consumer and the coordinator",
    ),
    Setting(
        "slow_records",
        "slow records",
        [],
        "records that take long or fail: [{partition: 3, offset: 5000, takes: 6m, retries: 2, then: crash}]",
    ),
    Setting("machines", "machines", [], "machines whose members work slower: [{members: [0, 1], factor: 3}]"),
    Setting("gc_pause_ms", "distribution", 0, "pauses of the whole process, as of a garbage collection"),
    Setting("gc_interval_ms", "distribution", 60_000, "from the end of such a pause to the next"),
    Setting(
        "clock_drift_ppm",
        "integer",
        0,
        "parts per million by which the clock of a member's machine is fast (negative: slow): its client's "
        "timers end so much earlier",
        -100_000,
        100_000,
    ),
    Setting(
        LATENESS,
        "distribution",
        JAVA.defaults[LATENESS],
        "how late a client's timer sends each heartbeat; set anew then, members drift apart; 0: never late",
    ),
    # the records
    Setting(
        "record_rate",
        "rates",
        100,
        "records a second into every partition; 0: no records; or {topic-0: 200, others: 10}",
    ),
    Setting(
        "record_skew",
        "skew",
        "none",
        "how a topic's records spread over its partitions: none, {zipf: 1.0} "
        "or {hot: {partitions: 2, share: 50%}}",
    ),
    Setting(
        "record_rate_over_time",
        "rate changes",
        "none",
        "none, steps [{at: 5m, factor: 3}], a wave {period: 24h, low: 0.3, high: 1.5}, or {file: rates.csv}",
    ),
    *DEPLOYMENT_SETTINGS,
    *AUTOSCALER_SETTINGS,
    *STREAMS_SETTINGS,
    # the times of a scenario's steps
    Setting(
        "phases",
        "choice",
        "drawn",
        "where heartbeats, background commits, metadata and an autoscaler's decisions stand in their "
        "intervals when a step comes: drawn by the seed, or aligned: all begin with the run",
        allowed=("drawn", "aligned"),
    ),
    Setting("arrival_ms", "integer", 0, "window in which the first members arrive"),
    Setting("warm_up_ms", "integer", 60_000, "quiet time before the scenario's own steps"),
    Setting("failover_ms", "integer", 5_000, "how long a group has no coordinator after a failover"),
    Setting("late_join_ms", "integer", 3_000, "when the late member of a scenario joins"),
    Setting("slow_batch_ms", "integer", 240_000, "duration of a slow member's batch"),
    Setting("pause_ms", "integer", 15_000, "how long a process stands still in a scenario that pauses one"),
    Setting(
        "settle_timeout_ms", "integer", 600_000, "how long after the last step the group may take to settle"
    ),
    Setting(
        "restart_failed",
        "flag",
        False,
        "processes that end with a fatal error start again (start_ms, after Kubernetes' back-off)",
    ),
    Setting(
        "kafka_defects",
        "flag",
        False,
        "assignors answer as those of Kafka 4.3.1 do, also where these throw or assign a partition twice",
    ),
    Setting(
        "if_never_settled",
        "choice",
        "fail",
        "a group that cannot settle (livelock) fails the run, or is an answer that the run reports",
        allowed=("fail", "report"),
    ),
    Setting("least_duration_ms", "integer", 0, "least duration of a run, for sums that grow with time"),
    Setting("tail_ms", "integer", 10_000, "quiet time after the group has settled"),
)
