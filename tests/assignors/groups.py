"""Groups and cases for the tests of assignors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from groupstorm.assignors.cases import answers

MEMBER_IDS = st.text("abcxyz0129-éΩ𝒳ﾮ", min_size=1, max_size=6)


def assign_case(case: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a case, as `groupstorm assign` would print it."""
    (text,) = answers([json.dumps({"id": 1, **case}).encode()])
    return json.loads(text)


def numbers(partitions: Iterable[Sequence[Any]]) -> list[int]:
    return [partition for _, partition in partitions]
