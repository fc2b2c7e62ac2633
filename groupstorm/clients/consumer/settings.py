"""A consumer's options: Kafka's names with underscores, Kafka's defaults (ConsumerConfig, 4.3.1)."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, NamedTuple, TypedDict, get_type_hints

from groupstorm.assignors.registry import get
from groupstorm.clients.brokers.contract import read_addresses
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer.fetcher import FetchSettings
from groupstorm.clients.consumer.records import decoding
from groupstorm.clients.profiles import OF_CONSUMERS, GroupProtocol, refuse_settings
from groupstorm.clients.wire.logs import FetchSizes, OffsetReset
from groupstorm.clients.wire.security import MECHANISMS, SECURITY_PROTOCOLS, ClientSecurity
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint


class Options(TypedDict, total=False):
    """The options of a consumer beside topics, brokers and group. Times are milliseconds.

    ``partition_assignment_strategy``: names of assignors. The group uses the first one that all members
    have; an eager one makes the consumer eager. ``leave_group_on_close``: by default dynamic members leave
    and static members, those with a ``group_instance_id``, stay (KIP-1092). ``ssl_context`` is needed for the
    protocols with SSL. ``default_api_timeout_ms``: how long commit() and the like may take.

    ``group_protocol``: ``consumer`` speaks KIP-848: the broker assigns the partitions, with
    ``group_remote_assignor`` if that is given, and has the timeouts of session and heartbeat.
    ``subscription_pattern``: a regular expression in place of topics, which the broker resolves (RE2).
    """

    client_id: str
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    subscription_pattern: str | None
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


#: The value of each option that is not given: the default of `ConsumerConfig`, or the value here.
DEFAULTS: Mapping[str, Any] = {
    **dict.fromkeys(Options.__annotations__),
    **{
        field.name: field.default
        for field in fields(ConsumerConfig)
        if field.name in Options.__annotations__ and field.default is not MISSING
    },
    "group_protocol": GroupProtocol.CLASSIC.value,
    "partition_assignment_strategy": ("cooperative-sticky",),
    "max_poll_records": 500,
    "default_api_timeout_ms": 60_000,
    "auto_offset_reset": "latest",
    "isolation_level": "read_uncommitted",
    "check_crcs": True,
    "fetch_min_bytes": 1,
    "fetch_max_bytes": 52_428_800,
    "fetch_max_wait_ms": 500,
    "max_partition_fetch_bytes": 1_048_576,
    "security_protocol": "PLAINTEXT",
}
#: The numbers that may be 0; the others are 1 at least.
_MAY_BE_ZERO = ("fetch_min_bytes", "fetch_max_bytes", "fetch_max_wait_ms", "max_partition_fetch_bytes")
#: The options that are one of several words, and what each word means.
WORDS: Mapping[str, Mapping[str, Any]] = {
    "group_protocol": {protocol.value: protocol for protocol in OF_CONSUMERS},
    "auto_offset_reset": {"latest": OffsetReset.LATEST, "earliest": OffsetReset.EARLIEST, "none": None},
    "isolation_level": {"read_uncommitted": False, "read_committed": True},
    "security_protocol": SECURITY_PROTOCOLS,
}


class OptionTable(NamedTuple):
    """The options of one kind of consumer: types, defaults, and the words that some of them may be."""

    types: Mapping[str, Any]
    defaults: Mapping[str, Any]
    words: Mapping[str, Mapping[str, Any]]

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The value of every option, or its word's meaning. Raises InputError, which names the option."""
        for name in given:
            if name not in self.defaults:
                known = ", ".join(sorted(self.defaults))
                raise InputError(f"{name}: no such option, expected one of {known}")
        return {name: self._checked(name, value) for name, value in {**self.defaults, **given}.items()}

    def _checked(self, name: str, value: Any) -> Any:
        kind = self.types[name]
        if name in self.words:
            if value not in self.words[name]:
                raise InputError(f"{name}: {value!r}, expected one of {', '.join(self.words[name])}")
            return self.words[name][value]
        if kind is int:
            least = 0 if name in _MAY_BE_ZERO else 1
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name}: {value!r}, expected a whole number, {least} or more")
        elif kind in (bool, bool | None):
            if not isinstance(value, bool | None):
                raise InputError(f"{name}: {value!r}, expected True or False")
            return value is not False if kind is bool else value
        elif kind in (str, str | None) and not isinstance(value, str | None):
            raise InputError(f"{name}: {value!r}, expected a text")
        return value


_TABLE = OptionTable(get_type_hints(Options), DEFAULTS, WORDS)
_CONFIG_NAMES = _TABLE.types.keys() & {field.name for field in fields(ConsumerConfig)}


class ConsumerSettings(NamedTuple):
    """The options, read and checked."""

    config: ConsumerConfig
    bootstrap: tuple[Endpoint, ...]
    security: ClientSecurity
    fetch: FetchSettings
    max_poll_records: int
    default_api_timeout_ms: int


def read_settings(
    topics: Iterable[str], bootstrap_servers: str | Iterable[str], group_id: str, options: Options
) -> ConsumerSettings:
    """Raises InputError, which names the option."""
    given: Mapping[str, Any] = {**options}
    values = _TABLE.read(given)
    bootstrap = read_bootstrap(bootstrap_servers, group_id)
    names = tuple(dict.fromkeys(topics))
    if names and values["subscription_pattern"] is not None:
        raise InputError(
            f"subscription_pattern: {values['subscription_pattern']!r}, and topics: {', '.join(names)}, "
            "expected one of them"
        )
    given = {name.replace("_", "."): value for name, value in given.items() if value is not None}
    refuse_settings(values["group_protocol"], given)
    return ConsumerSettings(
        _config(names, group_id, values),
        bootstrap,
        read_security(values),
        FetchSettings(
            decoding(values["check_crcs"], values["isolation_level"]),
            values["auto_offset_reset"],
            FetchSizes(
                values["fetch_min_bytes"],
                values["fetch_max_bytes"],
                values["fetch_max_wait_ms"],
                values["max_partition_fetch_bytes"],
            ),
        ),
        values["max_poll_records"],
        values["default_api_timeout_ms"],
    )


def _config(topics: tuple[str, ...], group_id: str, values: Mapping[str, Any]) -> ConsumerConfig:
    strategy = values["partition_assignment_strategy"]
    if isinstance(strategy, str):
        strategy = (strategy,)
    for name in strategy:
        _ = get(name)  # raises InputError with the names that exist
    options = {name: values[name] for name in _CONFIG_NAMES}
    options["client_id"] = values["client_id"] or default_client_id()
    options["partition_assignment_strategy"] = tuple(strategy)
    return ConsumerConfig(group_id, topics=topics, **options)


def default_client_id() -> str:
    return f"groupstorm-{socket.gethostname()}-{os.getpid()}"


def read_bootstrap(bootstrap_servers: str | Iterable[str], group_id: str) -> tuple[Endpoint, ...]:
    """Raises InputError, also without a group."""
    if not group_id:
        raise InputError("group_id: a group is needed")
    servers = bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
    return read_addresses(servers)


def read_security(values: Mapping[str, Any]) -> ClientSecurity:
    """Raises InputError if the protocol lacks what it needs."""
    with_tls, with_sasl = values["security_protocol"]
    context, mechanism = values["ssl_context"], values["sasl_mechanism"]
    if with_tls and context is None:
        raise InputError(
            "ssl_context: security_protocol asks for TLS, make one with ssl.create_default_context()"
        )
    if with_sasl and mechanism not in MECHANISMS:
        raise InputError(f"sasl_mechanism: {mechanism!r}, expected one of {', '.join(MECHANISMS)}")
    return ClientSecurity(
        context if with_tls else None,
        mechanism if with_sasl else None,
        values["sasl_plain_username"] or "",
        values["sasl_plain_password"] or "",
    )
