"""Records against sets of offsets, their arrival and age, and generations without progress."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.history.frontier import arrived_us, oldest_us
from groupstorm.history.records import NANO, Line, RecordSums
from groupstorm.history.rounds import Progress

# -- records -----------------------------------------------------------------------------------------

RANGES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 25), st.integers(-2, 9)), max_size=12)


@given(RANGES, st.integers(0, 12), st.sampled_from(["", "a", "b"]))
def test_records_are_counted_as_sets_of_offsets(
    ranges: list[tuple[str, int, int]], deleted_at: int, first_of_group: str
) -> None:
    """Partition ``a`` is deleted once: the offsets of the next one of its name are other records. Two records
    that the first owner does not begin with count as skipped, those of one partition as the group began."""
    sums = RecordSums()
    covered: dict[tuple[str, int], list[int]] = {}
    first: dict[tuple[str, int], int] = {}
    furthest: dict[tuple[str, int], int] = {}
    life = 0
    for number, (name, start, size) in enumerate(ranges):
        if number == deleted_at:
            sums.forget("a")
            life = 1
        key = name, life if name == "a" else 0
        sums.begin(name, start, start - 2, begins_group=name == first_of_group)
        sums.end(name, start, start + size)
        first.setdefault(key, start - 2)
        covered.setdefault(key, []).extend(range(start, start + size))
        furthest[key] = max(furthest.get(key, start), start + size, first[key] + 2)
    offsets = [offset for of in covered.values() for offset in of]
    assert sums.processed == len(offsets)
    assert sums.duplicated == len(offsets) - sum(len(set(of)) for of in covered.values())
    assert sums.skipped == sum(
        len(set(range(first[key], furthest[key])) - set(of)) for key, of in covered.items()
    )
    assert sums.skipped_at_start == sum(
        len({first[key], first[key] + 1} - set(of)) for key, of in covered.items() if key[0] == first_of_group
    )


# -- the arrival and the age of records --------------------------------------------------------------


def test_a_record_arrives_in_the_microsecond_in_which_the_log_reaches_it() -> None:
    grows, stands = Line(0, 10, 5), Line(0, 10, 0)
    assert [arrived_us([grows], position) for position in (0, 1, 5, 6)] == [10, 11, 11, 12]
    assert [arrived_us([stands], position) for position in (0, 1)] == [10, None]
    jumps = [stands, Line(1, 50, 5)]
    assert [arrived_us(jumps, position) for position in (1, NANO, NANO + 1)] == [50, 50, 51]


def test_the_oldest_record_may_be_oldest_where_one_owner_overtakes_another() -> None:
    """A record arrives each microsecond. One owner stands at 5; another one passes it at 15 us, twice as fast
    as records arrive. The record at 5 came at 6 us: it is 9 us old then, and younger before and after."""
    owners = [(5 * NANO, 0), (-25 * NANO, 2 * NANO)]
    for one in (owners, owners[::-1]):
        assert oldest_us(0, [Line(0, 0, NANO)], 0, one, 10, 20) == 9


def test_the_oldest_record_is_looked_for_on_both_sides_of_the_instant_of_overtaking() -> None:
    """Ten records a microsecond: the one behind offset 5 came at 1 us. The second owner passes between 15 and
    16 us. At 16 us it is at 5.2, so that the record that waits still is the one of 1 us; then it is fast."""
    owners = [(5 * NANO, 0), (-394_800_000_000, 25 * NANO)]
    assert oldest_us(0, [Line(0, 0, 10 * NANO)], 0, owners, 10, 20) == 15


# -- generations without progress --------------------------------------------------------------------


def test_less_than_a_record_is_no_progress_and_nothing_that_waits() -> None:
    progress = Progress()
    progress.stable(1, 0, NANO)
    progress.stable(2, NANO - 1, NANO)
    assert progress.without_max == 1
    progress.stable(3, NANO - 1, NANO - 1)
    progress.finish(NANO - 1, NANO)
    assert progress.without_max == 1


def test_a_window_counts_its_own_generations() -> None:
    progress = Progress()
    for generation in range(4):
        progress.stable(generation, 0, NANO)
    progress.begin_window()
    assert progress.without_max == 0
    progress.stable(4, 0, NANO)
    progress.stable(5, 0, NANO)
    progress.finish(0, NANO)
    assert progress.without_max == 2


def test_an_epoch_that_is_stable_again_is_none_of_its_own() -> None:
    """A coordinator that cannot write takes an epoch back, and it is Stable again with the next attempt."""
    progress = Progress()
    for epoch in (7, 8, 8, 8):
        progress.stable(epoch, 0, NANO)
    progress.emptied()
    progress.stable(8, 0, NANO)  # of a group that was deleted and created again
    progress.finish(0, NANO)
    assert progress.without_max == 3
