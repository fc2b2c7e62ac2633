"""How a run in real time was made. Only runs in virtual time can be repeated event by event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from groupstorm.problems import InputError

#: In measured.json: the options of `groupstorm run`, by name and without dashes.
REAL_TIME: Final = "real_time"


def real_time_options(folder: Path) -> list[str]:
    """The options that ran the scenario of ``folder`` in real time (``--on jvm``); none in virtual time.

    Raises InputError if measured.json cannot be read as what a run writes.
    """
    file = folder / "measured.json"
    if not file.is_file():
        return []
    try:
        options = json.loads(file.read_text("utf-8")).get(REAL_TIME, {})
        return [word for name, value in options.items() for word in (f"--{name}", str(value))]
    except (ValueError, AttributeError) as problem:
        raise InputError(f"{file}: expected an object with the run's cost: {problem}") from problem
