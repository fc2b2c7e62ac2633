"""The scenarios that are run in virtual time and on real Kafka: small and short presets, and a few more.

A real run takes one to two minutes. Members arrive over some seconds, so that their heartbeats have phases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from groupstorm.storms.live.real_clients.libraries import library
from groupstorm.storms.scenario.files import ResolvedScenario, load, parse

#: The first step after the start comes later with each seed: at five times that are spread over the intervals
#: of heartbeats (3 s) and of commits (5 s). In a real run nobody chooses these times.
_WARM_UP_MS, _LATER_MS = 20_000, 1_100

#: Every case has these settings, and its own on top.
SMALL: Mapping[str, Any] = {
    "members": 4,
    "partitions": 12,
    "phases": "aligned",
    "arrival_ms": 3000,
    "start_ms": {"uniform": [1500, 3500]},
    "ready_ms": {"exactly": 1000},
    "stop_grace_ms": {"exactly": 500},
    "record_rate": 50,
    "tail_ms": 5000,
    "settle_timeout_ms": 60_000,
}

_SCENARIO = """
name: {name}
question: {question}
settings: {{}}
variants: {{default: {{}}}}
steps:
  - {{at_ms: 0, do: start, over_ms: arrival_ms}}
{steps}"""


class Case(NamedTuple):
    """One row of the table. ``source``: a preset, or the text of a scenario."""

    name: str
    source: str
    variant: str
    settings: Mapping[str, Any]
    libraries: tuple[str, ...]

    def scenario(self, library_name: str, seed: int) -> ResolvedScenario:
        settings = {
            **SMALL,
            "warm_up_ms": _WARM_UP_MS + seed * _LATER_MS,
            **self.settings,
            "client_profile": [library(library_name).profile],
        }
        loaded = parse(self.source, "yaml", self.name) if "\n" in self.source else load(self.source)
        whole = replace(loaded, figures_from=0)
        return whole.resolve(self.variant, seed, settings)


def _steps(name: str, question: str, *steps: str) -> str:
    return _SCENARIO.format(name=name, question=question, steps="".join(f"  - {step}\n" for step in steps))


_ALL = ("confluent-kafka", "aiokafka", "kafka-python", "java")
_COOPERATIVE = ("confluent-kafka", "kafka-python", "java")
_EAGER = {"partition.assignment.strategy": ["range"]}
_INCREMENTAL = {"partition.assignment.strategy": ["cooperative-sticky"]}
_STATIC = {"group.instance.id": "ordinal", "session.timeout.ms": 60_000}
_CONSUMER = {"group.protocol": "consumer"}
_NEW_PROTOCOL = ("confluent-kafka", "java")
_SHORT_SESSION = {"session.timeout.ms": 10_000}

_ROLLING_DEPLOY = _steps(
    "rolling-deploy", "What does a rolling deploy cost?", "{at_ms: warm_up_ms, do: rolling-restart}"
)
_SCALE = _steps(
    "scale",
    "What do two more members cost, and two fewer?",
    "{at_ms: warm_up_ms, do: add, count: 2, over_ms: 2000}",
    "{at_ms: 40000, do: stop, members: [0, 1]}",
)

CASES: tuple[Case, ...] = (
    Case("rolling-deploy, eager", _ROLLING_DEPLOY, "default", {**_EAGER}, _ALL),
    Case("rolling-deploy, cooperative", _ROLLING_DEPLOY, "default", {**_INCREMENTAL}, _COOPERATIVE),
    Case("rolling-deploy, static", _ROLLING_DEPLOY, "default", {**_EAGER, **_STATIC}, _ALL),
    Case("rolling-deploy, consumer protocol", _ROLLING_DEPLOY, "default", {**_CONSUMER}, _NEW_PROTOCOL),
    Case("cold-start, delay-3s", "cold-start", "delay-3s", {**_EAGER}, _ALL),
    Case("cold-start, no-delay-eager", "cold-start", "no-delay-eager", {}, _ALL),
    Case(
        "slow-member-hostage, eager",
        "slow-member-hostage",
        "eager",
        {"slow_batch_ms": 15_000},
        _ALL,
    ),
    Case(
        "crash and restart",
        _steps(
            "crash-restart",
            "What does a crash cost?",
            "{at_ms: warm_up_ms, do: crash-restart, members: [1]}",
        ),
        "default",
        {**_EAGER, **_SHORT_SESSION},
        _ALL,
    ),
    Case(
        "pause beyond the session timeout",
        _steps(
            "pause",
            "What does a process that stands still cost?",
            "{at_ms: warm_up_ms, do: pause, members: [2], for_ms: 20000}",
        ),
        "default",
        {**_EAGER, **_SHORT_SESSION},
        _ALL,
    ),
    Case(
        "busy beyond max.poll.interval.ms",
        _steps(
            "poll-timeout",
            "What does a batch cost that takes longer than max.poll.interval.ms?",
            "{at_ms: warm_up_ms, do: busy, members: [0], for_ms: 25000}",
        ),
        "default",
        {**_EAGER, "session.timeout.ms": 10_000, "max.poll.interval.ms": 12_000},
        _ALL,
    ),
    Case("scale out and in", _SCALE, "default", {**_INCREMENTAL}, _COOPERATIVE),
    Case("scale out and in, consumer protocol", _SCALE, "default", {**_CONSUMER}, _NEW_PROTOCOL),
    Case(
        "add partitions",
        _steps(
            "add-partitions",
            "When are new partitions consumed?",
            "{at_ms: warm_up_ms, do: add-partitions, topic: topic-0, partitions: 16}",
        ),
        "default",
        {**_EAGER, "metadata.max.age.ms": 10_000},
        _ALL,
    ),
)

BY_NAME = {case.name: case for case in CASES}
