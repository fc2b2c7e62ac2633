"""All cases that are played on every broker."""

from __future__ import annotations

from tests.conformance.raw.cases import (
    administration,
    consumer_administration,
    consumer_bad_input,
    consumer_configs,
    consumer_members,
    consumer_migration,
    consumer_offsets,
    initial_delay,
    joins,
    offsets,
    rounds,
    share_groups,
    static_members,
    streams_bad_input,
    streams_members,
    timeouts,
    transactions,
)
from tests.conformance.raw.steps import Case

ROOMS = (
    joins,
    rounds,
    static_members,
    timeouts,
    initial_delay,
    offsets,
    transactions,
    administration,
    consumer_members,
    consumer_offsets,
    consumer_migration,
    consumer_administration,
    consumer_bad_input,
    consumer_configs,
    streams_members,
    streams_bad_input,
    share_groups,
)
CASES: tuple[Case, ...] = tuple(case for room in ROOMS for case in room.CASES)
