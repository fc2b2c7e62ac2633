"""The scenarios that are run in virtual time and on real Kafka: small and short presets, and a few more.

A real run takes one to two minutes. Members arrive over some seconds, so that their heartbeats have phases.
Figures begin with the first step after the start; those of a cold start, with the first member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from groupstorm.storms.live.real_clients.libraries import library
from groupstorm.storms.scenario.files import ResolvedScenario, load, parse

#: How many real runs each case has with each library.
RUNS = 5

#: The figures that are compared, and the difference that counts as none beside 10 % of the value: 200 ms for
#: one time, as in `groupstorm compare --on`; a second of all partitions together; a second's records of the
#: member that has the most partitions.
FIGURES: Mapping[str, float] = {
    "generations": 0,
    "unowned_partition_seconds": 1.0,
    "unowned_max_seconds": 0.2,
    "nobody_consuming_seconds": 0.2,
    "dual_owner_seconds": 0.2,
    "moves": 0,
    "records_duplicated": 200,
    "records_skipped": 0,
    "lag_peak": 200,
    "staleness_max_seconds": 0.5,
}

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
figures_from: warm_up_ms
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
        return loaded.resolve(self.variant, seed, settings)


def _steps(name: str, question: str, *steps: str) -> str:
    return _SCENARIO.format(name=name, question=question, steps="".join(f"  - {step}\n" for step in steps))


LIBRARIES = ("java", "confluent-kafka", "aiokafka")
_CURRENT = ("java", "confluent-kafka")  # aiokafka has neither cooperative rebalancing nor the new protocol
_EAGER = {"partition.assignment.strategy": ["range"]}
_INCREMENTAL = {"partition.assignment.strategy": ["cooperative-sticky"]}
_STATIC = {"group.instance.id": "ordinal", "session.timeout.ms": 60_000}
_CONSUMER = {"group.protocol": "consumer"}
_SHORT_SESSION = {"session.timeout.ms": 10_000}

_ROLLING_DEPLOY = _steps(
    "rolling-deploy", "What does a rolling deploy cost?", "{at_ms: warm_up_ms, do: rolling-restart}"
)
_CRASH = _steps(
    "crash-restart", "What does a crash cost?", "{at_ms: warm_up_ms, do: crash-restart, members: [1]}"
)
_BUSY = _steps(
    "poll-timeout",
    "What does a batch cost that takes longer than max.poll.interval.ms?",
    "{at_ms: warm_up_ms, do: busy, members: [0], for_ms: 25000}",
)
_SCALE = _steps(
    "scale",
    "What do two more members cost, and two fewer?",
    "{at_ms: warm_up_ms, do: add, count: 2, over_ms: 2000}",
    "{at_ms: 40000, do: stop, members: [0, 1]}",
)

CASES: tuple[Case, ...] = (
    Case("rolling-deploy, eager", _ROLLING_DEPLOY, "default", {**_EAGER}, LIBRARIES),
    Case("rolling-deploy, cooperative", _ROLLING_DEPLOY, "default", {**_INCREMENTAL}, _CURRENT),
    Case("rolling-deploy, static", _ROLLING_DEPLOY, "default", {**_EAGER, **_STATIC}, LIBRARIES),
    Case("rolling-deploy, consumer protocol", _ROLLING_DEPLOY, "default", {**_CONSUMER}, _CURRENT),
    Case("cold-start, no-delay-eager", "cold-start", "no-delay-eager", {}, LIBRARIES),
    Case("crash and restart", _CRASH, "default", {**_EAGER, **_SHORT_SESSION}, LIBRARIES),
    Case("busy beyond max.poll.interval.ms", _BUSY, "default",
         {**_EAGER, **_SHORT_SESSION, "max.poll.interval.ms": 12_000}, LIBRARIES),
    Case("scale out and in", _SCALE, "default", {**_INCREMENTAL}, _CURRENT),
)  # fmt: skip

BY_NAME = {case.name: case for case in CASES}
