"""The settings that tell configurations apart, and the distance of each configuration from the defaults.

Only settings that an owner of consumers chooses count. If configurations differ in what befalls them (how
long a failover takes, how many members there are), none of them can be recommended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from math import log
from typing import Any, Final

from groupstorm.assignors import KAFKAS, protocol_name
from groupstorm.clients.profiles import consumer_protocol_needs
from groupstorm.coordinator.config import OPTIONS, bounds_beside
from groupstorm.history.coordinator_view import is_cooperative
from groupstorm.problems import InputError
from groupstorm.storms.deployments.alternatives import way_to
from groupstorm.storms.runs.contradictions import contradict_themselves
from groupstorm.storms.scenario.consistency import check_consistency, of_protocol
from groupstorm.storms.scenario.files import FIGURES_FROM, ResolvedScenario
from groupstorm.storms.scenario.member_rules import STRATEGY
from groupstorm.storms.scenario.quantities import parse_pod_count
from groupstorm.storms.scenario.setting_names import CLASSIC, CONSUMER, SETTINGS, SHARE, STREAMS_PROTOCOL
from groupstorm.storms.scenario.settings import Settings, duration_unit_us
from groupstorm.units import UNITS_US
from groupstorm.verdicts.recommendation import Defaults, Distance
from groupstorm.wording import listed, seconds

#: The settings of the replacement of pods. They have no defaults of their own if configurations differ in
#: `deployment`.
PLATFORM: Final = frozenset(
    {
        "deployment",
        "disruption_budget",
        "max_surge",
        "max_unavailable",
        "min_ready_ms",
        "order",
        "pre_stop_ms",
        "ready_when",
        "termination_grace_ms",
    }
)
#: Choices beside those that Kafka has, which are spelled with dots.
CHOSEN: Final = PLATFORM | {"leave_on_close", "commits", "commit_interval_ms"}
#: Spelled as Kafka's, but no choice: they are what the topics or the processes are like.
GIVEN: Final = frozenset({"commit.interval.ms", "replication.factor"})
#: The settings of events that nobody chooses: configurations that differ in one are not ranked together.
BEFALLS: Final = (
    "failover_ms",
    "late_join_ms",
    "pause_ms",
    "slow_batch_ms",
    "arrival_ms",
    "record_rate",
    "record_skew",
    "record_rate_over_time",
    "gc_pause_ms",
    "gc_interval_ms",
    "clock_drift_ppm",
    "net_latency_ms",
    "append_latency_ms",
    "coordinator_service_us",
)
SESSION: Final = "session.timeout.ms"
POLL_INTERVAL: Final = "max.poll.interval.ms"
HEARTBEAT: Final = "heartbeat.interval.ms"
#: Kubernetes' own.
_OF_A_DEPLOYMENT: Final = {"max_surge": "25%", "max_unavailable": "25%"}
#: Steps that keep heartbeats from the coordinator for a time, without an end of the process.
SILENCE: Final = frozenset({"pause", "disconnect"})
#: The settings of a run's response to its findings, which change no configuration.
OF_THE_RUN: Final = frozenset({"if_never_settled"})
#: In the place of a setting of several client libraries that all have another default for it.
EACH_ITS_OWN: Final = ("each client's own",)
#: The variant, of a scenario that repeats a run, that changes nothing: the others are changes to it.
AS_IT_WAS: Final = "as-it-was"


def defaults_among(configurations: Mapping[str, ResolvedScenario]) -> Defaults | None:
    """The distances from the defaults, or from `AS_IT_WAS`; None if the configurations differ in no choice,
    or in more."""
    written = {name: _written(one.settings) for name, one in configurations.items()}
    differing = _differing([*written.values()])
    if not differing or not all(is_choice(setting) for setting in differing):
        return None
    in_use = written.get(AS_IT_WAS)
    before = (configurations.get(AS_IT_WAS) or next(iter(configurations.values()))).settings
    before = before if in_use else client_defaults(before)
    base = in_use or _written(before)
    if not in_use and all(one["deployment"] == "deployment" for one in written.values()):
        base |= _OF_A_DEPLOYMENT
    without = PLATFORM if "deployment" in differing else frozenset()
    defaults = {name: base.get(name, EACH_ITS_OWN) for name in differing if name not in without}
    told = [name for name in defaults if not ("group.protocol" in defaults and name.startswith(_OF_NEWER))]
    words, together = "", {**next(iter(written.values())), **defaults}
    with suppress(InputError):  # a run would refuse them
        for own in Settings(("", {k: v for k, v in together.items() if v != EACH_ITS_OWN})).of_profiles():
            check_consistency(own)
        words = ", ".join(f"{name}={_shown(name, defaults[name])}" for name in told)
    distances = {name: _distance(one, defaults) for name, one in written.items()}
    plain = next((configurations[name].settings for name in written if not distances[name].changes), before)
    return Defaults(
        words,
        distances,
        {
            name: " ".join(cautions)
            for name, one in configurations.items()
            if (cautions := [*_cautions(one, defaults, before, plain)])
        },
        frozenset(
            name
            for name, one in configurations.items()
            if contradict_themselves(one.settings, one.steps)
            or one.settings.choice("task.assignor") == "fallback-prior"  # Kafka takes it, and nobody sets it
        ),
        called="the settings in use" if in_use else "the defaults",
        sets={
            name: ", ".join(
                f"{setting}={_shown(setting, one[setting])}"
                for setting, value in defaults.items()
                if setting in one and _shown(setting, one[setting]) != _shown(setting, value)
            )
            for name, one in written.items()
        },
    )


def _differing(written: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        setting
        for setting in dict.fromkeys(chain(*written))
        if setting not in OF_THE_RUN and any(one.get(setting) != written[0].get(setting) for one in written)
    ]


def beside_choices(configurations: Iterable[ResolvedScenario]) -> str | None:
    """The first setting that is no choice and in which configurations differ that differ in choices, too."""
    differing = _differing([_written(one.settings) for one in configurations])
    others = (setting for setting in differing if not is_choice(setting) and setting not in BEFALLS)
    return next(others, None) if any(map(is_choice, differing)) else None


def by_circumstances(configurations: Mapping[str, ResolvedScenario]) -> dict[str, list[str]]:
    """The names of the configurations, in their order, by the circumstances in which they differ."""
    written = {name: _written(one.settings) for name, one in configurations.items()}
    first = next(iter(written.values()), {})
    differing = [
        name for name in BEFALLS if any(one.get(name) != first.get(name) for one in written.values())
    ]
    apart = begin_apart(configurations)
    groups: dict[str, list[str]] = {}
    for name, one in written.items():
        words = [f"{setting}={_shown(setting, one[setting])}" for setting in differing]
        if apart:
            words.append(f"{FIGURES_FROM}={seconds(configurations[name].figures_from_ms / 1000)}")
        groups.setdefault(", ".join(words), []).append(name)
    return groups


def begin_apart(configurations: Mapping[str, ResolvedScenario]) -> bool:
    """Whether the figures of some configurations begin later than those of others, by a setting of theirs."""
    return len({one.figures_from_ms for one in configurations.values()}) > 1


def cautions_of_change(before: ResolvedScenario, after: ResolvedScenario) -> str:
    """The sentences on the choices that differ: what has to be known of them, and the way to them."""
    old, new = _written(before.settings), _written(after.settings)
    chosen = {name: old.get(name) for name in _differing([old, new]) if is_choice(name)}
    return " ".join(_cautions(after, chosen, before.settings))


def _cautions(scenario: ResolvedScenario, defaults: Mapping[str, Any], *before: Settings) -> Iterator[str]:
    """Sentences on settings that differ between configurations: timeouts below the default, a protocol, an
    assignor that clients do not offer by default (the first ``before``), or under what has the defaults."""
    own = scenario.settings
    clients = [*zip(client_defaults(own).at_start(), own.at_start(), strict=False)]  # rules come behind
    chosen = defaults.keys() - ({*_SESSIONS} - {of_protocol(own, SESSION)})
    for name in (*_SESSIONS, *_ON_SHORTER):
        if name in chosen and any(one.integer(name) < default.integer(name) for default, one in clients):
            now = seconds(own.integer(name) / 1000)
            yield _ON_SHORTER[name].format(now) if name in _ON_SHORTER else _on_silence(scenario)
    for name, default in defaults.items():
        value = own.integer(name) if name in OPTIONS and _is_number(default) else default
        if value != default:
            beside = " and ".join(f"{bound}={most}" for bound, most in bounds_beside(name, value).items())
            starts = f"; with {value} it does not start without {beside}" if beside else ""
            yield f"{name} is the broker's, for all its groups{starts}."
    if "num.standby.replicas" in defaults and (copies := own.integer("num.standby.replicas")):
        said = f"num.standby.replicas={copies}"
        yield f"{said}: each standby of a task needs disk for one more copy of its state."
        is_new = own.choice("group.protocol") == STREAMS_PROTOCOL
        of_broker = "group.streams.num.standby.replicas, for all its groups"
        yield from [f"In a streams group it is the broker's {of_broker}."] if is_new else []
    if "group.instance.id" in defaults and own.choice("group.instance.id") != "none":
        yield _ON_STATIC
    if "group.protocol" in defaults and own.choice("group.protocol") == CONSUMER:
        needs = consumer_protocol_needs(own.names("client_profile"))
        yield f"group.protocol={CONSUMER} needs {needs}."
    if "group.protocol" in defaults and own.choice("group.protocol") == SHARE:
        yield _SHARE_CONSUMERS
    assignor, is_classic = own.names(STRATEGY)[0], own.choice("group.protocol") == CLASSIC
    lacking = [one for one in before if is_classic and {*own.names(STRATEGY)}.isdisjoint(one.names(STRATEGY))]
    for one in lacking[:1] if STRATEGY in defaults else ():
        where = "" if one is before[0] else f"if members offer {listed(one.names(STRATEGY))} alone, "
        yield f"{assignor}: {where}{way_to(assignor, one)}."
    if STRATEGY in defaults and _is_own_assignor(STRATEGY, own.names(STRATEGY)):
        yield f"No Kafka client brings {assignor}: every consumer has to be built with it."


def longest_silence_us(scenario: ResolvedScenario) -> int:
    """The longest time from one heartbeat of a healthy process of the scenario to its next; 0 if nothing
    keeps it from them. A silence may begin just before a heartbeat."""
    settings = scenario.settings
    silent_us = [step.for_ms * 1000 for step in scenario.steps if step.do in SILENCE]
    longest_us = max([*silent_us, settings.distribution("gc_pause_ms").largest_us])
    interval_us = settings.integer(of_protocol(settings, "heartbeat.interval.ms")) * 1000
    return longest_us + interval_us if longest_us else 0


def _on_silence(scenario: ResolvedScenario) -> str:
    """The risk of a session timeout below the default: figures show only the silence of the scenario."""
    longest_us = longest_silence_us(scenario)
    session = of_protocol(scenario.settings, SESSION)
    session_us = scenario.settings.integer(session) * 1000
    if longest_us >= session_us:
        return (
            f"A {session} of {seconds(session_us / 1e6)} removes healthy members here, too, which are silent "
            f"for up to {seconds(longest_us / 1e6)} from heartbeat to heartbeat: figures count only the "
            "times that the scenario has."
        )
    known = "never silent"
    if longest_us:
        known = f"silent for {seconds(longest_us / 1e6)} at the longest, from heartbeat to heartbeat"
    return (
        f"A {session} below the default removes members that are silent for longer. Here healthy processes "
        f"are {known}: check that yours are not silent for longer (gc_pause_ms)."
    )


_SESSIONS: Final = (SESSION, *(f"group.{kind}.{SESSION}" for kind in (CONSUMER, SHARE, STREAMS_PROTOCOL)))
#: Begin the settings that members of the default protocol do not have.
_OF_NEWER: Final = tuple(f"group.{kind}." for kind in (CONSUMER, SHARE, STREAMS_PROTOCOL, "remote"))
#: Settings -> the sentence on a value below the default.
_ON_SHORTER: Final = {
    HEARTBEAT: "With a heartbeat.interval.ms below the default each member sends as many more heartbeats.",
    POLL_INTERVAL: "A max.poll.interval.ms below the default removes members that take longer than {} from "
    "poll() to poll(), and others process their records again: check how long your batches take at the "
    "longest.",
    "group.share.record.lock.duration.ms": "A group.share.record.lock.duration.ms below the default delivers "
    "records again that a consumer has worked on for {}: check how long the records of one poll() take at "
    "the longest.",
}
_ON_STATIC: Final = (
    "Static members need names that come back after a restart, and one that is gone for good keeps its "
    "partitions until its session expires."
)
_SHARE_CONSUMERS: Final = (
    f"group.protocol={SHARE} stands for share consumers, which are no setting: an application has to be "
    "written for KafkaShareConsumer, and needs Apache Kafka 4.2 (brokers) and kafka-clients 4.2 or later."
)


def is_choice(setting: str) -> bool:
    """Whether an owner of consumers chooses the setting's value."""
    return setting in CHOSEN or ("." in setting and setting not in GIVEN)


def _written(settings: Settings) -> dict[str, Any]:
    """As a file would have them, with the defaults that files leave out."""
    left_out = {
        row.name: list(row.default) if isinstance(row.default, tuple) else row.default
        for row in SETTINGS
        if not row.in_files
    }
    return left_out | dict(settings.written())


def client_defaults(settings: Settings) -> Settings:
    """The defaults of the members' client libraries."""
    return Settings(("", {"client_profile": list(settings.names("client_profile"))}))


def _distance(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> Distance:
    changes, of_numbers = 0, 0.0
    pods = settings["members"] // settings["members_per_pod"]
    for setting, default in defaults.items():
        written = settings.get(setting, EACH_ITS_OWN)
        value, usual = (_effective(setting, one, pods) for one in (written, default))
        if value == usual:
            continue
        # an assignor that no Kafka client brings has to be built, shipped and kept: that is a change more
        changes += 1 + _is_own_assignor(setting, written)
        if _is_number(value) and _is_number(usual) and value > 0 and usual > 0:
            of_numbers += abs(log(value / usual))
    return Distance(changes, of_numbers)


def _is_own_assignor(setting: str, value: Any) -> bool:
    return setting == STRATEGY and protocol_name(str(_effective(setting, value))) not in KAFKAS


def _effective(setting: str, value: Any, pods: int | None = None) -> Any:
    """Members of one list of assignors use the first, eagerly if one is eager; of 8 ``pods`` 25 % are 2."""
    if pods is not None and setting in _OF_A_DEPLOYMENT and (count := parse_pod_count(value)) is not None:
        return count.of(pods, round_up=setting == "max_surge")
    if setting == STRATEGY and is_cooperative(value[0]) and not all(map(is_cooperative, value)):
        return ",".join(value)
    return value[0] if value and (setting == STRATEGY or value == EACH_ITS_OWN) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(setting: str, value: Any) -> str:
    shown = _effective(setting, value)
    unit_us = duration_unit_us(setting)
    if unit_us and isinstance(shown, int) and shown * unit_us % UNITS_US["s"] == 0:
        return f"{shown * unit_us // UNITS_US['s']}s"
    return "null" if shown is None else str(shown)
