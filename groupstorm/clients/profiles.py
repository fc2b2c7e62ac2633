"""The protocols of groups, and the differences between client libraries: defaults, fields of requests, times.

One profile per library, read from its source at the version that the profile names, and compared with
recordings of the real library (`tests/client_profiles`). A field that a profile leaves out is as in Kafka's
Java consumer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Final

from groupstorm.clients.error_tables import CLOSING, NEEDS_MEMBER_ID, REASONS, RejoinCause
from groupstorm.problems import InputError
from groupstorm.wording import listed


class GroupProtocol(StrEnum):
    """group.protocol of a client: who assigns partitions or tasks."""

    #: A member of the group does (JoinGroup, SyncGroup, Heartbeat).
    CLASSIC = "classic"
    #: The broker does (ConsumerGroupHeartbeat, KIP-848).
    CONSUMER = "consumer"
    #: The broker does, to threads of Kafka Streams (StreamsGroupHeartbeat, KIP-1071).
    STREAMS = "streams"
    #: The broker does, each partition to several consumers (ShareGroupHeartbeat, KIP-932).
    SHARE = "share"


#: The protocols of plain consumers.
OF_CONSUMERS = (GroupProtocol.CLASSIC, GroupProtocol.CONSUMER)


#: The settings that a consumer refuses if they are given (ConsumerConfig.checkUnsupportedConfigsPostProcess,
#: 4.3.1), by protocol, and what to do instead.
_REFUSED: Mapping[GroupProtocol, Mapping[str, str]] = {
    GroupProtocol.CLASSIC: {
        "group.remote.assignor": "leave it out, and set partition.assignment.strategy",
    },
    GroupProtocol.CONSUMER: {
        "partition.assignment.strategy": "leave it out, and set group.remote.assignor",
        "heartbeat.interval.ms": "leave it out: the broker has group.consumer.heartbeat.interval.ms",
        "session.timeout.ms": "leave it out: the broker has group.consumer.session.timeout.ms",
    },
}


def refuse_settings(protocol: GroupProtocol, given: Mapping[str, object]) -> None:
    """Raise InputError if a consumer that speaks ``protocol`` refuses one of the settings that are given.

    ``given``: Kafka's names -> values, without defaults.
    """
    for name, remedy in _REFUSED[protocol].items():
        if name in given:
            raise InputError(f"{name}: {given[name]} cannot be set with group.protocol={protocol}: {remedy}")


#: A poll() that returns everything that the client has fetched.
ALL_FETCHED: Final = 2**31 - 1

#: The setting of storms that says how late a client's heartbeat timer is; by each client's recordings.
LATENESS: Final = "heartbeat_lateness_ms"


class FirstHeartbeat(Enum):
    """When a member that has joined sends its first heartbeat."""

    AFTER_INTERVAL = "heartbeat.interval.ms after the JoinGroup response"
    WHEN_OVERDUE = "heartbeat.interval.ms after its last heartbeat; the very first one at once"


#: Looked up on the class, a member costs as much as a call before Python 3.12.
_AFTER_INTERVAL: Final = FirstHeartbeat.AFTER_INTERVAL


class CooperativeUserData(Enum):
    """The user data that cooperative-sticky puts into a subscription."""

    GENERATION = "the generation (CooperativeStickyAssignor)"
    STICKY = "that of sticky: partitions and generation"
    STICKY_OR_NONE = "that of sticky, and none before the first assignment"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """One library. Versions are the highest that it speaks; an older broker may make it speak lower ones.

    ``defaults``: those that differ from Java's, by Kafka's names, and how late its heartbeats are.
    ``rebalance_timeout``: the one in its JoinGroup, in milliseconds, or the name of the setting that it
    sends.
    """

    name: str
    client: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    #: The values of group.protocol that the library has and that our members speak as the library does.
    group_protocols: frozenset[GroupProtocol] = frozenset({GroupProtocol.CLASSIC})
    #: The release from which on the library calls its group.protocol=consumer ready for production.
    consumer_protocol_since: str = ""
    join_group_version: int = 9
    sync_group_version: int = 5
    heartbeat_version: int = 4
    leave_group_version: int = 5
    offset_commit_version: int = 9
    #: The versions of ConsumerProtocolSubscription by assignor; "" stands for all other assignors.
    subscription_versions: Mapping[str, int] = field(default_factory=lambda: {"": 3})
    #: Whether the library has cooperative rebalancing.
    has_cooperative: bool = True
    #: The bytes for "no user data": Java's null, or an empty text.
    no_user_data: bytes | None = None
    cooperative_user_data: CooperativeUserData = CooperativeUserData.GENERATION
    #: Whether an eager member sends its last generation, though it owns no partitions.
    eager_sends_generation: bool = True
    #: Its reasons of JoinGroup and LeaveGroup, by the beginning of Java's reason; "" is the first join's.
    reasons: Mapping[str, str] = field(default_factory=dict)
    rebalance_timeout: str | int = "max.poll.interval.ms"
    first_heartbeat: FirstHeartbeat = FirstHeartbeat.AFTER_INTERVAL
    #: When a cooperative member sends its first heartbeat after an assignment; None: as other members.
    cooperative_check_ms: int | None = None
    #: Whether heartbeats leave between the responses of JoinGroup and SyncGroup.
    heartbeats_while_syncing: bool = True
    #: Whether its heartbeat thread waits in steps of retry.backoff.ms, which only a poll() cuts short.
    heartbeats_wait_in_steps: bool = False
    #: Whether the time to the next heartbeat counts from the response to this one, not from its sending.
    heartbeat_timer_waits_for_response: bool = False
    #: True: a member joins again at the application's next poll(). False: a task or thread joins at once.
    rejoins_at_poll: bool = True
    #: The least time between two JoinGroups of a member; 0: as near as they come. The JoinGroups behind a
    #: round that the member led or in which it revoked, and behind MEMBER_ID_REQUIRED, keep no distance.
    join_interval_ms: int = 0
    #: From the response of SyncGroup that revokes partitions to the JoinGroup that hands them over: callbacks
    #: that go from the library's thread to the application's poll() and back.
    handover_ms: int = 0
    #: Whether poll() hands out records of partitions that a cooperative member keeps during a round. If not,
    #: it hands some out between two rounds.
    fetches_during_round: bool = True
    #: Whether a cooperative member's poll() returns records in the midst of a round, and only the next poll()
    #: reads what the coordinator has answered meanwhile (joinGroupIfNeeded with a timer of 0).
    rounds_wait_for_polls: bool = False
    #: Whether a cooperative member commits before it joins again; False: only when it gives partitions up.
    commits_before_cooperative_join: bool = True
    #: Whether a thread or task of the library commits while the application works; False: poll() commits.
    commits_between_polls: bool = False
    #: Whether a member leaves if the application does not poll for max.poll.interval.ms.
    has_max_poll_interval: bool = True
    #: Whether a member that leaves for that gives its partitions up at once, not when the application polls.
    gives_up_as_it_leaves: bool = False
    #: Whether every member, not only the leader, asks for a round if a topic of its subscription has grown
    #: (rd_kafka_cgrp_metadata_update_check).
    every_member_watches_topics: bool = False
    #: Whether a leader that is told to skip the assignor (KIP-814) runs it all the same, and joins again if
    #: its plan differs from what it got (consumer_group.go, joinAndSync).
    checks_skipped_assignment: bool = False
    #: In the consumer protocol: whether a member acknowledges that it has joined without partitions. If not,
    #: its next heartbeat, at the interval, tells everything once more.
    acknowledges_nothing: bool = True
    #: In the consumer protocol: whether a heartbeat that tells everything has an empty regular expression if
    #: there is none.
    tells_empty_regex: bool = False
    #: In the consumer protocol: whether the heartbeat that leaves tells that topics and partitions are gone.
    tells_when_leaving: bool = True
    #: In the consumer protocol: whether a member leaves as soon as max.poll.interval.ms is over. If not, it
    #: sends no heartbeat until the application polls, which runs onPartitionsLost; then it leaves and joins.
    leaves_without_poll: bool = True
    #: Whether a member with a topic pattern fetches metadata before it joins (KAFKA-7126).
    refreshes_before_join: bool = False

    def subscription_version(self, assignor: str) -> int:
        return self.subscription_versions.get(assignor, self.subscription_versions[""])

    def reason(self, reason: str) -> str:
        """The library's reason for joining or leaving; ``reason`` is Java's."""
        for beginning, words in self.reasons.items():
            if reason.startswith(beginning) and (beginning or not reason):
                return words
        return reason

    def first_heartbeat_us(
        self, now_us: int, interval_us: int, last_us: int | None, is_cooperative: bool
    ) -> int:
        """When the first heartbeat after an assignment is due. ``last_us``: when the last heartbeat left."""
        if is_cooperative and self.cooperative_check_ms is not None:
            return now_us + self.cooperative_check_ms * 1000
        if self.first_heartbeat is _AFTER_INTERVAL:
            return now_us + interval_us
        return now_us if last_us is None else max(now_us, last_us + interval_us)


JAVA = ClientProfile(
    "java",
    "kafka-clients 4.3.1",
    defaults={LATENESS: {"quantiles": {0: 0.2, 50: 1.1, 90: 5, 99: 15, 100: 40}}},
    group_protocols=frozenset(GroupProtocol),
    consumer_protocol_since="kafka-clients 4.0",
    heartbeats_wait_in_steps=True,
    rounds_wait_for_polls=True,
    refreshes_before_join=True,
)

_LIBRDKAFKA = ClientProfile(
    "librdkafka",
    "librdkafka 2.16 (confluent-kafka 2.16.1)",
    # rdkafka_conf.c: socket.timeout.ms is what others call request.timeout.ms
    # rd_kafka_consumer_poll hands out one message
    defaults={
        "partition.assignment.strategy": ["range", "roundrobin"],
        "request.timeout.ms": 60_000,
        "max.poll.records": 1,
        LATENESS: {"quantiles": {0: 0.5, 50: 2.2, 90: 6, 98: 30, 100: 100}},
    },
    group_protocols=frozenset(OF_CONSUMERS),
    consumer_protocol_since="librdkafka 2.12 (confluent-kafka 2.12; in 2.4 to 2.11 for evaluation only)",
    join_group_version=5,
    sync_group_version=3,
    heartbeat_version=3,
    leave_group_version=1,
    no_user_data=b"",
    cooperative_user_data=CooperativeUserData.STICKY_OR_NONE,
    eager_sends_generation=False,
    first_heartbeat=FirstHeartbeat.WHEN_OVERDUE,
    heartbeats_while_syncing=False,
    commits_between_polls=True,
    every_member_watches_topics=True,
    join_interval_ms=1000,  # rkcg_join_intvl; reset by a leader's metadata and by incremental_assign
    handover_ms=5,  # confluent-kafka: 9 to 14 ms on a busy machine
    acknowledges_nothing=False,
    tells_empty_regex=True,
    tells_when_leaving=False,
    leaves_without_poll=False,  # rd_kafka_cgrp_revoke_all_rejoin: the leave follows the revocation
    commits_before_cooperative_join=False,  # rd_kafka_assignment_serve_removals commits what is unassigned
)
_KAFKA_PYTHON = ClientProfile(
    "kafka-python",
    "kafka-python 3.0.12",
    defaults={
        "partition.assignment.strategy": ["range", "roundrobin"],
        LATENESS: {"quantiles": {0: 0.2, 50: 1.2, 90: 4, 99: 12, 100: 30}},
    },
    join_group_version=7,
    offset_commit_version=8,
    # cooperative_sticky.py writes version 1: the leader never learns a generation (KIP-792)
    subscription_versions={"": 0, "cooperative-sticky": 1},
    no_user_data=b"",
    cooperative_user_data=CooperativeUserData.NONE,
    eager_sends_generation=False,
    reasons={CLOSING: ""},
    # KafkaConsumer._poll_once returns nothing unless the coordinator is done; join_group_async is done after
    # each round
    fetches_during_round=False,
    refreshes_before_join=True,
)
_AIOKAFKA = ClientProfile(
    "aiokafka",
    "aiokafka 0.14.0",
    defaults={
        "partition.assignment.strategy": ["roundrobin"],
        "session.timeout.ms": 10_000,
        "request.timeout.ms": 40_000,
        "max.poll.records": ALL_FETCHED,  # getmany(); max_poll_records is None
        LATENESS: {"quantiles": {0: 0.2, 50: 1, 90: 3.5, 99: 20, 100: 50}},
    },
    join_group_version=5,
    sync_group_version=3,
    heartbeat_version=1,
    leave_group_version=1,
    offset_commit_version=3,
    subscription_versions={"": 0},
    has_cooperative=False,
    no_user_data=b"",
    eager_sends_generation=False,
    rebalance_timeout="session.timeout.ms",  # unless rebalance_timeout_ms is given
    heartbeats_while_syncing=False,
    commits_between_polls=True,
    rejoins_at_poll=False,
    gives_up_as_it_leaves=True,  # ensure_active_group: _on_join_prepare, and then it waits for a fetch
)
_FRANZ_GO = ClientProfile(
    "franz-go",
    "franz-go 1.22.2",
    # config.go: requests time out after requestTimeoutOverhead; backoff from 250 ms on
    defaults={
        "partition.assignment.strategy": ["cooperative-sticky"],
        "request.timeout.ms": 10_000,
        "retry.backoff.ms": 250,
        "max.poll.records": ALL_FETCHED,  # PollFetches
        LATENESS: {"quantiles": {0: 0.2, 50: 1.2, 90: 4, 99: 20, 100: 50}},
    },
    cooperative_user_data=CooperativeUserData.STICKY,
    eager_sends_generation=False,
    reasons={
        REASONS[RejoinCause.FIRST_JOIN]: "beginning to manage the group lifecycle",
        NEEDS_MEMBER_ID: "beginning to manage the group lifecycle",
        REASONS[RejoinCause.GROUP_REBALANCING]: "rejoining from normal rebalance",
        REASONS[RejoinCause.REVOKED_PARTITIONS]: "after revoking what we lost from a rebalance",
        CLOSING: "client leaving group per normal operation",
    },
    rebalance_timeout=60_000,
    cooperative_check_ms=500,
    checks_skipped_assignment=True,
    heartbeats_while_syncing=False,
    heartbeat_timer_waits_for_response=True,
    rejoins_at_poll=False,
    has_max_poll_interval=False,
)

PROFILES: Mapping[str, ClientProfile] = {
    profile.name: profile for profile in (JAVA, _LIBRDKAFKA, _KAFKA_PYTHON, _AIOKAFKA, _FRANZ_GO)
}


def consumer_protocol_needs(clients: Iterable[str]) -> str | None:
    """The releases that group.protocol=consumer takes; None if one of the clients does not have it."""
    profiles = [PROFILES[name] for name in clients]
    if any(GroupProtocol.CONSUMER not in one.group_protocols for one in profiles):
        return None
    releases = ["Apache Kafka 4.0 (brokers)", *(one.consumer_protocol_since for one in profiles)]
    return f"{listed(releases)} or later"


def profile(name: str) -> ClientProfile:
    """The profile of that name. Raises InputError, which names the profiles that exist."""
    if name not in PROFILES:
        raise InputError(f"client_profile: {name!r} is not one of {', '.join(PROFILES)}")
    return PROFILES[name]
