"""The settings of a run: those that its trace says, those that follow from what happened, the defaults."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, Final

from groupstorm.clients.profiles import PROFILES
from groupstorm.imports.output import writers_of_logs
from groupstorm.storms.scenario.quantities import milliseconds
from groupstorm.storms.scenario.setting_names import (
    SETTINGS,
    STATEFUL_SET,
    How,
    Known,
    assumed,
    inferred,
    observed,
)
from groupstorm.storms.scenario.settings import Settings, read
from groupstorm.whatif.facts import Reading
from groupstorm.whatif.lives import Timeouts

STRATEGY: Final = "partition.assignment.strategy"
PROTOCOL: Final = "group.protocol"
SESSION: Final = "session.timeout.ms"
CONSUMER_SESSION: Final = "group.consumer.session.timeout.ms"
HEARTBEAT: Final = "heartbeat.interval.ms"
CONSUMER_HEARTBEAT: Final = "group.consumer.heartbeat.interval.ms"
CONSUMER_ASSIGNMENT: Final = "group.consumer.assignment.interval.ms"
POLL_INTERVAL: Final = "max.poll.interval.ms"
#: The settings that decide when a silent member is out of its group.
TIMEOUTS: Final = (SESSION, HEARTBEAT, POLL_INTERVAL, CONSUMER_SESSION, CONSUMER_HEARTBEAT)
#: Settings of a member that a coordinator logs.
REBALANCE_TIMEOUT: Final = "rebalance.timeout.ms"
_OWN_REBALANCE_TIMEOUT: Final = "aiokafka"
#: The library that logs the settings of every consumer that it starts.
_LOGS_ITS_SETTINGS: Final = "java"
INITIAL_DELAY: Final = "group.initial.rebalance.delay.ms"
INSTANCE: Final = "group.instance.id"

#: Settings for the end and start of a process; here the steps say it at their exact times.
_IN_STEPS: Final[Mapping[str, Any]] = {
    "pre_stop_ms": 0,
    "stop_grace_ms": 0,
    "drain_ms": 0,
    "termination_grace_ms": None,
    "restart_failed": False,
    "deployment": "processes",
    "max_surge": 0,
    "max_unavailable": 1,
    "ready_when": "polls",
    "min_ready_ms": 0,
    "order": "ordinal",
    "gc_pause_ms": 0,
    "autoscaler": "none",
    "phases": "aligned",
}
#: Settings of a storm that the steps or rows of the trace give anew.
_FROM_ROWS: Final = frozenset(
    {"members", "topics", "partitions", "topic_partitions", "member_settings", INSTANCE}
)
#: Settings that no log says, with their values for an imported run -> what would say it, or why it is so.
_UNKNOWN_IN_LOGS: Final[Mapping[str, tuple[Any, str]]] = {
    "record_rate": (0, "no log says how many records arrive: lag and records processed again stay unknown"),
    "poll_interval_ms": (100, "no log says how often the application polls"),
    "revoke_callback_ms": (0, "no log says how long onPartitionsRevoked takes"),
    "assign_callback_ms": (0, "no log says how long onPartitionsAssigned takes"),
    "net_latency_ms": (Settings().distribution("net_latency_ms").as_written, "no log says it"),
}
_LOG_OF_BROKER: Final = "'KafkaConfig values' in the broker's log says it"
_LOG_OF_CLIENT: Final = "'ConsumerConfig values' in a member's log says it"
#: A leader's assignor that takes less is not worth a setting.
_ASSIGNING_US: Final = 50_000
#: Times of logs are whole milliseconds, and the coordinator's timers have ticks.
_DELAY_STEP_MS: Final = 100
_DELAY_ROUNDS_MAX: Final = 20


def infer_settings(reading: Reading, given: Mapping[str, Any]) -> dict[str, Known]:
    """Setting -> value, and how it is known. ``given``: what the user knows (--known).

    Raises InputError for a given value that the setting cannot have.
    """
    found = dict(_of_storm(reading) if reading.is_storm else _of_logs(reading))
    for name, value in given.items():
        is_timeout = name in TIMEOUTS or name == INITIAL_DELAY
        known = milliseconds(f"--known {name}", value) if is_timeout else value
        read(name, known, "--known ")
        found[name] = Known(known, How.GIVEN, "--known")
    return found


def _of_storm(reading: Reading) -> dict[str, Known]:
    """The first row of a storm's trace has its settings."""
    found = {
        name: observed(value, "row 0, scenario_started")
        for name, value in reading.scenario.items()
        if name not in _FROM_ROWS and differs_from_default(name, value)
    }
    for name, value in _IN_STEPS.items():
        found.pop(name, None)
        if differs_from_default(name, value):
            found[name] = inferred(value, "the steps have the times at which processes ended and started")
    if reading.scenario.get("deployment") == STATEFUL_SET:  # its pods keep their names, and it has no surge
        found["deployment"] = observed(STATEFUL_SET, "row 0, scenario_started")
    return found


def differs_from_default(name: str, value: Any) -> bool:
    """Whether a value, as a trace has it in JSON, is not the default."""
    return bool(json.loads(json.dumps(_DEFAULTS.get(name))) != value)


_DEFAULTS: Final[Mapping[str, Any]] = {
    **{row.name: row.default for row in SETTINGS},
    **dict(Settings().written()),
}


def _of_logs(reading: Reading) -> dict[str, Known]:
    found = {"client_profile": _client(reading)}
    profile = str(found["client_profile"].value[0])
    defaults = {**_DEFAULTS, **PROFILES[profile].defaults}
    if reading.rounds.has_epochs:
        found[PROTOCOL] = observed("consumer", "rows of a consumer group (KIP-848)")
        for name in (CONSUMER_SESSION, CONSUMER_HEARTBEAT):
            found[name] = _of_broker(reading, name) or assumed(
                defaults[name], f"the default; {_LOG_OF_BROKER}"
            )
        interval = _of_broker(reading, CONSUMER_ASSIGNMENT)
        if interval is not None:
            found[CONSUMER_ASSIGNMENT] = interval
    else:
        found[STRATEGY] = _assignors(reading, defaults[STRATEGY], _said_by(profile))
        said = _of_broker(reading, INITIAL_DELAY)
        found[INITIAL_DELAY] = said or _initial_delay(reading, defaults[INITIAL_DELAY])
        for name in (SESSION, HEARTBEAT):
            found[name] = _configured(reading, name, defaults[name], _said_by(profile))
    found[POLL_INTERVAL] = _poll_interval(reading, profile, defaults[POLL_INTERVAL])
    assigning_us = int(median(reading.rounds.assigning_us or [0]))
    if assigning_us > _ASSIGNING_US:
        why = "the median from a round's last join to its assignment"
        found["assign_ms"] = inferred(assigning_us // 1000, why)
    found["stop_grace_ms"] = inferred(0, "the steps have the times at which processes ended")
    found["phases"] = inferred("aligned", "the steps have the times at which processes started")
    found["tail_ms"] = inferred(0, "the trace ends with its last row")
    for name, (value, why) in _UNKNOWN_IN_LOGS.items():
        found[name] = assumed(value, why)
    return found


def _of_broker(reading: Reading, name: str) -> Known | None:
    """A setting that the broker has logged with its configuration."""
    value, place = reading.broker_configured.get(name, ("", ""))
    return observed(int(value), f"{place}, the broker's configuration") if value.isdecimal() else None


def _assignors(reading: Reading, default: list[str], said_by: str) -> Known:
    chosen = next(iter(reading.assignors), None)
    if chosen is None:
        return assumed(default, f"the default; {said_by}")
    return observed([chosen], reading.assignors[chosen])


def _said_by(profile: str) -> str:
    """The source that would say a setting of a client."""
    return _LOG_OF_CLIENT if profile == _LOGS_ITS_SETTINGS else f"no line of {profile} says it, --known does"


def _configured(reading: Reading, name: str, default: int, said_by: str) -> Known:
    values = Counter(
        int(config[name]) for config in reading.configured.values() if config.get(name) is not None
    )
    if values:
        (value, count), *_ = values.most_common(1)
        return observed(value, f"the configurations of {count} of {len(reading.signs)} members")
    why = f"the default; {said_by}"
    if name == HEARTBEAT and reading.learned_us:
        longest = max(reading.learned_us) / 1e6
        why += f"; members learned of rounds within {longest:.1f} s"
    return assumed(default, why)


def _poll_interval(reading: Reading, profile: str, default: int) -> Known:
    """A coordinator logs rebalance timeouts; of all clients but aiokafka that is max.poll.interval.ms."""
    said = _configured(reading, POLL_INTERVAL, default, _said_by(profile))
    if said.how is not How.ASSUMED or profile == _OWN_REBALANCE_TIMEOUT:
        return said
    logged = _configured(reading, REBALANCE_TIMEOUT, default, "")
    if logged.how is How.ASSUMED:
        return said
    return inferred(logged.value, f"the rebalance timeout: {logged.why}")


def _initial_delay(reading: Reading, default: int) -> Known:
    """The coordinator waits once more whenever a member joins within the delay (GroupCoordinator's
    tryCompleteJoin with InitialDelayedJoin)."""
    phase, first = reading.rounds.first_join_phase_us, reading.rounds.first_state
    if phase is None or first is None or first.previous_state not in ("Empty", "unknown"):
        return assumed(default, "the default; the log of the broker from the group's first round on says it")
    began_us, ended_us = phase
    whole_s = (ended_us - began_us) / 1e6
    fitting = {}
    for rounds in range(1, _DELAY_ROUNDS_MAX):
        delay_us = (ended_us - began_us) // rounds
        if _windows(began_us, delay_us, reading.first_joins_us) == rounds:
            delay_ms = round(delay_us / 1000 / _DELAY_STEP_MS) * _DELAY_STEP_MS
            fitting[delay_ms] = f"the first round waited {rounds} times so long ({whole_s:.1f} s)"
    if not fitting:
        return assumed(default, f"the default; the first round ({whole_s:.1f} s) fits no delay")
    delay_ms = default if default in fitting else max(fitting)
    others = ", ".join(f"{other} ms" for other in fitting if other != delay_ms)
    return inferred(delay_ms, fitting[delay_ms] + (f"; {others} fits, too" if others else ""))


def _windows(began_us: int, delay_us: int, joins_us: Sequence[int]) -> int:
    """The number of times that the coordinator waits ``delay_us`` if these members join."""
    if delay_us == 0:
        return 1
    windows, seen_us = 1, began_us
    while any(seen_us < join_us < began_us + windows * delay_us for join_us in joins_us):
        seen_us = began_us + windows * delay_us - 1
        windows += 1
    return windows


def _client(reading: Reading) -> Known:
    """The client library, by the form of the logs (`import.json`)."""
    written_by = {name for names in writers_of_logs(reading.path).values() for name in names}
    clients = sorted(written_by & set(PROFILES))
    if len(clients) == 1:
        return inferred(clients, "the form of the members' logs")
    return assumed(["java"], "no row names the client library; a member's log says it")


def own_timeouts(reading: Reading, settings: Mapping[str, Known], name: str) -> dict[str, int]:
    """The timeouts of a member whose configuration differs from that of most."""
    configured = reading.configured.get(name, {})
    return {
        setting: int(configured[setting])
        for setting in (SESSION, HEARTBEAT, POLL_INTERVAL)
        if setting in settings
        and configured.get(setting) is not None
        and int(configured[setting]) != settings[setting].value
    }


def timeouts_of(reading: Reading, settings: Mapping[str, Known]) -> Callable[[str], Timeouts]:
    """A function that gives the timeouts of a member by its name."""
    resolved = {**_DEFAULTS, **{name: known.value for name, known in settings.items()}}
    consumer = resolved[PROTOCOL] == "consumer"
    session = resolved[CONSUMER_SESSION if consumer else SESSION]
    heartbeat = resolved[CONSUMER_HEARTBEAT if consumer else HEARTBEAT]

    def timeouts(name: str) -> Timeouts:
        own = dict(reading.configured.get(name, {}))
        if consumer:  # the broker decides (KIP-848), whatever the consumer has in its configuration
            own = {POLL_INTERVAL: own[POLL_INTERVAL]} if POLL_INTERVAL in own else {}
        return Timeouts(
            int(own.get(SESSION, session)) * 1000,
            int(own.get(HEARTBEAT, heartbeat)) * 1000,
            int(own.get(POLL_INTERVAL, resolved[POLL_INTERVAL])) * 1000,
        )

    return timeouts
