"""The order of the rounds by cause: the most frequent first, then by the cause's name."""

from __future__ import annotations

from groupstorm.pipeline.local import _rounds_by_cause


def test_the_most_frequent_cause_comes_first_and_equal_ones_by_name() -> None:
    # "left" is the most frequent, and none of its rounds became stable.
    stable: dict[str, list[int | None]] = {"left": [None] * 3, "b": [None, 5], "a": [7, None], "c": [5, 6]}
    rounds = [
        {"run": "r", "group": "g", "cause": cause, "stable_us": us, "members": 1, "latency_us": None}
        for cause, ones in stable.items()
        for us in ones
    ]
    found = [(row[2], row[3], row[4]) for row in _rounds_by_cause(rounds)]
    assert found == [("left", 3, 0), ("a", 2, 1), ("b", 2, 1), ("c", 2, 2)]
