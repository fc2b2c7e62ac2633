"""How the client libraries differ as members: their defaults, what they write, when they act.

One row per library, read from its source at the version that stands in it, and held against recordings of the
real ones (`tests/profiles`). What is not in a row is as in Kafka's Java consumer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from groupstorm.clients.causes import CLOSING, NEEDS_MEMBER_ID, REASONS, RejoinCause
from groupstorm.problems import InputError


class FirstHeartbeat(Enum):
    """When a member that has joined sends its first heartbeat."""

    AFTER_INTERVAL = "heartbeat.interval.ms after the JoinGroup's answer"
    WHEN_OVERDUE = "heartbeat.interval.ms after its last one: the very first at once"


#: Looked up on the class, a member costs as much as a call before Python 3.12.
_AFTER_INTERVAL: Final = FirstHeartbeat.AFTER_INTERVAL


class CooperativeUserData(Enum):
    """What cooperative-sticky puts into a subscription beside the owned partitions."""

    GENERATION = "the generation (CooperativeStickyAssignor)"
    STICKY = "what sticky puts there, partitions and generation"
    STICKY_OR_NONE = "the same, and nothing before the first assignment"
    NONE = "nothing"


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """One library. Versions are the highest that it speaks; brokers of before may make it speak lower ones.

    ``defaults``: by Kafka's names, where they differ from Java's. ``rebalance_timeout``: what its JoinGroup
    says, milliseconds or the setting that it takes them from.
    """

    name: str
    client: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    join_group_version: int = 9
    sync_group_version: int = 5
    heartbeat_version: int = 4
    leave_group_version: int = 5
    offset_commit_version: int = 9
    #: Of ConsumerProtocolSubscription, by assignor; "" stands for all others.
    subscription_versions: Mapping[str, int] = field(default_factory=lambda: {"": 3})
    #: It has cooperative rebalancing.
    has_cooperative: bool = True
    #: What stands for "no user data": Java's null, or an empty text.
    no_user_data: bytes | None = None
    cooperative_user_data: CooperativeUserData = CooperativeUserData.GENERATION
    #: An eager member tells the generation that it was in, though it owns nothing any more.
    eager_tells_generation: bool = True
    #: Its words for Java's reasons of JoinGroup and LeaveGroup, by how those begin; "" is for the first join.
    reasons: Mapping[str, str] = field(default_factory=dict)
    rebalance_timeout: str | int = "max.poll.interval.ms"
    first_heartbeat: FirstHeartbeat = FirstHeartbeat.AFTER_INTERVAL
    #: A cooperative member's first heartbeat after each assignment, sooner than all others.
    cooperative_check_ms: int | None = None
    #: Heartbeats are sent between JoinGroup's answer and SyncGroup's.
    heartbeats_while_syncing: bool = True
    #: It joins again at the application's next poll(); else a task or thread of its own does at once.
    rejoins_at_poll: bool = True
    #: It leaves the group when the application does not poll for max.poll.interval.ms.
    has_max_poll_interval: bool = True

    def subscription_version(self, assignor: str) -> int:
        return self.subscription_versions.get(assignor, self.subscription_versions[""])

    def reason(self, reason: str) -> str:
        """Why it joins or leaves, in its own words; ``reason`` in Java's."""
        for beginning, words in self.reasons.items():
            if reason.startswith(beginning) and (beginning or not reason):
                return words
        return reason

    def first_heartbeat_us(
        self, now_us: int, interval_us: int, last_us: int | None, is_cooperative: bool
    ) -> int:
        """When the first heartbeat after an assignment is due; ``last_us``: when the last one before left."""
        if is_cooperative and self.cooperative_check_ms is not None:
            return now_us + self.cooperative_check_ms * 1000
        if self.first_heartbeat is _AFTER_INTERVAL:
            return now_us + interval_us
        return now_us if last_us is None else max(now_us, last_us + interval_us)


JAVA = ClientProfile("java", "kafka-clients 4.3.1")

_LIBRDKAFKA = ClientProfile(
    "librdkafka",
    "librdkafka 2.16 (confluent-kafka 2.16.1)",
    # rdkafka_conf.c: socket.timeout.ms is what others call request.timeout.ms
    defaults={"partition.assignment.strategy": ["range", "roundrobin"], "request.timeout.ms": 60_000},
    join_group_version=5,
    sync_group_version=3,
    heartbeat_version=3,
    leave_group_version=1,
    no_user_data=b"",
    cooperative_user_data=CooperativeUserData.STICKY_OR_NONE,
    eager_tells_generation=False,
    first_heartbeat=FirstHeartbeat.WHEN_OVERDUE,
    heartbeats_while_syncing=False,
)
_KAFKA_PYTHON = ClientProfile(
    "kafka-python",
    "kafka-python 3.0.12",
    defaults={"partition.assignment.strategy": ["range", "roundrobin"]},
    join_group_version=7,
    offset_commit_version=8,
    # cooperative_sticky.py writes version 1: the leader never learns a generation (KIP-792)
    subscription_versions={"": 0, "cooperative-sticky": 1},
    no_user_data=b"",
    cooperative_user_data=CooperativeUserData.NONE,
    eager_tells_generation=False,
    reasons={CLOSING: ""},
)
_AIOKAFKA = ClientProfile(
    "aiokafka",
    "aiokafka 0.14.0",
    defaults={
        "partition.assignment.strategy": ["roundrobin"],
        "session.timeout.ms": 10_000,
        "request.timeout.ms": 40_000,
    },
    join_group_version=5,
    sync_group_version=3,
    heartbeat_version=1,
    leave_group_version=1,
    offset_commit_version=3,
    subscription_versions={"": 0},
    has_cooperative=False,
    no_user_data=b"",
    eager_tells_generation=False,
    rebalance_timeout="session.timeout.ms",  # unless rebalance_timeout_ms is given
    heartbeats_while_syncing=False,
    rejoins_at_poll=False,
)
_FRANZ_GO = ClientProfile(
    "franz-go",
    "franz-go 1.22.2",
    # config.go: requests time out after requestTimeoutOverhead; backoff from 250 ms on
    defaults={
        "partition.assignment.strategy": ["cooperative-sticky"],
        "request.timeout.ms": 10_000,
        "retry.backoff.ms": 250,
    },
    cooperative_user_data=CooperativeUserData.STICKY,
    eager_tells_generation=False,
    reasons={
        REASONS[RejoinCause.FIRST_JOIN]: "beginning to manage the group lifecycle",
        NEEDS_MEMBER_ID: "beginning to manage the group lifecycle",
        REASONS[RejoinCause.GROUP_REBALANCING]: "rejoining from normal rebalance",
        REASONS[RejoinCause.REVOKED_PARTITIONS]: "after revoking what we lost from a rebalance",
        CLOSING: "client leaving group per normal operation",
    },
    rebalance_timeout=60_000,
    cooperative_check_ms=500,
    heartbeats_while_syncing=False,
    rejoins_at_poll=False,
    has_max_poll_interval=False,
)

PROFILES: Mapping[str, ClientProfile] = {
    profile.name: profile for profile in (JAVA, _LIBRDKAFKA, _KAFKA_PYTHON, _AIOKAFKA, _FRANZ_GO)
}


def profile(name: str) -> ClientProfile:
    """Raises InputError naming those that there are."""
    if name not in PROFILES:
        raise InputError(f"client_profile: {name!r} is not one of {', '.join(PROFILES)}")
    return PROFILES[name]
