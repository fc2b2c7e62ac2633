"""Everything that a scenario can set, as one table: name, kind, default, bounds, meaning.

Settings that Kafka has are spelled as Kafka spells them. `groupstorm run PRESET --set NAME=VALUE`
and the `settings` of a scenario file take these names, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from groupstorm.clients.profiles import PROFILES
from groupstorm.problems import InputError
from groupstorm.storms import distributions
from groupstorm.storms.distributions import Distribution
from groupstorm.storms.setting import INT_MAX, MAX_MEMBERS, MAX_PARTITIONS, Setting
from groupstorm.storms.streams.settings import STREAMS_SETTINGS

SETTINGS: tuple[Setting, ...] = (
    # the group
    Setting(
        "members", "integer", 10, "consumers in the group; instances of a Streams application", 1, MAX_MEMBERS
    ),
    Setting("topics", "integer", 1, "topics: topic-0, topic-1, ...", 1, 10_000),
    Setting("partitions", "integer", 20, "partitions of every topic", 1, MAX_PARTITIONS),
    Setting(
        "partition.assignment.strategy",
        "names",
        ["range", "cooperative-sticky"],
        "assignors by name, or module:attribute for your own",
    ),
    Setting(
        "group.instance.id",
        "choice",
        "none",
        "none: dynamic members; ordinal: static ones, each named after its place",
        allowed=("none", "ordinal"),
    ),
    Setting(
        "client_profile",
        "names",
        ["java"],
        "whose defaults and ways members have; of several, members take them in turn",
        allowed=tuple(PROFILES),
    ),
    # the consumer
    Setting("session.timeout.ms", "integer", 45_000, "silence after which a member is removed", 1),
    Setting("heartbeat.interval.ms", "integer", 3_000, "between two heartbeats", 1),
    Setting("max.poll.interval.ms", "integer", 300_000, "between two polls; also the rebalance timeout", 1),
    Setting("request.timeout.ms", "integer", 30_000, "for an answer to any request but JoinGroup", 1),
    Setting("retry.backoff.ms", "integer", 100, "pause before a request is tried again", 1),
    Setting("metadata.max.age.ms", "integer", 300_000, "between two refreshes of topic metadata", 1),
    Setting("enable.auto.commit", "flag", True, "commit positions in the background"),
    Setting("auto.commit.interval.ms", "integer", 5_000, "between two background commits", 1),
    Setting(
        "leave_on_close", "optional flag", None, "send LeaveGroup on close; null: only dynamic members do"
    ),
    # the application
    Setting("poll_interval_ms", "distribution", 100, "from one poll() to the next"),
    Setting("revoke_callback_ms", "distribution", 0, "what onPartitionsRevoked and onPartitionsLost take"),
    Setting("assign_callback_ms", "distribution", 0, "what onPartitionsAssigned takes"),
    Setting(
        "restore_ms",
        "distribution",
        0,
        "rebuilding the state of each partition that a process did not own just before (joins, aggregates)",
    ),
    Setting(
        "joins",
        "flag",
        False,
        "processes join their topics: partition n of all of them must have one owner at the end",
    ),
    Setting("assign_ms", "distribution", 0, "what the leader's assignor takes"),
    Setting(
        "assign_ns_per_member_partition",
        "integer",
        0,
        "added to assign_ms for every member times partition (KAFKA-9987: seconds grow with both)",
    ),
    # the broker
    Setting("group.initial.rebalance.delay.ms", "integer", 3_000, "wait for more members on a first join"),
    Setting("group.max.size", "integer", INT_MAX, "members that a group may have", 1),
    Setting(
        "group.min.session.timeout.ms", "integer", 6_000, "shortest session.timeout.ms that is allowed", 1
    ),
    Setting("group.max.session.timeout.ms", "integer", 1_800_000, "longest one", 1),
    Setting("coordinator_service_us", "integer", 20, "what the coordinator works on one request"),
    Setting(
        "append_latency_ms",
        "integer",
        2,
        "what a write of group metadata to the offsets topic takes",
        0,
        60_000,
    ),
    Setting(
        "net_latency_ms",
        "distribution",
        {"quantiles": {0: 0.2, 50: 0.5, 95: 2, 100: 10}},
        "one way between a consumer and the coordinator",
    ),
    # the records
    Setting("record_rate", "integer", 100, "records a second into every partition; 0: no records", 0, 10**9),
    Setting(
        "process_rate", "integer", 300, "records a second that a partition's owner can process", 1, 10**9
    ),
    # deployments
    Setting("max_surge", "integer", 0, "processes that may run beside the wanted number while deploying"),
    Setting("max_unavailable", "integer", 1, "processes that may be missing while deploying"),
    Setting("stop_grace_ms", "distribution", 500, "from SIGTERM until the consumer is closed"),
    Setting(
        "start_ms",
        "distribution",
        {"p50": 20_000, "p95": 35_000},
        "from a process's start to its first poll()",
    ),
    Setting("ready_ms", "distribution", 10_000, "from its first poll() until a new process counts as ready"),
    Setting(
        "order",
        "choice",
        "ordinal",
        "in which order processes are replaced",
        allowed=("ordinal", "reverse", "random"),
    ),
    *STREAMS_SETTINGS,
    # the times of a scenario's steps
    Setting("arrival_ms", "integer", 0, "window in which the first members arrive"),
    Setting("warm_up_ms", "integer", 60_000, "quiet time before the scenario's own steps"),
    Setting("slow_batch_ms", "integer", 240_000, "how long a slow member works on one batch"),
    Setting(
        "settle_timeout_ms", "integer", 600_000, "how long after the last step a group may take to settle"
    ),
    Setting("least_duration_ms", "integer", 0, "a run lasts as long at least, for sums that grow with time"),
    Setting("tail_ms", "integer", 10_000, "quiet time behind the settled group"),
)

BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}


def setting(name: str, where: str) -> Setting:
    """The row of a name. Raises InputError that names the nearest ones."""
    if name not in BY_NAME:
        near = get_close_matches(name, BY_NAME, n=2)
        hint = (
            f": did you mean {' or '.join(near)}?" if near else "; `groupstorm list --settings` has them all"
        )
        raise InputError(f"{where}{name}: no such setting{hint}")
    return BY_NAME[name]


def read(name: str, written: Any, where: str = "") -> Any:
    """The value of a setting from what a file or --set says. Raises InputError naming it."""
    row = setting(name, where)
    return _READERS[row.kind](row, written, where)


class Settings:
    """All settings of a run, resolved: the defaults, those of the members' client, and every mapping given,
    each over what stands before it.

    With several clients this is the first one's; see `of_member`.
    """

    def __init__(self, *overlays: tuple[str, Mapping[str, Any]], profile: str | None = None) -> None:
        """``profile``: the client to take, whatever the overlays say."""
        chosen = {"client_profile": [profile]} if profile else {}
        overlays = (*overlays, ("", chosen))
        self._written: dict[str, Any] = {row.name: row.default for row in SETTINGS}
        self._values = {row.name: read(row.name, row.default) for row in SETTINGS}
        for where, overlay in overlays:
            if "client_profile" in overlay:
                self._take("client_profile", overlay["client_profile"], where)
        self._profiles = self.names("client_profile")
        for name, default in PROFILES[self._profiles[0]].defaults.items():
            self._take(name, default, "")
        for where, overlay in overlays:
            for name, written in overlay.items():
                self._take(name, written, where)
        self._given = {name for _, overlay in overlays for name in overlay}
        self._of_profile = {self._profiles[0]: self}
        for other in self._profiles[1:]:
            self._of_profile[other] = Settings(*overlays, profile=other)

    def _take(self, name: str, written: Any, where: str) -> None:
        self._values[name] = read(name, written, where)
        self._written[name] = written

    def of_member(self, index: int) -> Settings:
        """Those of the member in this place: where there are several clients, members take them in turn."""
        return self if len(self._profiles) == 1 else self.of_profiles()[index % len(self._profiles)]

    def of_profiles(self) -> tuple[Settings, ...]:
        """One for each client that members have."""
        if len(self._profiles) == 1:
            return (self,)
        return tuple(self._of_profile[name] for name in self._profiles)

    def integer(self, name: str) -> int:
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def optional_integer(self, name: str) -> int | None:
        value = self._values[name]
        assert value is None or isinstance(value, int)
        return value

    def flag(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool)
        return value

    def optional_flag(self, name: str) -> bool | None:
        value = self._values[name]
        assert value is None or isinstance(value, bool)
        return value

    def choice(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str)
        return value

    def names(self, name: str) -> tuple[str, ...]:
        value = self._values[name]
        assert isinstance(value, tuple)
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        value = self._values[name]
        assert isinstance(value, tuple)
        return value

    def decimal(self, name: str) -> float:
        value = self._values[name]
        assert isinstance(value, float)
        return value

    def distribution(self, name: str) -> Distribution:
        value = self._values[name]
        assert isinstance(value, Distribution)
        return value

    def written(self) -> Iterator[tuple[str, Any]]:
        """Every setting as it would be written in a file, in the table's order.

        Not those that each of several clients has its own default for.
        """
        own = {name for profile in self._profiles[1:] for name in PROFILES[profile].defaults}
        own |= set(PROFILES[self._profiles[0]].defaults) if own else set()
        for name, value in self._written.items():
            if name in own - self._given:
                continue
            resolved = self._values[name]
            yield name, list(resolved) if isinstance(resolved, tuple) else _plain(value, resolved)


def _plain(written: Any, resolved: Any) -> Any:
    return (
        resolved.as_written
        if isinstance(resolved, Distribution)
        else resolved
        if written is not None
        else None
    )


def _integer(row: Setting, written: Any, where: str) -> int:
    if isinstance(written, bool) or not isinstance(written, int):
        raise InputError(f"{where}{row.name}: {written!r} is no whole number ({row.meaning})")
    if not row.least <= written <= row.most:
        raise InputError(f"{where}{row.name}: {written} lies outside {row.least} to {row.most}")
    return written


def _optional_integer(row: Setting, written: Any, where: str) -> int | None:
    return None if written is None else _integer(row, written, where)


def _flag(row: Setting, written: Any, where: str) -> bool:
    if not isinstance(written, bool):
        raise InputError(f"{where}{row.name}: {written!r} is neither true nor false")
    return written


def _optional_flag(row: Setting, written: Any, where: str) -> bool | None:
    return None if written is None else _flag(row, written, where)


def _choice(row: Setting, written: Any, where: str) -> str:
    if not isinstance(written, str) or written not in row.allowed:
        raise InputError(f"{where}{row.name}: {written!r} is not one of {', '.join(row.allowed)}")
    return written


def _names(row: Setting, written: Any, where: str) -> tuple[str, ...]:
    items = [part.strip() for part in written.split(",")] if isinstance(written, str) else written
    if not isinstance(items, list | tuple) or not items or not all(isinstance(i, str) and i for i in items):
        raise InputError(f"{where}{row.name}: {written!r}: expected one or more names ({row.meaning})")
    if row.allowed and not set(items) <= set(row.allowed):
        raise InputError(f"{where}{row.name}: {written!r}: expected some of {', '.join(row.allowed)}")
    if len(set(items)) != len(items):
        raise InputError(f"{where}{row.name}: {written!r}: a name stands twice")
    return tuple(items)


def _integers(row: Setting, written: Any, where: str) -> tuple[int, ...]:
    if not isinstance(written, list | tuple):
        raise InputError(f"{where}{row.name}: {written!r}: expected a list of whole numbers ({row.meaning})")
    return tuple(_integer(row, one, where) for one in written)


def _decimal(row: Setting, written: Any, where: str) -> float:
    if isinstance(written, bool) or not isinstance(written, int | float):
        raise InputError(f"{where}{row.name}: {written!r} is no number ({row.meaning})")
    if not row.least <= written <= row.most:
        raise InputError(f"{where}{row.name}: {written} lies outside {row.least} to {row.most}")
    return float(written)


def _distribution(row: Setting, written: Any, where: str) -> Distribution:
    return distributions.parse(f"{where}{row.name}", written)


_READERS: Mapping[str, Callable[[Setting, Any, str], Any]] = {
    "integer": _integer,
    "flag": _flag,
    "optional flag": _optional_flag,
    "choice": _choice,
    "optional integer": _optional_integer,
    "names": _names,
    "integers": _integers,
    "decimal": _decimal,
    "distribution": _distribution,
}
