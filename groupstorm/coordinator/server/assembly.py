"""A broker from Kafka's option names: what `groupstorm serve` and embedded servers have in common."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from groupstorm.coordinator.config import OPTIONS as COORDINATOR_OPTIONS
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.server.apis.api import BrokerState
from groupstorm.coordinator.server.broker import Broker
from groupstorm.coordinator.server.changes import Change
from groupstorm.coordinator.server.cluster import Cluster
from groupstorm.coordinator.server.config import INT32_MAX, BrokerConfig
from groupstorm.coordinator.server.config import OPTIONS as BROKER_OPTIONS
from groupstorm.coordinator.server.journal import JournalError
from groupstorm.coordinator.server.log.topics import TopicError, Topics
from groupstorm.coordinator.server.releases import NEWEST, RELEASES
from groupstorm.coordinator.server.restoring import restore
from groupstorm.problems import InputError

#: Of one process: each has a listener of its own.
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

    ``brokers`` have the ids from node.id on; ``release`` of Kafka caps the versions that are advertised;
    ``journal`` is what an earlier broker has changed, and ``now_ms`` the time at which this one begins.
    Topics that the journal has are as they were.

    Raises InputError for an option that neither the broker nor the coordinator has, for a value that
    it cannot take, and for a topic that Kafka would refuse.
    """
    _check_names(options)
    config = BrokerConfig.from_mapping(_only(options, BROKER_OPTIONS))
    coordinator_config = CoordinatorConfig.from_mapping(_only(options, COORDINATOR_OPTIONS))
    _check_brokers(config, brokers, release)
    cluster = Cluster(range(config.node_id, config.node_id + brokers))
    state = BrokerState(
        config,
        cluster_id=_cluster_id(),
        topics=Topics(config, cluster=cluster),
        coordinator_config=coordinator_config,
    )
    try:
        records = restore(state, journal, now_ms)
    except JournalError as problem:
        raise InputError(f"the journal cannot be used: {problem}") from problem
    for name, partitions in topics.items():
        if state.topics.get(name) is not None and journal:
            continue
        try:
            state.topics.create(name, partitions, min(config.default_replication_factor, brokers))
        except TopicError as problem:
            raise InputError(str(problem)) from problem
    coordinator = GroupCoordinator(coordinator_config, member_ids=random_member_id, whole_records=True)
    loaded = coordinator.load(records, now_ms)
    return Broker(state, coordinator, release, loaded.events)


def _check_brokers(config: BrokerConfig, brokers: int, release: str) -> None:
    if not 1 <= brokers <= BROKERS_MAX or config.node_id + brokers > INT32_MAX:
        raise InputError(f"{brokers} brokers: expected 1 to {BROKERS_MAX}, with ids below {INT32_MAX}")
    if release not in RELEASES:
        raise InputError(f"version {release} of Kafka: expected one of {', '.join(RELEASES)}")
    advertised = config.advertised_listeners
    if advertised is not None and advertised.port + brokers > PORTS:
        raise InputError(
            f"advertised.listeners: {brokers} brokers need as many ports from {advertised.port} on"
        )


def random_member_id(prefix: str) -> str:
    """As the coordinator makes them: the client or instance id and a random UUID."""
    return f"{prefix}-{uuid.uuid4()}"


def _cluster_id() -> str:
    return uuid.uuid4().hex[:22]


def _only(options: Mapping[str, str], known: Mapping[str, object]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name in known}


#: Options of groups that are not emulated and of the coordinator's threads: checked, without effect.
_WITHOUT_EFFECT = ("group.consumer.", "group.share.", "group.streams.", "group.coordinator.")


def _check_names(options: Mapping[str, str]) -> None:
    known = sorted({*BROKER_OPTIONS, *COORDINATOR_OPTIONS})
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            listed = ", ".join(option for option in known if not option.startswith(_WITHOUT_EFFECT))
            raise InputError(f"option {name}: not known here; {hint}accepted are {listed}")
