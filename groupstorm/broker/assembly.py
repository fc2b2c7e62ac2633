"""A broker from settings and topics, for `groupstorm serve` and for brokers inside a test's process."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping

from groupstorm.broker.apis.api import BrokerState
from groupstorm.broker.authorization.authorizer import Authorizer
from groupstorm.broker.authorization.principals import read_super_users
from groupstorm.broker.broker import Broker
from groupstorm.broker.changes import Change
from groupstorm.broker.cluster import Cluster
from groupstorm.broker.config import INT32_MAX, BrokerConfig
from groupstorm.broker.group_records import limited_appends
from groupstorm.broker.journal import JournalError
from groupstorm.broker.log.topics import Topics
from groupstorm.broker.releases import NEWEST, RELEASES
from groupstorm.broker.restoring import restore
from groupstorm.broker.settings import read_settings
from groupstorm.broker.share.persister import SharePersister
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.faults import Refused
from groupstorm.problems import InputError
from groupstorm.share_records.config import ShareConfig

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

    Raises InputError for a setting that `groupstorm.broker.settings` does not know, for a wrong value, and
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
        cluster_id=_cluster_id(),
        topics=Topics(config, cluster=cluster),
        coordinator_config=coordinator_config,
        share_config=ShareConfig.from_mapping(options),
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
        resolves_in_turns=True,
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


def _cluster_id() -> str:
    return uuid.uuid4().hex[:22]
