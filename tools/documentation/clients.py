"""The site's pages of the consumer's options and of client profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer.settings import DEFAULTS, WORDS
from groupstorm.clients.profiles import (
    ALL_FETCHED,
    PROFILES,
    ClientProfile,
    CooperativeUserData,
    FirstHeartbeat,
    GroupProtocol,
)
from groupstorm.clients.share.settings import SHARE_DEFAULTS, SHARE_WORDS
from groupstorm.clients.wire.security import MECHANISMS

#: A note on each option, in the order of the table.
OPTION_NOTES: Mapping[str, str] = {
    "group_protocol": (
        "the broker assigns the partitions ([KIP-848](asyncio-consumer.md#the-consumer-protocol-kip-848))"
    ),
    "group_remote_assignor": (
        "with `consumer`: the broker's assignor, `uniform` or `range`; `None`: the broker's first one"
    ),
    "subscription_pattern": (
        "with `consumer`: a regular expression in place of topics; the broker resolves it with RE2"
    ),
    "partition_assignment_strategy": (
        "names of [our assignors](assignors.md); the consumer is eager if one of them is eager"
    ),
    "group_instance_id": "static membership: a restart within the session changes nothing",
    "session_timeout_ms": 'not with `group_protocol="consumer"`: the broker has it',
    "heartbeat_interval_ms": 'not with `group_protocol="consumer"`: the broker has it',
    "max_poll_interval_ms": "",
    "max_poll_records": "the most records that one `getmany` returns",
    "enable_auto_commit": "",
    "auto_commit_interval_ms": "",
    "auto_offset_reset": "with `none`, a missing offset raises `NoOffsetForPartition` or `OffsetOutOfRange`",
    "isolation_level": "",
    "fetch_min_bytes": "",
    "fetch_max_bytes": "",
    "fetch_max_wait_ms": "",
    "max_partition_fetch_bytes": "",
    "check_crcs": "",
    "request_timeout_ms": "",
    "default_api_timeout_ms": "the most that `commit()`, `committed()`, `position()` and the like take",
    "retry_backoff_ms": "",
    "metadata_max_age_ms": "",
    "leave_group_on_close": (
        "`None`: dynamic members leave, static ones stay; see also `close(leave_group=...)` (KIP-1092)"
    ),
    "security_protocol": "",
    "ssl_context": "needed with SSL, from `ssl.create_default_context()`",
    "sasl_mechanism": "needed with SASL: " + ", ".join(f"`{name}`" for name in MECHANISMS),
    "sasl_plain_username": "",
    "sasl_plain_password": "",
    "client_id": "`None`: made from the host's name and the process id",
}

#: Those of a share consumer that another one does not have.
SHARE_OPTION_NOTES: Mapping[str, str] = {
    "share_acknowledgement_mode": "",
    "share_acquire_mode": "needs Kafka 4.2; it locks `max_poll_records` records at most",
    "client_rack": "the rack, for the broker's assignment",
}

_CONFIG_DEFAULTS = {
    field.name: field.default for field in fields(ConsumerConfig) if field.default is not MISSING
}


def options_page() -> str:
    """The options of both consumers for asyncio: name, default, what else it may be."""
    told = "Options of [the consumers for asyncio](asyncio-consumer.md). Times are in milliseconds."
    sections = (
        "# Consumer options",
        told,
        "## CooperativeConsumer",
        _options_table(OPTION_NOTES, DEFAULTS, WORDS),
        "## ShareConsumer has besides",
        _options_table(SHARE_OPTION_NOTES, SHARE_DEFAULTS, SHARE_WORDS),
    )
    return "\n\n".join(sections) + "\n"


def _options_table(
    notes: Mapping[str, str], defaults: Mapping[str, Any], words: Mapping[str, Mapping[str, Any]]
) -> str:
    rows = ["| option | default | |", "|---|---|---|"]
    for name, note in notes.items():
        default = defaults[name]
        shown = default if name in words else repr(default)
        others = " or ".join(f"`{word}`" for word in words.get(name, ()) if word != default)
        rows.append(
            f"| `{name}` | `{shown}` | {'; '.join(filter(None, (others and f'or {others}', note)))} |"
        )
    return "\n".join(rows)


def profiles_page() -> str:
    """The client profiles side by side."""
    told = (
        "What `client_profile` gives the members of [a storm](scenarios.md#client-profiles). Versions are "
        "the highest that a library speaks; Heartbeat below 3 does not carry the instance id."
    )
    return f"# Client profiles\n\n{told}\n\n{profiles_table()}\n"


def profiles_table() -> str:
    """The client profiles as a Markdown table: a column for each library, a row for each difference."""
    profiles = tuple(PROFILES.values())
    rows = [
        "| | " + " | ".join(f"`{profile.name}`" for profile in profiles) + " |",
        "|---|" + "---|" * len(profiles),
    ]
    rows += [
        f"| {title} | " + " | ".join(cell(profile) for profile in profiles) + " |"
        for title, cell in _PROFILE_ROWS
    ]
    return "\n".join(rows)


def _setting(name: str) -> Callable[[ClientProfile], str]:
    """The cell of one of Kafka's settings: the profile's own default, or else Java's."""

    def cell(profile: ClientProfile) -> str:
        value: Any = profile.defaults.get(name, _CONFIG_DEFAULTS[name.replace(".", "_")])
        return str(value) if isinstance(value, int) else ", ".join(value)

    return cell


def _poll_records(profile: ClientProfile) -> str:
    records = profile.defaults.get("max.poll.records", 500)
    return "all that is fetched" if records == ALL_FETCHED else str(records)


def _leaves_unpolled(profile: ClientProfile) -> str:
    if not profile.has_max_poll_interval:
        return "no"
    return "yes" if profile.leaves_without_poll else "yes; a consumer group at the next poll()"


def _rebalance_timeout(profile: ClientProfile) -> str:
    timeout = profile.rebalance_timeout
    return str(timeout) if isinstance(timeout, int) else f"`{timeout}`"


def _first_heartbeat(profile: ClientProfile) -> str:
    if profile.first_heartbeat is FirstHeartbeat.WHEN_OVERDUE:
        return "when the last one is an interval old"
    if profile.cooperative_check_ms is not None:
        return f"cooperative: after {profile.cooperative_check_ms} ms; else after the interval"
    return "after the interval"


def _subscription_versions(profile: ClientProfile) -> str:
    return ", ".join(
        f"{assignor} {version}".strip() for assignor, version in profile.subscription_versions.items()
    )


def _subscription_generation(profile: ClientProfile) -> str:
    if max(profile.subscription_versions.values()) < _FIRST_SUBSCRIPTION_WITH_GENERATION:
        return "never"
    return "always" if profile.eager_sends_generation else "cooperative"


def _cooperative_commits(profile: ClientProfile) -> str:
    if not profile.has_cooperative:
        return ""
    return "before they join again" if profile.commits_before_cooperative_join else "when they revoke"


def _fetches_during_round(profile: ClientProfile) -> str:
    if not profile.has_cooperative:
        return ""
    return "yes" if profile.fetches_during_round else "no"


def _cooperative_user_data(profile: ClientProfile) -> str:
    if not profile.has_cooperative:
        return ""
    return _USER_DATA[profile.cooperative_user_data]


#: KIP-792.
_FIRST_SUBSCRIPTION_WITH_GENERATION = 2

_USER_DATA: Mapping[CooperativeUserData, str] = {
    CooperativeUserData.GENERATION: "generation",
    CooperativeUserData.STICKY: "partitions, generation",
    CooperativeUserData.STICKY_OR_NONE: "partitions, generation; none before the first assignment",
    CooperativeUserData.NONE: "none",
}

_PROFILE_ROWS: tuple[tuple[str, Callable[[ClientProfile], str]], ...] = (
    ("read and recorded", lambda profile: profile.client),
    ("`partition.assignment.strategy`", _setting("partition.assignment.strategy")),
    (
        "`group.protocol=consumer` ([KIP-848](consumer-groups.md))",
        lambda profile: "yes" if GroupProtocol.CONSUMER in profile.group_protocols else "no: refused",
    ),
    ("cooperative rebalancing", lambda profile: "yes" if profile.has_cooperative else "no: refused"),
    ("`session.timeout.ms`", _setting("session.timeout.ms")),
    ("`request.timeout.ms`", _setting("request.timeout.ms")),
    ("`retry.backoff.ms`", _setting("retry.backoff.ms")),
    ("`max.poll.records`", _poll_records),
    ("rebalance timeout", _rebalance_timeout),
    (
        "leaves when nobody polls for `max.poll.interval.ms`",
        _leaves_unpolled,
    ),
    ("joins again", lambda profile: "at the next poll()" if profile.rejoins_at_poll else "at once"),
    (
        "background commits",
        lambda profile: "while the application works, too" if profile.commits_between_polls else "in poll()",
    ),
    ("cooperative members commit", _cooperative_commits),
    ("cooperative members process during a round", _fetches_during_round),
    (
        "heartbeats between JoinGroup's and SyncGroup's responses",
        lambda profile: "yes" if profile.heartbeats_while_syncing else "no",
    ),
    ("first heartbeat after an assignment", _first_heartbeat),
    (
        "JoinGroup, SyncGroup",
        lambda profile: f"{profile.join_group_version}, {profile.sync_group_version}",
    ),
    (
        "Heartbeat, LeaveGroup, OffsetCommit",
        lambda profile: (
            f"{profile.heartbeat_version}, {profile.leave_group_version}, {profile.offset_commit_version}"
        ),
    ),
    ("subscription", _subscription_versions),
    ("generation in it (KIP-792)", _subscription_generation),
    ("user data of cooperative-sticky", _cooperative_user_data),
)
