"""The percentiles of times without an owner, and the partition that had the longest."""

from __future__ import annotations

from groupstorm.history.gaps import Gaps, GapSums, Partition


def test_percentiles_of_a_hundred_gaps_are_their_ranks() -> None:
    sums, partition = GapSums(), Partition("t-0", 0)
    for gap_us in range(100, 0, -1):
        sums.add(partition, gap_us)
    assert sums.figures([partition]) == Gaps(5050, 100, 50, 95, 99, "t-0", 0, 0)


def test_the_worst_partition_is_the_one_with_the_longest_gap() -> None:
    sums = GapSums()
    first, second, third = (Partition(f"t-{number}", 0) for number in range(3))
    sums.add(first, 3)
    sums.add(third, 9)
    sums.add(second, 9)
    assert sums.figures([third, second, first]).longest_of == "t-1", "of several the first by name"
    assert GapSums().figures([first]).longest_of == ""


def test_a_gap_of_a_microsecond_is_longer_than_none() -> None:
    sums = GapSums()
    without, with_one = Partition("t-0", 0), Partition("t-1", 0)
    sums.add(with_one, 1)
    assert sums.figures([without, with_one]).longest_of == "t-1"
