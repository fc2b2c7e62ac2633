"""Random scripts for `groupstorm script`: a function of a seed and a number, nothing else."""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.scripts.draft import Draft
from tests.oracle.scripts.moves import MOVES
from tests.oracle.scripts.workloads import WORKLOADS, Workload

Script = dict[str, Any]


def random_script(seed: int, number: int) -> Script:
    """The ``number``-th script of ``seed``: `{"id", "config", "steps"}`."""
    generator = random.Random(f"{seed}:{number}")  # a text is hashed the same way everywhere
    workload = generator.choices(WORKLOADS, [workload.weight for workload in WORKLOADS])[0]
    return script_in(workload, generator, f"{seed}-{number}")


def script_in(workload: Workload, generator: random.Random, script_id: str) -> Script:
    """A script of this workload."""
    draft = Draft(generator, workload)
    names = list(workload.moves)
    weights = [workload.moves[name] for name in names]
    first = ["arrive", "settle"]
    rest = generator.choices(names, weights, k=generator.randint(*workload.moves_count))
    for name in first + rest:
        MOVES[name](draft)
    return {"id": script_id, "config": draft.config, "steps": draft.steps}
