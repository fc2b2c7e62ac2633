"""A broker that runs for long holds no more than before."""

from __future__ import annotations

import pytest

from tests.broker.soak.soaking import rounds, virtual_hours

pytestmark = pytest.mark.slow
#: Of 2,000 requests in each virtual hour.
MOST_OBJECTS_PER_HOUR = 1_000


def test_virtual_hours_leave_no_objects() -> None:
    """The first hours fill what is kept of each API and version."""
    *_, first, _, _, _, last = virtual_hours(11, seed=4)
    assert last - first < 4 * MOST_OBJECTS_PER_HOUR


def test_connections_leave_no_tasks_files_or_timers() -> None:
    first, *_, last = rounds(3, 100, seed=5)
    assert last.tasks <= first.tasks
    assert last.files <= first.files
    assert last.timers < 500, last
    assert last.objects - first.objects < 5_000, (first, last)
