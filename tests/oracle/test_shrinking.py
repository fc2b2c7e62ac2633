"""Shrinking: what is left differs still, and nothing more can go."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.problems import InputError
from tests.oracle.running import Case as Script
from tests.oracle.shrinking import shrink


def _script(*steps: dict[str, Any], **config: Any) -> Script:
    return {"id": "s", "config": config, "steps": list(steps)}


def _numbered(count: int) -> Script:
    return _script(*({"op": "join", "as": f"c{number}"} for number in range(count)))


@given(st.integers(1, 40), st.sets(st.integers(0, 39), min_size=1, max_size=5))
def test_only_the_steps_that_matter_are_left(count: int, wanted: set[int]) -> None:
    matter = {f"c{number}" for number in wanted if number < count}

    def differs(script: Script) -> bool:
        return matter <= {step.get("as", "") for step in script.get("steps", ())}

    assert [step["as"] for step in shrink(_numbered(count), differs).get("steps", ())] == [
        f"c{number}" for number in range(count) if f"c{number}" in matter
    ]


def test_fields_elements_and_options_go_and_numbers_get_smaller_where_they_do_not_matter() -> None:
    script = _script(
        {"op": "leave", "as": "a", "version": 4, "members": [["x", None], ["y", None], ["z", None]]},
        {"op": "advance", "ms": 1_234},
        {"op": "commit", "offsets": {"foo": {"0": 1}, "bar": {"1": 2}}, "group": "h"},
        **{"group.max.size": 3, "topics": {"foo": 3}},
    )

    def differs(candidate: Script) -> bool:
        if "config" not in candidate:
            raise InputError("config: missing")
        text = json.dumps(candidate)
        waits = [step for step in candidate.get("steps", []) if step.get("ms", 0) >= 1_000]
        return bool(waits) and '["y", null]' in text and '"bar"' in text

    assert shrink(script, differs) == _script(
        {"members": [["y", None]]}, {"ms": 1_000}, {"offsets": {"bar": {}}}
    )
