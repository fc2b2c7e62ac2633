"""Draws a scenario: a small group, settings that are within reason, and faults.

Swarm: each scenario draws first which kinds of faults it has, since a fault that is in every run hides what
only happens without it. All draws depend on the seed and on the scenario's number alone.

The configurations can settle: no callback or batch of the drawn settings lasts as long as a timeout allows.
Faults may last longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from groupstorm.storms.scenario.member_rules import STRATEGY
from groupstorm.storms.scenario.randomness import DRAW_BITS, Stream
from groupstorm.storms.scenario.steps import DIRECTIONS

Value = TypeVar("Value")
Document = dict[str, Any]

#: When the last fault may begin.
LAST_STEP_MS: Final = 240_000

_ASSIGNORS: Final[Sequence[list[str]]] = (
    ["range"],
    ["roundrobin"],
    ["sticky"],
    ["cooperative-sticky"],
    ["cooperative-sticky"],
    ["range", "cooperative-sticky"],
)
#: Each client with the assignors of its own.
_OTHER_CLIENTS: Final[Sequence[list[str]]] = (
    ["librdkafka"],
    ["kafka-python"],
    ["aiokafka"],
    ["franz-go"],
    ["java", "kafka-python"],
    ["librdkafka", "aiokafka"],
)


class Draws:
    """The draws of one purpose, one after the other."""

    def __init__(self, seed: int, *name: str | int) -> None:
        self._stream = Stream(seed, "fuzz", *name)
        self._drawn = 0

    def below(self, limit: int) -> int:
        """A whole number from 0 to ``limit`` - 1."""
        self._drawn += 1
        return self._stream.at(self._drawn) * limit >> DRAW_BITS

    def between(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)

    def one_of(self, values: Sequence[Value]) -> Value:
        return values[self.below(len(values))]

    def happens(self, percent: int) -> bool:
        return self.below(100) < percent

    def some(self, values: Sequence[Value], most: int) -> list[Value]:
        """One to ``most`` of these, in their order."""
        wanted = self.between(1, min(most, len(values)))
        rest = list(values)
        for _ in range(len(values) - wanted):
            rest.pop(self.below(len(rest)))
        return rest


def draw_scenario(seed: int, number: int, fixed: Mapping[str, Any]) -> Document:
    """The ``number``-th scenario of ``seed``, as a scenario file has it; ``fixed`` settings are not drawn."""
    drawn = _settings(Draws(seed, number, "settings"))
    if STRATEGY in fixed:  # not every client has every assignor
        drawn.pop("client_profile", None)
    if "client_profile" not in drawn:  # Java's members alone speak both protocols
        drawn |= _protocols(Draws(seed, number, "protocol"), drawn)
    settings = drawn | dict(fixed)
    return {
        "name": f"fuzz-{seed}-{number}",
        "seed": Draws(seed, number, "seed").below(1 << 31),
        "settings": settings,
        "steps": [_start(Draws(seed, number, "start")), *_faults(seed, number, settings)],
    }


def _start(draws: Draws) -> Document:
    return {"at_ms": 0, "do": "start", **({"over_ms": draws.between(1, 20_000)} if draws.happens(50) else {})}


# -- settings --------------------------------------------------------------------------------------


def _settings(draws: Draws) -> Document:
    settings: Document = {
        "members": draws.between(1, 8),
        "topics": draws.one_of((1, 1, 1, 2, 3)),
        "partitions": draws.between(1, 12),
        # small worlds stay fast, and lag is worked off soon
        "record_rate": draws.one_of((0, 1, 10)),
        "start_ms": draws.one_of((0, 100, 5_000, {"uniform": [1_000, 30_000]})),
        "ready_ms": draws.one_of((0, 5_000)),
        "tail_ms": draws.one_of((0, 1_000, 10_000)),
    }
    if draws.happens(70):
        settings["partition.assignment.strategy"] = draws.one_of(_ASSIGNORS)
    else:
        settings["client_profile"] = draws.one_of(_OTHER_CLIENTS)
    for name, percent, values in _SOMETIMES:
        if draws.happens(percent):
            settings[name] = draws.one_of(values)
    interval_ms = settings.get("max.poll.interval.ms")
    if interval_ms and "librdkafka" in settings.get("client_profile", ()):  # it refuses longer sessions
        settings["session.timeout.ms"] = min(settings.get("session.timeout.ms", interval_ms), interval_ms)
    if draws.happens(20):
        settings["member_settings"] = [_drifting(draws, settings) for _ in range(draws.between(1, 2))]
    return settings


def _protocols(draws: Draws, drawn: Mapping[str, Any]) -> Document:
    """Nothing, or members of group.protocol=consumer; sometimes some of them stay classic."""
    if not draws.happens(40):
        return {}
    settings: Document = {"group.protocol": "consumer"}
    for name, percent, values in _CONSUMER_GROUPS:
        if draws.happens(percent):
            settings[name] = draws.one_of(values)
    if draws.happens(25):
        members = draws.some(range(drawn["members"]), most=drawn["members"])
        rule = {"members": members, "settings": {"group.protocol": "classic"}}
        settings["member_settings"] = [*drawn.get("member_settings", ()), rule]
    return settings


#: The same as `_SOMETIMES`, of consumer groups.
_CONSUMER_GROUPS: Final[Sequence[tuple[str, int, Sequence[Any]]]] = (
    ("group.consumer.heartbeat.interval.ms", 40, (2_000, 15_000)),
    ("group.consumer.session.timeout.ms", 40, (20_000, 60_000)),
    ("group.consumer.assignment.interval.ms", 40, (0, 10_000)),
    ("group.remote.assignor", 40, ("uniform", "range")),
)


def _drifting(draws: Draws, settings: Mapping[str, Any]) -> Document:
    """A rule: the clocks of some members drift."""
    members = draws.some(range(settings["members"]), most=settings["members"])
    return {"members": members, "settings": {"clock_drift_ppm": draws.one_of(_CLOCK_DRIFTS)}}


#: Setting, how often it is not the default (per cent), its values.
_SOMETIMES: Final[Sequence[tuple[str, int, Sequence[Any]]]] = (
    ("group.instance.id", 30, ("ordinal",)),
    ("session.timeout.ms", 40, (6_000, 10_000, 30_000)),
    ("max.poll.interval.ms", 40, (20_000, 60_000, 120_000)),
    ("heartbeat.interval.ms", 20, (1_000, 2_000)),
    ("request.timeout.ms", 20, (5_000, 15_000)),
    ("retry.backoff.ms", 20, (1, 1_000)),
    ("metadata.max.age.ms", 30, (10_000, 60_000)),
    ("commits", 30, ("never", "batch", "record", "interval")),
    ("auto.commit.interval.ms", 20, (1_000, 20_000)),
    ("leave_on_close", 20, (False, True)),
    ("poll_interval_ms", 30, (50, 1_000, {"uniform": [100, 3_000]})),
    ("revoke_callback_ms", 30, (10, {"uniform": [0, 4_000]})),
    ("assign_callback_ms", 30, (10, {"uniform": [0, 4_000]})),
    ("restore_ms", 10, (100,)),
    ("assign_ms", 20, (100, {"uniform": [0, 2_000]})),
    ("group.initial.rebalance.delay.ms", 40, (0, 100, 10_000)),
    ("coordinator_service_us", 20, (0, 1_000)),
    ("append_latency_ms", 30, (0, 50, 500)),
    ("net_latency_ms", 40, ({"uniform": [0.1, 100]}, {"uniform": [1, 900]})),
    ("stop_grace_ms", 30, (0, {"uniform": [0, 10_000]})),
    ("max_unavailable", 20, (2, 3)),
    ("max_surge", 20, (1, 2)),
    ("order", 20, ("reverse", "random")),
)

#: Parts per million: as bad quartz clocks are, and much worse.
_CLOCK_DRIFTS: Final = (-100_000, -10_000, -100, 100, 10_000, 100_000)


# -- faults ----------------------------------------------------------------------------------------

_Fault = Callable[[Draws, Mapping[str, Any]], Document]


def _members(draws: Draws, settings: Mapping[str, Any]) -> Any:
    count = settings["members"]
    return "all" if draws.happens(10) else draws.some(range(count), most=max(1, count // 2))


def _for_a_while(draws: Draws) -> int:
    """Shorter and longer than sessions, poll intervals and request timeouts."""
    least, most = draws.one_of(((1, 2_000), (2_000, 20_000), (20_000, 150_000)))
    return draws.between(least, most)


def _of_members(do: str, lasts: bool = False) -> _Fault:
    def draw(draws: Draws, settings: Mapping[str, Any]) -> Document:
        fault = {"do": do, "members": _members(draws, settings)}
        return {**fault, "for_ms": _for_a_while(draws)} if lasts else fault

    return draw


def _add(draws: Draws, _: Mapping[str, Any]) -> Document:
    return {"do": "add", "count": draws.between(1, 3), "over_ms": draws.one_of((0, 5_000))}


def _rolling_restart(_draws: Draws, _settings: Mapping[str, Any]) -> Document:
    return {"do": "rolling-restart"}


def _add_partitions(draws: Draws, settings: Mapping[str, Any]) -> Document:
    return {
        "do": "add-partitions",
        "topic": f"topic-{draws.below(settings['topics'])}",
        "partitions": settings["partitions"] + draws.between(1, 6),
    }


def _partition(draws: Draws, settings: Mapping[str, Any]) -> Document:
    members, for_ms = _members(draws, settings), _for_a_while(draws)
    return {"do": "partition", "members": members, "direction": draws.one_of(DIRECTIONS), "for_ms": for_ms}


def _reconnect_storm(draws: Draws, settings: Mapping[str, Any]) -> Document:
    members, for_ms = _members(draws, settings), draws.between(1_000, 60_000)
    return {"do": "reconnect-storm", "members": members, "count": draws.between(2, 12), "for_ms": for_ms}


def _slow_appends(draws: Draws, _: Mapping[str, Any]) -> Document:
    """Faster and slower than offsets.commit.timeout.ms (5 s) and request.timeout.ms."""
    return {
        "do": "slow-appends",
        "for_ms": _for_a_while(draws),
        "append_ms": draws.one_of((200, 3_000, 20_000)),
    }


def _failing_appends(draws: Draws, _: Mapping[str, Any]) -> Document:
    """Not for long: members join again every retry.backoff.ms."""
    return {"do": "failing-appends", "for_ms": draws.between(1, 10_000)}


def _failover(draws: Draws, _: Mapping[str, Any]) -> Document:
    return {"do": "coordinator-failover", "for_ms": _for_a_while(draws)}


FAULTS: Final[Mapping[str, _Fault]] = {
    "stop": _of_members("stop"),
    "crash": _of_members("crash"),
    "restart": _of_members("restart"),
    "crash-restart": _of_members("crash-restart"),
    "pause": _of_members("pause", lasts=True),
    "busy": _of_members("busy", lasts=True),
    "disconnect": _of_members("disconnect", lasts=True),
    "add": _add,
    "rolling-restart": _rolling_restart,
    "add-partitions": _add_partitions,
    "partition": _partition,
    "reconnect-storm": _reconnect_storm,
    "slow-appends": _slow_appends,
    "failing-appends": _failing_appends,
    "coordinator-failover": _failover,
}


def _faults(seed: int, number: int, settings: Mapping[str, Any]) -> list[Document]:
    draws = Draws(seed, number, "faults")
    kinds = draws.some(tuple(FAULTS), most=4)
    begins = sorted(_begin_ms(draws) for _ in range(draws.between(0, 6)))
    return [{"at_ms": at_ms, **FAULTS[draws.one_of(kinds)](draws, settings)} for at_ms in begins]


def _begin_ms(draws: Draws) -> int:
    """Faults come while the group begins, at any time, and at round times, several at once."""
    return draws.one_of((draws.below(12_000), draws.below(LAST_STEP_MS), 10_000 * draws.between(1, 12)))
