"""Random scripts for `groupstorm script`: a function of a seed and a number, nothing else."""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.scripts.climates import CLIMATES, Climate
from tests.oracle.scripts.draft import Draft
from tests.oracle.scripts.moves import MOVES

Script = dict[str, Any]


def random_script(seed: int, number: int) -> Script:
    """The ``number``-th script of ``seed``: `{"id", "config", "steps"}`."""
    generator = random.Random(f"{seed}:{number}")  # a text is hashed the same way everywhere
    climate = generator.choices(CLIMATES, [climate.weight for climate in CLIMATES])[0]
    return script_in(climate, generator, f"{seed}-{number}")


def script_in(climate: Climate, generator: random.Random, script_id: str) -> Script:
    """A script of this climate."""
    draft = Draft(generator, climate)
    names = list(climate.moves)
    weights = [climate.moves[name] for name in names]
    first = ["arrive", "settle"]
    rest = generator.choices(names, weights, k=generator.randint(*climate.moves_count))
    for name in first + rest:
        MOVES[name](draft)
    return {"id": script_id, "config": draft.config, "steps": draft.steps}
