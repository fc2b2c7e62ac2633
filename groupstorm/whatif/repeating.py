"""A run as a scenario that repeats it, and the replays of that scenario compared with the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from groupstorm.problems import InputError
from groupstorm.storms.scenario.files import Scenario, parse
from groupstorm.whatif.agreement import Agreement, agreement, runs_again
from groupstorm.whatif.drafting import AS_IT_WAS, Draft, draft_of, scenario_text
from groupstorm.whatif.facts import Reading
from groupstorm.whatif.reading import read_run
from groupstorm.whatif.replaying import replay_seeds

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_NAME_LENGTH_MAX: Final = 60
_STREAMS: Final = (
    "the members are threads of a Kafka Streams application, and no row says which state lies on which host."
)


class Repeated(NamedTuple):
    """A run, and the scenario that repeats it."""

    reading: Reading
    draft: Draft
    scenario: Scenario

    def agreement(self, file: Path, seeds: range, progress: Callable[[int, int], None]) -> Agreement:
        """Replay the scenario in ``file`` as it was over ``seeds``, and compare the replays with the run."""
        return agreement(self.reading, self.draft, replay_seeds(str(file), AS_IT_WAS, seeds, progress))


def repeat(run: Path, group: str | None, given: Mapping[str, Any]) -> Repeated:
    """Make the scenario that repeats a run. Raises InputError if no scenario can repeat the run.

    ``given``: settings that the run had and its trace does not say.
    """
    reading = read_run(run, group)
    if reading.is_streams:
        raise InputError(f"{run}: no scenario repeats this run: {_STREAMS} {_instead(run)}")
    words = _UNSAFE.sub("-", run.resolve().name.removesuffix(run.suffix)).lstrip("-_.")
    draft = draft_of(reading, words[:_NAME_LENGTH_MAX] or "run", given)
    if draft.problems:
        raise InputError(f"{run}: no scenario repeats this run: {'; '.join(draft.problems)}")
    return Repeated(reading, draft, parse(scenario_text(draft, str(run), {}), "yaml", str(run)))


def _instead(run: Path) -> str:
    """The command that answers for Kafka Streams."""
    return runs_again(run) or (
        "A storm with your numbers answers: groupstorm compare stateful-warmup --set members=N "
        "--set partitions=N --set state_bytes=N"
    )
