"""A consumer's settings: Kafka's names, defaults and bounds (ConsumerConfig, 4.3.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from groupstorm.clients.profiles import JAVA, ClientProfile, GroupProtocol
from groupstorm.problems import InputError


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """The settings of one consumer; durations in milliseconds.

    Raises InputError if Kafka's consumer would refuse to start with them.
    """

    group_id: str
    client_id: str
    topics: tuple[str, ...]
    group_instance_id: str | None = None
    partition_assignment_strategy: tuple[str, ...] = ("range", "cooperative-sticky")
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    #: The longest pause of a member of a consumer group: its pauses double (KIP-580).
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    #: CloseOptions of KIP-1092. None is Kafka's default: dynamic members leave, static members stay.
    leave_group_on_close: bool | None = None
    client_rack: str | None = None
    #: A regular expression: the consumer subscribes to all topics whose whole name matches it, and not to
    #: ``topics`` (KafkaConsumer.subscribe(Pattern)).
    topic_pattern: str | None = None
    #: The broker's assignor that a member of a consumer group names (KIP-848); None: the broker chooses.
    group_remote_assignor: str | None = None
    #: group.protocol: how the consumer takes part in its group.
    group_protocol: GroupProtocol = GroupProtocol.CLASSIC
    #: A regular expression that the broker resolves with RE2: the consumer subscribes to all topics whose
    #: whole name matches it, and not to ``topics`` (KafkaConsumer.subscribe(SubscriptionPattern)).
    subscription_pattern: str | None = None
    #: The client library whose behaviour the consumer has.
    profile: ClientProfile = JAVA
    protocol_type: str = field(default="consumer", init=False)
    #: The time for which the coordinator waits in a rebalance for this member to join.
    rebalance_timeout_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self._check_group_protocol()
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise InputError(
                f"heartbeat.interval.ms: {self.heartbeat_interval_ms} must be lower than "
                f"session.timeout.ms ({self.session_timeout_ms})"
            )
        if not self.partition_assignment_strategy:
            raise InputError("partition.assignment.strategy: at least one assignor is needed")
        timeout = self.profile.rebalance_timeout
        if not isinstance(timeout, int):
            timeout = {
                "max.poll.interval.ms": self.max_poll_interval_ms,
                "session.timeout.ms": self.session_timeout_ms,
            }[timeout]
        object.__setattr__(self, "rebalance_timeout_ms", timeout)  # the dataclass is frozen

    def _check_group_protocol(self) -> None:
        protocol, profile = self.group_protocol, self.profile
        if protocol not in profile.group_protocols:
            raise InputError(f"group.protocol: {protocol}, but {profile.client} does not have it")
        if self.subscription_pattern is None:
            return
        if protocol is GroupProtocol.CLASSIC:
            raise InputError(
                f"subscription_pattern: {self.subscription_pattern!r} needs group.protocol consumer; "
                "with classic the client matches topics itself: topic_pattern"
            )
        if self.topic_pattern is not None:
            raise InputError(
                f"subscription_pattern: {self.subscription_pattern!r}, "
                f"and topic_pattern: {self.topic_pattern!r}, expected one of them"
            )

    def reads(self, topic: str) -> bool:
        """Whether the consumer subscribes to the topic."""
        return bool(re.fullmatch(self.topic_pattern, topic)) if self.topic_pattern else topic in self.topics

    @property
    def leaves_on_close(self) -> bool:
        """Whether close() sends LeaveGroup (AbstractCoordinator.shouldSendLeaveGroupRequest)."""
        if self.leave_group_on_close is None:
            return self.group_instance_id is None
        return self.leave_group_on_close
