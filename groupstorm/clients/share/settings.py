"""A share consumer's options: Kafka's names with underscores, Kafka's defaults (ConsumerConfig, 4.4.0)."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypedDict, get_type_hints

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer.records import Decoding, decoding
from groupstorm.clients.consumer.settings import (
    DEFAULTS,
    OptionTable,
    default_client_id,
    read_bootstrap,
    read_security,
)
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.clients.share.sessions import ShareFetchOptions
from groupstorm.clients.wire.security import SECURITY_PROTOCOLS, ClientSecurity
from groupstorm.protocol.endpoints import Endpoint


class ShareOptions(TypedDict, total=False):
    """The options of a share consumer beside topics, brokers and group. Times are milliseconds.

    ``share_acknowledgement_mode``: ``implicit`` accepts the records that the application has when it asks for
    more; with ``explicit`` it acknowledges each. ``share_acquire_mode``: ``record_limit`` locks at most
    ``max_poll_records`` records at a time, ``batch_optimized`` whole batches. Where a group begins, its
    isolation level and how long records stay locked are configured at the group.
    """

    client_id: str
    client_rack: str | None
    share_acknowledgement_mode: str
    share_acquire_mode: str
    max_poll_interval_ms: int
    max_poll_records: int
    request_timeout_ms: int
    default_api_timeout_ms: int
    retry_backoff_ms: int
    metadata_max_age_ms: int
    check_crcs: bool
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    security_protocol: str
    ssl_context: ssl.SSLContext | None
    sasl_mechanism: str
    sasl_plain_username: str
    sasl_plain_password: str


SHARE_DEFAULTS: Mapping[str, Any] = {
    **{name: DEFAULTS.get(name) for name in ShareOptions.__annotations__},
    "share_acknowledgement_mode": "implicit",
    "share_acquire_mode": "batch_optimized",
}
#: The options that are one of several words, and what each word means.
SHARE_WORDS: Mapping[str, Mapping[str, Any]] = {
    "share_acknowledgement_mode": {"implicit": False, "explicit": True},
    "share_acquire_mode": {"batch_optimized": False, "record_limit": True},
    "security_protocol": SECURITY_PROTOCOLS,
}
_TABLE = OptionTable(get_type_hints(ShareOptions), SHARE_DEFAULTS, SHARE_WORDS)
_OF_CONFIG = (
    "client_rack",
    "max_poll_interval_ms",
    "request_timeout_ms",
    "retry_backoff_ms",
    "metadata_max_age_ms",
)


class ShareSettings(NamedTuple):
    """The options, read and checked."""

    config: ConsumerConfig
    bootstrap: tuple[Endpoint, ...]
    security: ClientSecurity
    decoding: Decoding
    fetch: ShareFetchOptions
    explicit: bool
    default_api_timeout_ms: int


def read_share_settings(
    topics: Iterable[str], bootstrap_servers: str | Iterable[str], group_id: str, options: ShareOptions
) -> ShareSettings:
    """Raises InputError, which names the option."""
    values = _TABLE.read(options)
    config = ConsumerConfig(
        group_id,
        values["client_id"] or default_client_id(),
        tuple(dict.fromkeys(topics)),
        group_protocol=GroupProtocol.CONSUMER,
        enable_auto_commit=False,
        **{name: values[name] for name in _OF_CONFIG},
    )
    return ShareSettings(
        config,
        read_bootstrap(bootstrap_servers, group_id),
        read_security(values),
        decoding(values["check_crcs"], read_committed=False),
        ShareFetchOptions(
            values["fetch_min_bytes"],
            values["fetch_max_bytes"],
            values["fetch_max_wait_ms"],
            values["max_poll_records"],
            values["share_acquire_mode"],
        ),
        values["share_acknowledgement_mode"],
        values["default_api_timeout_ms"],
    )
