"""Restoration at a rate: shared by active tasks, or by the standbys that are behind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupstorm.clients.streams.state import ChangelogReader
from tests.hypothesis_examples import examples

SECOND = 1_000_000
RATE = 1_000


def reader(ends: dict[int, int], grows: int = 0, follow: int = 0) -> ChangelogReader:
    """Changelogs of ``ends`` records at time 0, which grow by ``grows`` records a second."""
    return ChangelogReader(RATE, lambda task, time_us: ends[task] + grows * time_us // SECOND, follow)


def test_standbys_wait_for_active_tasks() -> None:
    found = reader({0: 2_000, 1: 2_000})
    found.add_standby(1, 0, 0)
    found.add_active(0, 0, SECOND)
    assert found.position(1, SECOND) == found.position(1, 3 * SECOND) == 1_000
    assert found.advance(3 * SECOND) == ([0], [])
    assert found.next_us(3 * SECOND) == 4 * SECOND
    restored, caught_up = found.advance(4 * SECOND)
    assert restored == []
    assert caught_up == [(1, 2_000, 4 * SECOND)]


def test_a_standby_catches_up_with_a_changelog_that_grows_and_follows_it() -> None:
    """1,000 records a second against 200: 5,600 records behind, at 10 behind it counts as caught up."""
    found = reader({0: 5_610}, grows=200, follow=10)
    found.add_standby(0, 0, 0)
    due_us = found.next_us(0)
    assert due_us == 7 * SECOND - 1_000, "changelogs grow by whole records"
    assert found.catching_up(0, SECOND) == 1_000
    assert [each.task for each in found.advance(due_us)[1]] == [0]
    assert found.next_us(due_us) is None
    assert found.position(0, 100 * SECOND) == 5_610 + 20_000 - 10
    assert found.catching_up(0, 100 * SECOND) == 0


def test_a_standby_slower_than_its_changelog_never_catches_up() -> None:
    found = reader({0: 5_000}, grows=2 * RATE)
    found.add_standby(0, 0, 0)
    assert found.next_us(0) is None
    assert found.position(0, 10 * SECOND) == 10_000


def test_removing_a_task_returns_its_position() -> None:
    found = reader({0: 9_000, 1: 9_000})
    found.add_active(0, 0, 0)
    found.add_active(1, 0, 0)
    assert found.remove(0, 2 * SECOND) == 1_000
    assert found.position(1, 3 * SECOND) == 2_000


@given(
    lags=st.lists(st.integers(0, 5_000), min_size=1, max_size=5),
    looks=st.lists(st.integers(1, 3_000_000), max_size=20),
)
@settings(max_examples=examples(60))
def test_additional_advances_change_nothing(lags: list[int], looks: list[int]) -> None:
    """A reader that is advanced often reads as far as one that is advanced at `next_us` only."""
    often, seldom = reader(dict(enumerate(lags))), reader(dict(enumerate(lags)))
    for task in range(len(lags)):
        often.add_active(task, 0, 0)
        seldom.add_active(task, 0, 0)
    done = {"often": {}, "seldom": {}}  # type: dict[str, dict[int, int]]
    for name, one, moments in (("often", often, list(looks)), ("seldom", seldom, [])):
        now_us = 0
        while (due_us := one.next_us(now_us)) is not None:
            now_us = min(due_us, now_us + moments.pop()) if moments else due_us
            done[name].update(dict.fromkeys(one.advance(now_us)[0], now_us))
    assert done["often"].keys() == done["seldom"].keys() == set(range(len(lags)))
    for task, time_us in done["seldom"].items():
        assert done["often"][task] == pytest.approx(time_us, abs=len(looks) + len(lags))
    assert max(done["seldom"].values()) == pytest.approx(sum(lags) * SECOND // RATE, abs=len(lags))
