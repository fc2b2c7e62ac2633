"""The settings of Kafka Streams applications (`application: streams`): rows of the table in `settings`."""

from __future__ import annotations

from groupstorm.assignors.streams.assignors import TASK_ASSIGNORS
from groupstorm.assignors.streams.model import StandbyPlacement, Strategy, TagsOrRacks, TradeOff
from groupstorm.assignors.userdata.streams import EARLIEST_PROBEABLE_VERSION, LATEST_SUPPORTED_VERSION
from groupstorm.storms.scenario.group_protocol_settings import STREAMS_GROUP_SETTINGS
from groupstorm.storms.scenario.setting_types import MAX_MEMBERS, Setting

CONSUMER, STREAMS = "consumer", "streams"

STREAMS_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "application",
        "choice",
        CONSUMER,
        "kind of processes: plain consumers, or instances of a Kafka Streams application",
        allowed=(CONSUMER, STREAMS),
    ),
    # its tasks and their state
    Setting(
        "num.stream.threads", "integer", 1, "threads of an instance, each a member of the group", 1, 1000
    ),
    Setting(
        "stateless_topics",
        "integer",
        0,
        "the last so many topics feed sub-topologies that keep no state (every topic feeds one of its own; "
        "with joins they all feed one)",
        0,
        10_000,
    ),
    Setting("state_bytes", "integer", 1_000_000_000, "state of a stateful task at the beginning", 0, 10**15),
    Setting(
        "first_hosts_have_state",
        "flag",
        False,
        "the first instances find the state of all tasks on their hosts, and keep what they use, as if the "
        "application had run before",
    ),
    Setting("record_bytes", "integer", 1_000, "size of a record, in topics and in changelogs", 1, 10**9),
    Setting(
        "restore_mb_s", "integer", 50, "megabytes a second of changelogs that a thread can read", 1, 100_000
    ),
    Setting(
        "standby_lag_ms", "integer", 100, "how far behind a standby follows that has caught up", 0, 60_000
    ),
    Setting("commit.interval.ms", "integer", 30_000, "between two commits of a Streams thread", 1),
    Setting(
        "state.cleanup.delay.ms",
        "integer",
        600_000,
        "time after which an instance removes state that it does not use",
    ),
    # the assignment of tasks
    Setting(
        "task.assignor", "choice", "ha", "the task assignor of the leader", allowed=tuple(TASK_ASSIGNORS)
    ),
    Setting("num.standby.replicas", "integer", 0, "standbys of each stateful task", 0, 100),
    Setting("max.warmup.replicas", "integer", 2, "standbys at once that build up state to take over", 1),
    Setting("acceptable.recovery.lag", "integer", 10_000, "records; a lag up to this counts as caught up"),
    Setting(
        "probing.rebalance.interval.ms",
        "integer",
        600_000,
        "time until the group checks again whether warm-ups have caught up",
        60_000,
    ),
    Setting(
        "trade_off",
        "choice",
        TradeOff.LATENCY.value,
        "kip441-draft: keep a task where its state is, or go on to the next instance",
        allowed=tuple(TradeOff),
    ),
    Setting(
        "near_zero_gap",
        "optional integer",
        1_000,
        "kip441-draft: records at which a standby's gap is close to zero and as good as the running task's; "
        "null: to the letter, no standby is as near as the running task",
    ),
    Setting("watch_list", "flag", False, "kip441-draft: assignments name the standbys to watch"),
    Setting(
        "metadata_version",
        "integer",
        LATEST_SUPPORTED_VERSION,
        "version of SubscriptionInfo that the first instances know; rolling-upgrade brings the latest",
        EARLIEST_PROBEABLE_VERSION,
        LATEST_SUPPORTED_VERSION,
    ),
    # racks and what crosses them
    Setting(
        "racks", "integer", 0, "racks (zones) that instances and replicas are spread over; 0: unknown", 0, 100
    ),
    Setting(
        "members_per_rack",
        "integers",
        [],
        "first instances of each rack, rack by rack; []: one rack after the other",
        0,
        MAX_MEMBERS,
    ),
    Setting("replication.factor", "integer", 2, "replicas of a partition, each in a rack of its own", 1, 100),
    Setting(
        "replica_placement",
        "choice",
        "round-robin",
        "round-robin: the leaders of a topic's partitions in one rack after the other; random",
        allowed=("round-robin", "random"),
    ),
    Setting(
        "fetch_from_follower",
        "flag",
        True,
        "read from a replica in the reader's rack, if there is one (KIP-392)",
    ),
    Setting(
        "usd_per_gb_each_way",
        "decimal",
        0.01,
        "price of a gigabyte that leaves a rack, and again of one that enters a rack",
        0,
        1000,
    ),
    Setting(
        "rack.aware.assignment.strategy",
        "choice",
        Strategy.NONE.value,
        "the task assignor saves traffic between racks (KIP-925)",
        allowed=tuple(Strategy),
    ),
    Setting(
        "rack.aware.assignment.traffic_cost",
        "optional integer",
        None,
        "cost of a partition that crosses racks; null: the assignor's own",
    ),
    Setting(
        "rack.aware.assignment.non_overlap_cost",
        "optional integer",
        None,
        "cost of a task that changes its instance; null: the assignor's own",
    ),
    Setting(
        "rack.aware.assignment.tags",
        "choice",
        "none",
        "client tags that keep the copies of a task apart (KIP-708): each instance has its rack as tag zone",
        allowed=("none", "zone"),
    ),
    Setting(
        "standby_placement",
        "choice",
        StandbyPlacement.SHIPPED.value,
        "how standbys are placed if racks are known (KIP-925; shipped is Kafka's)",
        allowed=tuple(StandbyPlacement),
    ),
    Setting(
        "reliable_standbys",
        "integer",
        1,
        "reliable-first: standbys wanted in another rack at any cost",
        0,
        100,
    ),
    Setting(
        "tags_or_racks",
        "choice",
        TagsOrRacks.TAGS.value,
        "which of the two keeps copies apart",
        allowed=tuple(TagsOrRacks),
    ),
    *STREAMS_GROUP_SETTINGS,
)
