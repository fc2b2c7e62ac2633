"""Network threads that are due at one instant, in the order of their members."""

from __future__ import annotations

from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.consumer_group.simultaneous_runs import SimultaneousRuns


def test_threads_of_one_instant_run_in_the_order_of_their_members_behind_what_is_due() -> None:
    clock, ran = Clock(), list[tuple[int, str]]()
    runs = SimultaneousRuns(clock)

    def thread(index: int, number: int) -> None:
        runs.add(index, lambda given: ran.append((clock.now_us, f"member {index}, run {given}")), number)

    clock.at(5, thread, 2, 7)
    clock.at(5, thread, 0, 8)
    clock.at(5, lambda: ran.append((clock.now_us, "due")))
    clock.at(9, thread, 1, 9)
    clock.limit_us = 10
    clock.run()
    assert ran == [(5, "due"), (5, "member 0, run 8"), (5, "member 2, run 7"), (9, "member 1, run 9")]
