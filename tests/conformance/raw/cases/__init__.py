"""All cases that are played on every broker."""

from __future__ import annotations

from tests.conformance.raw.cases import joins
from tests.conformance.raw.steps import Case

ROOMS = (joins,)
CASES: tuple[Case, ...] = tuple(case for room in ROOMS for case in room.CASES)
