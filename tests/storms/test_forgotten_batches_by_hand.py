"""The loop of a process that is behind forgets old batches, or they would fill the memory of a long run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.processing_rates import ProcessingRates
from groupstorm.storms.world.clock import Clock
from tests.storms.test_clients_by_hand import until

SECOND = 1_000_000


def test_a_member_that_is_behind_forgets_old_batches_whenever_it_gets_a_row() -> None:
    clock = Clock()
    forgot_s: list[int] = []
    loop: Any = SimpleNamespace(
        forget=lambda now_us: forgot_s.append(now_us // SECOND),
        rates=lambda _: {TopicPartition("t", 0): 1_000},
        positions=lambda _: {TopicPartition("t", 0): 5},
        caught_up_us=lambda *_: None,
        longest_interval_us=SECOND,
    )
    rows: list[Any] = []
    ProcessingRates(clock, loop, lambda *row: rows.append(row)).changed(began=True)
    until(clock, 35 * SECOND)
    assert forgot_s == [0, 10, 20, 30]
    assert rows == [(("t-0",), (5,), (0,))] * 4
