"""Clocks of clients, and the member ids that clients draw (KIP-848)."""

from __future__ import annotations

import pytest

from groupstorm.storms.world.clock import ClientClock
from groupstorm.storms.world.draws import drawn_member_id


@pytest.mark.parametrize(
    ("drift_ppm", "time_us", "shown_ms"),
    [(0, 4_999, 4), (0, 5_000, 5), (250_000, 4_000, 5), (250_000, 3_999, 4), (-200_000, 6_250, 5)],
)
def test_a_clock_shows_whole_milliseconds(drift_ppm: int, time_us: int, shown_ms: int) -> None:
    assert ClientClock(drift_ppm).ms(time_us) == shown_ms


@pytest.mark.parametrize("drift_ppm", [0, 7, -7, 250_000, -200_000])
def test_a_clock_begins_to_show_a_millisecond_at_one_microsecond(drift_ppm: int) -> None:
    clock = ClientClock(drift_ppm)
    for shown_ms in (1, 2, 5_004, 10**9):
        assert clock.ms(clock.us(shown_ms)) == shown_ms
        assert clock.ms(clock.us(shown_ms) - 1) == shown_ms - 1


def test_member_ids_are_uuids_that_begin_with_no_dash() -> None:
    """Kafka's Uuid.randomUuid: 16 bytes in URL-safe base64, and another one if it begins with a dash."""
    drawn = {drawn_member_id(seed, name, number) for seed in range(9) for name in "ab" for number in range(9)}
    assert len(drawn) == 9 * 2 * 9
    assert all(len(each) == 22 and not each.startswith("-") for each in drawn)
    assert drawn_member_id(1, "a", 1) == drawn_member_id(1, "a", 1)


def test_member_ids_stay_the_same_from_version_to_version() -> None:
    """Traces of the same seed do, too. The first draw for the last of these begins with a dash."""
    ids = [drawn_member_id(1, *who) for who in (("member-0", 1), ("member-1", 1), ("member-0", 6))]
    assert ids == ["S445TxIRi_fzPT_qoIKYOw", "4rZmrW1-cDXk_1u4CWqCoA", "XqC05TycEVs8AwzSa__-fw"]
