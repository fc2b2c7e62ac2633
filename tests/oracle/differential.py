"""A comparison of Kafka's coordinator and ours on equal scripts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.script.run import run_scenario
from groupstorm.coordinator.script.scenario import read_scenario
from tests.oracle.comparison import Answer, difference, plain
from tests.oracle.coverage import Coverage
from tests.oracle.running import Ask, Case, ahead, as_line
from tests.oracle.shrinking import shrink

Script = Case


def our_answer(
    script: Script,
    coordinator: Callable[..., GroupCoordinator] = GroupCoordinator,
    kafka: Compatibility = Compatibility.KAFKA_4_3_1,
) -> Answer:
    """The answer of `groupstorm script --kafka`."""
    scenario = read_scenario(as_line(script), "script")
    return plain(run_scenario(scenario, changes=False, kafka=kafka, coordinator=coordinator))


class Found(NamedTuple):
    """A script that the two sides answer differently, shrunk, with both answers."""

    script: Script
    kafkas: Answer
    ours: Answer


@dataclass
class Outcome:
    """The outcome of a run. ``different``: ids of scripts that differ; ``found``: the first of them,
    shrunk."""

    coverage: Coverage = field(default_factory=Coverage)
    different: list[str] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    our_cpu_seconds: float = 0.0


class Differential:
    """Runs scripts through both sides. ``coordinator`` makes ours; ``shown_max``: how many differences are
    shrunk, which takes some hundred more scripts each."""

    def __init__(
        self,
        ask: Ask,
        coordinator: Callable[..., GroupCoordinator] | None = None,
        kafka: Compatibility = Compatibility.KAFKA_4_3_1,
        *,
        shown_max: int = 3,
        on_progress: Callable[[Outcome], None] = lambda outcome: None,
    ) -> None:
        self._ask = ask
        self._outcome = Outcome()
        self._coordinator = coordinator
        self._kafka = kafka
        self._shown_max = shown_max
        self._on_progress = on_progress

    def run(self, scripts: Iterable[Script]) -> Outcome:
        outcome = self._outcome
        for batch, answers in ahead(self._ask, scripts):
            ours = [self._ours(script) for script in batch]
            for script, own, kafkas in zip(batch, ours, answers.result(), strict=True):
                outcome.coverage.count_answer(len(script["steps"]), kafkas)
                if difference(kafkas, own) is not None:
                    outcome.different.append(script["id"])
                    self._show(script)
            self._on_progress(outcome)
        return outcome

    def _ours(self, script: Script) -> Answer:
        start = time.thread_time()
        answer = our_answer(script, self._coordinator or self._outcome.coverage.watch, self._kafka)
        self._outcome.our_cpu_seconds += time.thread_time() - start
        return answer

    def _show(self, script: Script) -> None:
        if len(self._outcome.found) < self._shown_max:
            self._outcome.found.append(self.shrunk(script))

    def shrunk(self, script: Script) -> Found:
        """The shortest script that the two sides still answer differently."""
        coordinator = self._coordinator or GroupCoordinator

        def both(candidate: Script) -> tuple[Answer, Answer]:
            ours = our_answer(candidate, coordinator, self._kafka)  # Kafka is asked about scripts alone
            return json.loads(self._ask(as_line(candidate))), ours

        shortest = shrink(script, lambda candidate: difference(*both(candidate)) is not None)
        return Found(shortest, *both(shortest))
