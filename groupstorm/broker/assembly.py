"""A broker from settings and topics, for `groupstorm serve` and for brokers inside a test's process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from groupstorm.broker.authorization import Authorizer, read_super_users
from groupstorm.broker.broker import Broker
from groupstorm.broker.changes import Change
from groupstorm.broker.cluster import Cluster
from groupstorm.broker.config import INT32_MAX, NEWEST, RELEASES, BrokerConfig, read_settings
from groupstorm.broker.journal import JournalError
from groupstorm.broker.log.topics import Topics
from groupstorm.broker.share_brokers import SharePersister
from groupstorm.broker.state import BrokerState, restore
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.errors import Error, Refused
from groupstorm.coordinator.records import AppendCause, AppendPolicy, Record
from groupstorm.problems import InputError
from groupstorm.share_records.config import ShareBrokerConfig

#: In one process. Each broker has a listener of its own.
BROKERS_MAX = 100
PORTS = 2**16


def make_broker(
    options: Mapping[str, str],
    topics: Mapping[str, int],
    brokers: int = 1,
    release: str = NEWEST,
    journal: Iterable[Change] = (),
    now_ms: int = 0,
) -> Broker:
    """A broker, or several in one, with these settings and topics (name -> partitions).

    ``brokers`` have the ids from node.id on; ``release``: the Kafka whose highest versions are advertised;
    ``journal``: the changes of an earlier broker; ``now_ms``: the time at which this one begins. A topic of
    the journal stays as it was.

    Raises InputError for a setting that `read_settings` does not know, for a wrong value, and
    for a topic that Kafka would refuse.
    """
    config, coordinator_config = read_settings(options)
    _check_brokers(config, brokers, release)
    cluster = Cluster(
        range(config.node_id, config.node_id + brokers),
        config.offsets_topic_num_partitions,
        config.transaction_state_log_num_partitions,
        config.broker_rack,
    )
    state = BrokerState(
        config,
        cluster_id=uuid.uuid4().hex[:22],
        topics=Topics(config, cluster=cluster),
        coordinator_config=coordinator_config,
        share_config=ShareBrokerConfig.from_mapping(options),
        release=release,
    )
    if config.authorizer_class_name is not None:
        super_users = read_super_users("super.users", config.super_users or "")
        state.authorizer = Authorizer(state.acls, super_users, config.allow_everyone_if_no_acl_found)
    try:
        records = restore(state, journal, now_ms)
    except JournalError as problem:
        raise InputError(f"the journal cannot be used: {problem}") from problem
    for name, partitions in topics.items():
        if state.topics.get(name) is not None and journal:
            continue
        try:
            state.topics.create(name, partitions, min(config.default_replication_factor, brokers))
        except Refused as problem:
            raise InputError(str(problem)) from problem
    coordinator = GroupCoordinator(
        coordinator_config,
        member_ids=random_member_id,
        append=limited_appends(config.groupstorm_append_latency_ms, lambda: state.config.message_max_bytes),
        whole_records=True,
        works_in_turns=True,
        persister=SharePersister(state),
    )
    loaded = coordinator.load(records, now_ms)
    return Broker(state, coordinator, loaded.events)


def _check_brokers(config: BrokerConfig, brokers: int, release: str) -> None:
    if not 1 <= brokers <= BROKERS_MAX or config.node_id + brokers > INT32_MAX:
        raise InputError(f"{brokers} brokers: expected 1 to {BROKERS_MAX}, with ids below {INT32_MAX}")
    if release not in RELEASES:
        raise InputError(f"version {release} of Kafka: expected one of {', '.join(RELEASES)}")
    if len(config.broker_rack) not in (0, 1, brokers):
        racks = ",".join(config.broker_rack)
        raise InputError(
            f"option broker.rack={racks}: {len(config.broker_rack)} racks for {brokers} broker(s)"
        )
    advertised = config.advertised_listeners
    if advertised is not None and advertised.port + brokers > PORTS:
        raise InputError(
            f"advertised.listeners: {brokers} brokers need as many ports from {advertised.port} on"
        )


def random_member_id(prefix: str) -> str:
    """The client or instance id and a random UUID, as Kafka's coordinator makes them."""
    return f"{prefix}-{uuid.uuid4()}"


#: Around each record: its lengths and deltas, the versions of key and value, flags.
_RECORD_BYTES = 20
_NUMBER_BYTES = 8
_FIXED = {int: _NUMBER_BYTES, uuid.UUID: _NUMBER_BYTES, type(None): 1}
_LISTS = {tuple, list, frozenset}


def limited_appends(latency_ms: int, max_bytes: Callable[[], int]) -> AppendPolicy:
    """Each append takes so long, and its records at most so many bytes.

    Kafka appends all records of a request in one batch (CoordinatorRuntime). A batch above the limit of the
    offsets topic is RecordTooLargeException, which clients of groups get as UNKNOWN_SERVER_ERROR, and the
    group stays as it was.
    """

    def append(records: Sequence[Record], _cause: AppendCause) -> tuple[int, Error | None]:
        most, size = max_bytes(), 0
        for record in records:
            size += _RECORD_BYTES + _size_of(record)
            if size > most:
                return latency_ms, Error.MESSAGE_TOO_LARGE
        return latency_ms, None

    return append


def _size_of(values: Iterable[Any]) -> int:
    """Nearly the bytes that Kafka makes of a record, or of a part of it. Everybody waits for it."""
    size = 2
    for value in values:
        kind = type(value)
        fixed = _FIXED.get(kind)
        if fixed is not None:
            size += fixed
        elif kind is str or kind is bytes:
            size += 2 + len(value)
        elif kind in _LISTS:
            has_numbers = type(next(iter(value), None)) is int
            size += 2 + _NUMBER_BYTES * len(value) if has_numbers else _size_of(value)
        elif isinstance(value, str | bytes):
            size += 2 + len(value)
        elif kind is dict or isinstance(value, Mapping):
            size += _size_of(value) + _size_of(value.values())
        else:
            size += _size_of(value) if isinstance(value, Iterable) else _NUMBER_BYTES
    return size
