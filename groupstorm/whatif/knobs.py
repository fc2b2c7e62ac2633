"""The settings that people turn, and the values that `advise` tries, in one table; and the variants of the
scenario that repeats a run, under which the same hours are run again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import log
from typing import Any, Final, NamedTuple

from groupstorm.clients.profiles import consumer_protocol_needs
from groupstorm.coordinator.config import OPTIONS, bounds_beside
from groupstorm.problems import InputError
from groupstorm.storms.deployments.alternatives import way_to
from groupstorm.storms.runs.choices import AS_IT_WAS, PLATFORM, longest_silence_us
from groupstorm.storms.runs.load import has_records
from groupstorm.storms.runs.sweep import VARIANT, parse_axis
from groupstorm.storms.scenario.consistency import is_shared, of_protocol
from groupstorm.storms.scenario.files import ResolvedScenario, Scenario
from groupstorm.storms.scenario.setting_names import DEPLOYMENT, STATEFUL_SET, STREAMS
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import ROLLING_RESTART
from groupstorm.verdicts.alternatives import Alternative
from groupstorm.whatif.client_settings import POLL_RECORDS, STANDBYS_OF_GROUPS
from groupstorm.whatif.inference import (
    CONSUMER_HEARTBEAT,
    CONSUMER_SESSION,
    HEARTBEAT,
    INITIAL_DELAY,
    INSTANCE,
    POLL_INTERVAL,
    PROTOCOL,
    SESSION,
    STRATEGY,
)

CONSUMER: Final = "consumer"
CLASSIC: Final = "classic"
MINUTE_MS: Final = 60_000


class _Numbers(NamedTuple):
    """A setting that is a number, and the values to try."""

    name: str
    values_ms: tuple[int, ...]


_OF_CLASSIC: Final = (
    _Numbers(SESSION, (6_000, 10_000, 20_000, 30_000, 45_000, 60_000, 120_000)),
    _Numbers(HEARTBEAT, (1_000,)),
)
_OF_CONSUMER: Final = (
    _Numbers(CONSUMER_SESSION, (20_000, 45_000, 60_000)),
    _Numbers(CONSUMER_HEARTBEAT, (1_000, 5_000)),
)
_OF_BOTH: Final = (_Numbers(POLL_INTERVAL, (MINUTE_MS, 2 * MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS)),)
_OF_SHARE: Final = (_Numbers("group.share.record.lock.duration.ms", (15_000, 30_000, 60_000)),)
_MODES: Final = (
    ("share.acknowledgement.mode", "explicit", "the application acknowledges each record when it is done"),
    ("share.acquire.mode", "record_limit", "more records are done out of order"),
)
_INITIAL_DELAYS_MS: Final = (0, 3_000, 10_000)
_POLL_RECORDS: Final = (50, 100)


def changes_of(scenario: ResolvedScenario) -> list[Alternative]:
    """The single changes to try, in the order of the table."""
    settings = scenario.settings
    return [change for knob in _KNOBS for change in knob(scenario, settings)]


def _is_consumer(settings: Settings) -> bool:
    return settings.choice(PROTOCOL) == CONSUMER


def _is_streams(settings: Settings) -> bool:
    return settings.choice("application") == STREAMS


def _assignors(_: ResolvedScenario, settings: Settings) -> Iterator[Alternative]:
    if settings.choice(PROTOCOL) != CLASSIC or _is_streams(settings):
        return
    for name in ("cooperative-sticky", "sticky", "range"):
        if name != settings.names(STRATEGY)[0]:
            knows_it_not = (own for own in settings.at_start() if name not in own.names(STRATEGY))
            price = next((way_to(name, own) for own in knows_it_not), "")
            yield Alternative(f"{STRATEGY}={name}", 2, price, {STRATEGY: [name]}, "assignor")


def _protocol(_: ResolvedScenario, settings: Settings) -> Iterator[Alternative]:
    if _is_streams(settings) or is_shared(settings):  # share consumers are another class, and no setting
        return
    if _is_consumer(settings):
        classic = {PROTOCOL: CLASSIC, STRATEGY: ["cooperative-sticky"]}
        yield Alternative(f"{PROTOCOL}=classic with cooperative-sticky", 4, "", classic, "assignor")
    elif consumer_protocol_needs(settings.names("client_profile")):
        yield Alternative(f"{PROTOCOL}=consumer", 4, "", {PROTOCOL: CONSUMER}, "assignor")


def _of_streams(_: ResolvedScenario, settings: Settings) -> Iterator[Alternative]:
    """A copy of the state, and LeaveGroup on close, which threads of a streams group send anyway."""
    if not _is_streams(settings):
        return
    standbys, is_classic = settings.integer("num.standby.replicas"), settings.choice(PROTOCOL) == CLASSIC
    if settings.integer("stateless_topics") < settings.integer("topics"):
        price = "disks, and traffic, for one more copy of all state"
        if not is_classic:
            price += "; the broker's setting, for all its groups"
        effort = _effort("num.standby.replicas" if is_classic else STANDBYS_OF_GROUPS, standbys + 1)
        yield Alternative(
            f"num.standby.replicas={standbys + 1}",
            effort,
            price,
            {"num.standby.replicas": standbys + 1},
            "num.standby.replicas",
        )
    if is_classic and not settings.optional_flag("leave_on_close"):
        price = "an instance that comes back at once has given its tasks away meanwhile"
        yield Alternative("leave_on_close", 1, price, {"leave_on_close": True}, "membership")


def _of_share(_: ResolvedScenario, settings: Settings) -> Iterator[Alternative]:
    for name, value, price in _MODES if is_shared(settings) else ():
        if settings.choice(name) != value:
            yield Alternative(f"{name}={value}", 2, price, {name: value}, name)


def _numbers(_: ResolvedScenario, settings: Settings) -> Iterator[Alternative]:
    own = _OF_CONSUMER if _is_consumer(settings) else _OF_CLASSIC
    for row in (*own, *_OF_BOTH, *(_OF_SHARE if is_shared(settings) else ())):
        name = of_protocol(settings, row.name)
        now = settings.integer(name)
        for value in row.values_ms:
            if value != now and not (row.name == HEARTBEAT and value > now):
                yield _number(name, value, now)


def _number(name: str, value: int, now: int) -> Alternative:
    distance = abs(log(max(value, 1) / max(now, 1)))
    shown = f"{value // 1000}s" if name.endswith("ms") and value % 1000 == 0 else str(value)
    return Alternative(f"{name}={shown}", _effort(name, value), "", {name: value}, name, distance)


def _effort(name: str, value: int) -> int:
    """The effort of a number: a setting of the broker may need others beside it, which cautions name."""
    return 3 + len(bounds_beside(name, value)) if name in OPTIONS else 1


def _static(_: ResolvedScenario, settings: Settings) -> Iterator[Alternative]:
    if is_shared(settings) or any(settings.of_member(n).instance for n in range(settings.integer("members"))):
        return
    if settings.choice(INSTANCE) == "none":
        chosen = "podname" if settings.choice("deployment") != "processes" else "ordinal"
        label = f"{INSTANCE} (static membership)"
        yield Alternative(label, 2, "", {INSTANCE: chosen}, "membership")
    else:
        yield Alternative(f"no {INSTANCE} (dynamic members)", 2, "", {INSTANCE: "none"}, "membership")


def _poll_records(_: ResolvedScenario, settings: Settings) -> Iterator[Alternative]:
    """Without records in the scenario a batch takes no time, whatever its size."""
    now = settings.integer(POLL_RECORDS)
    values = (1, 10, *_POLL_RECORDS) if is_shared(settings) else _POLL_RECORDS
    for value in values if has_records(settings) else ():
        if value < now:
            yield _number(POLL_RECORDS, value, now)


def _initial_delay(_: ResolvedScenario, settings: Settings) -> Iterator[Alternative]:
    if settings.choice(PROTOCOL) != CLASSIC:
        return
    now = settings.integer(INITIAL_DELAY)
    for value in _INITIAL_DELAYS_MS:
        if value != now:
            yield _number(INITIAL_DELAY, value, now)


def _rollout(scenario: ResolvedScenario, settings: Settings) -> Iterator[Alternative]:
    if not any(step.do == ROLLING_RESTART for step in scenario.steps):
        return
    kind = settings.choice("deployment")
    if kind != STATEFUL_SET and settings.pods("max_surge").number == 0:
        one = {"max_surge": 1, "max_unavailable": 0}
        price = "room for one more process, which a StatefulSet never has"
        yield Alternative("max_surge=1, max_unavailable=0", 2, price, one, "rollout")
    if kind != DEPLOYMENT and settings.pods("max_unavailable").as_written != "25%":
        quarter = {"max_surge": 0, "max_unavailable": "25%"}
        price = "a quarter of the processes is away at once"
        yield Alternative("max_unavailable=25%", 2, price, quarter, "rollout")
    if kind != STATEFUL_SET and settings.choice("order") != "reverse":
        yield Alternative("order=reverse", 2, "", {"order": "reverse"}, "order")


_KNOBS: Final[Sequence[Callable[[ResolvedScenario, Settings], Iterator[Alternative]]]] = (
    _assignors,
    _protocol,
    _of_streams,
    _of_share,
    _numbers,
    _static,
    _poll_records,
    _initial_delay,
    _rollout,
)


def noticed_after_ms(settings: Settings) -> int:
    """The time from a dead member's last heartbeat to its removal: until then nobody has its partitions."""
    return settings.integer(of_protocol(settings, SESSION))


def removes_healthy(scenario: ResolvedScenario) -> bool:
    """Whether healthy processes of the scenario are silent for as long as a session lasts."""
    return longest_silence_us(scenario) >= noticed_after_ms(scenario.settings) * 1000


#: Settings that a rolling-restart alone reads.
_OF_ROLLOUT: Final = PLATFORM - {"pre_stop_ms", "termination_grace_ms"}
#: Settings of the work on records: where none arrive, they change nothing.
_OF_RECORDS: Final = frozenset(
    {
        *("auto.commit.interval.ms", "auto.offset.reset", "commit_interval_ms", "commits", "concurrency"),
        *("enable.auto.commit", "max.partition.fetch.bytes", POLL_RECORDS, "process_ms", "slow_records"),
    }
)
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_NAME_LENGTH_MAX = 100
#: More variants side by side than this no table shows.
VARIANTS_MAX = 12


def variants_of(
    scenario: Scenario, changed: Mapping[str, Any], over: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """``changed`` is one variant; with ``over`` there is one for each combination of its values.

    Raises InputError for a setting that does not exist, or too many combinations.
    """
    axes = [parse_axis(text, scenario) for text in over]
    for axis in axes:
        if axis.name == VARIANT or axis.name in changed:
            raise InputError(f"--over {axis.name}: expected another setting than --set has, and no variant")
    choices = [[*zip(axis.labels, axis.values, strict=True)] for axis in axes]
    found: dict[str, dict[str, Any]] = {}
    for one in product(*choices):
        overlay = {**changed, **{axis.name: value for axis, (_, value) in zip(axes, one, strict=True)}}
        labels = [f"{axis.name}-{label}" for axis, (label, _) in zip(axes, one, strict=True)]
        if overlay:
            found[_name(labels or [f"{name}-{_plain(value)}" for name, value in changed.items()])] = overlay
    idle = _OF_ROLLOUT.intersection(name for one in found.values() for name in one)
    if idle and not any(step["do"] == ROLLING_RESTART for step in scenario.steps):
        why = "the replay starts and stops each process by itself, and no step of it reads this setting"
        raise InputError(f"{min(idle)}: {why} (a storm's own scenario does: groupstorm compare)")
    for overlay in found.values():
        idle = _OF_RECORDS.intersection(overlay)
        if idle and not has_records(scenario.resolve(AS_IT_WAS, 0, overlay).settings):
            why = "no record arrives in the replay, where this changes nothing"
            raise InputError(f"{min(idle)}: {why}: give --known record_rate=N and --known process_ms=N")
    if len(found) >= VARIANTS_MAX:
        raise InputError(f"--over: {len(found)} combinations: expected fewer than {VARIANTS_MAX}")
    return found


def _plain(value: Any) -> str:
    return "-".join(map(str, value)) if isinstance(value, list) else str(value)


def _name(labels: Sequence[str]) -> str:
    """A name that a folder can have."""
    name = _UNSAFE.sub("-", "-".join(labels)).strip("-")[:_NAME_LENGTH_MAX]
    return f"{name}-changed" if name == AS_IT_WAS else name
