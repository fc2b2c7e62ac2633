"""Which runs of a network thread are lined up with those of other members, and when it runs first."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from groupstorm.clients.consumer_group.timing import FOREVER_MS
from tests.storms.test_network_thread import Parts


def lined_up(parts: Parts) -> list[int]:
    """The numbers of the members whose threads are lined up from now on."""
    indexes: list[int] = []
    parts.environment.network_threads = SimpleNamespace(add=lambda index, run, number: indexes.append(index))
    return indexes


def test_a_run_is_lined_up_under_the_number_of_its_member() -> None:
    parts = Parts(FOREVER_MS)
    indexes = lined_up(parts)
    parts.thread.run_at(20)
    parts.until(20)
    assert indexes == [3]


@pytest.mark.parametrize("gone", [False, True])
def test_a_run_that_another_one_replaced_or_whose_process_is_gone_is_not_lined_up(gone: bool) -> None:
    """Those of other members that are due at the same instant would run earlier than without it."""
    parts = Parts(FOREVER_MS)
    indexes = lined_up(parts)
    parts.thread.run_at(20)
    if gone:
        parts.alive = False
    else:
        parts.thread.run_at(30)
    parts.until(20)
    assert indexes == []


def test_a_thread_that_has_no_time_to_run_at_yet_runs_next_at_once() -> None:
    assert Parts(FOREVER_MS).thread.next_run_us() == 0
