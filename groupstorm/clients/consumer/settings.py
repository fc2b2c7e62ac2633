"""A consumer's options: Kafka's names with underscores, Kafka's defaults (ConsumerConfig, 4.3.1)."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from groupstorm.assignors.registry import get
from groupstorm.clients.brokers.address import read_addresses
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer.fetching import FetchSettings
from groupstorm.clients.consumer.records import decoding
from groupstorm.clients.wire.offsets import OffsetReset
from groupstorm.clients.wire.security import MECHANISMS, Security
from groupstorm.coordinator.server.config import Endpoint
from groupstorm.problems import InputError


class Options(TypedDict, total=False):
    """What a consumer may be told beside topics, brokers and group. Times are milliseconds.

    ``partition_assignment_strategy``: names of assignors, the first that all members have is used; one
    that is eager makes the consumer eager. ``leave_group_on_close``: by default dynamic members leave and
    static ones, those with a ``group_instance_id``, stay (KIP-1092). ``ssl_context`` is needed for the
    protocols with SSL. ``default_api_timeout_ms``: how long commit() and its like may take.
    """

    client_id: str
    group_instance_id: str | None
    partition_assignment_strategy: Sequence[str]
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    request_timeout_ms: int
    default_api_timeout_ms: int
    retry_backoff_ms: int
    metadata_max_age_ms: int
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    isolation_level: str
    check_crcs: bool
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    leave_group_on_close: bool | None
    security_protocol: str
    ssl_context: ssl.SSLContext | None
    sasl_mechanism: str
    sasl_plain_username: str
    sasl_plain_password: str


#: Whole numbers: default, least.
_NUMBERS: Mapping[str, tuple[int, int]] = {
    "session_timeout_ms": (45_000, 1),
    "heartbeat_interval_ms": (3_000, 1),
    "max_poll_interval_ms": (300_000, 1),
    "max_poll_records": (500, 1),
    "request_timeout_ms": (30_000, 1),
    "default_api_timeout_ms": (60_000, 1),
    "retry_backoff_ms": (100, 1),
    "metadata_max_age_ms": (300_000, 1),
    "auto_commit_interval_ms": (5_000, 1),
    "fetch_min_bytes": (1, 0),
    "fetch_max_bytes": (52_428_800, 0),
    "fetch_max_wait_ms": (500, 0),
    "max_partition_fetch_bytes": (1_048_576, 0),
}
#: Words: what they mean, by what they may be; the first is the default.
_WORDS: Mapping[str, Mapping[str, Any]] = {
    "auto_offset_reset": {"latest": OffsetReset.LATEST, "earliest": OffsetReset.EARLIEST, "none": None},
    "isolation_level": {"read_uncommitted": False, "read_committed": True},
    #: (TLS, SASL)
    "security_protocol": {
        "PLAINTEXT": (False, False),
        "SSL": (True, False),
        "SASL_PLAINTEXT": (False, True),
        "SASL_SSL": (True, True),
    },
}
_FLAGS: Mapping[str, bool | None] = {
    "enable_auto_commit": True,
    "check_crcs": True,
    "leave_group_on_close": None,
}
_TEXTS = ("client_id", "group_instance_id", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password")
_KNOWN = frozenset(Options.__annotations__)


class Settings(NamedTuple):
    """The options, read and checked."""

    config: ConsumerConfig
    bootstrap: tuple[Endpoint, ...]
    security: Security
    fetch: FetchSettings
    max_poll_records: int
    default_api_timeout_ms: int


def read_settings(
    topics: Iterable[str], bootstrap_servers: str | Iterable[str], group_id: str, options: Options
) -> Settings:
    """Raises InputError, which names the option."""
    given: Mapping[str, Any] = {**options}
    for name in given:
        if name not in _KNOWN:
            raise InputError(f"{name}: no such option, expected one of {', '.join(sorted(_KNOWN))}")
    if not group_id:
        raise InputError("group_id: a group is needed")
    numbers = {
        name: _number(name, given.get(name, default), least) for name, (default, least) in _NUMBERS.items()
    }
    flags = {name: _flag(name, given.get(name, default)) for name, default in _FLAGS.items()}
    words = {name: _word(name, given, meanings) for name, meanings in _WORDS.items()}
    servers = bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
    return Settings(
        _config(tuple(dict.fromkeys(topics)), group_id, given, numbers, flags),
        read_addresses(servers),
        _security(given, *words["security_protocol"]),
        FetchSettings(
            decoding(flags["check_crcs"] is not False, words["isolation_level"]),
            words["auto_offset_reset"],
            numbers["fetch_min_bytes"],
            numbers["fetch_max_bytes"],
            numbers["fetch_max_wait_ms"],
            numbers["max_partition_fetch_bytes"],
        ),
        numbers["max_poll_records"],
        numbers["default_api_timeout_ms"],
    )


def _config(
    topics: tuple[str, ...],
    group_id: str,
    given: Mapping[str, Any],
    numbers: Mapping[str, int],
    flags: Mapping[str, bool | None],
) -> ConsumerConfig:
    strategy = given.get("partition_assignment_strategy", ("cooperative-sticky",))
    if isinstance(strategy, str):
        strategy = (strategy,)
    for name in strategy:
        _ = get(name)  # raises InputError with the names there are
    texts = {name: _text(name, given) for name in _TEXTS}
    return ConsumerConfig(
        group_id,
        texts["client_id"] or f"groupstorm-{socket.gethostname()}-{os.getpid()}",
        topics,
        group_instance_id=texts["group_instance_id"],
        partition_assignment_strategy=tuple(strategy),
        session_timeout_ms=numbers["session_timeout_ms"],
        heartbeat_interval_ms=numbers["heartbeat_interval_ms"],
        max_poll_interval_ms=numbers["max_poll_interval_ms"],
        request_timeout_ms=numbers["request_timeout_ms"],
        retry_backoff_ms=numbers["retry_backoff_ms"],
        metadata_max_age_ms=numbers["metadata_max_age_ms"],
        enable_auto_commit=flags["enable_auto_commit"] is not False,
        auto_commit_interval_ms=numbers["auto_commit_interval_ms"],
        leave_group_on_close=flags["leave_group_on_close"],
    )


def _security(given: Mapping[str, Any], with_tls: bool, with_sasl: bool) -> Security:
    context = given.get("ssl_context")
    if with_tls and context is None:
        raise InputError(
            "ssl_context: security_protocol asks for TLS, make one with ssl.create_default_context()"
        )
    mechanism = _text("sasl_mechanism", given)
    if with_sasl and mechanism not in MECHANISMS:
        raise InputError(f"sasl_mechanism: {mechanism!r}, expected one of {', '.join(MECHANISMS)}")
    return Security(
        context if with_tls else None,
        mechanism if with_sasl else None,
        _text("sasl_plain_username", given) or "",
        _text("sasl_plain_password", given) or "",
    )


def _number(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name}: {value!r}, expected a whole number, {least} or more")
    return value


def _flag(name: str, value: object) -> bool | None:
    if not isinstance(value, bool | None):
        raise InputError(f"{name}: {value!r}, expected True or False")
    return value


def _text(name: str, given: Mapping[str, Any]) -> str | None:
    value = given.get(name)
    if value is None or isinstance(value, str):
        return value
    raise InputError(f"{name}: {value!r}, expected a text")


def _word(name: str, given: Mapping[str, Any], meanings: Mapping[str, Any]) -> Any:
    word = given.get(name, next(iter(meanings)))
    if word not in meanings:
        raise InputError(f"{name}: {word!r}, expected one of {', '.join(meanings)}")
    return meanings[word]
