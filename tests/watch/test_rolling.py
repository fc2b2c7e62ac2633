"""Figures of the last minutes, while rows come file by file and old ones are carried forward."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.figures.accumulator import Window
from groupstorm.problems import InputError
from groupstorm.watch.feed import WatchedRow, read_line
from groupstorm.watch.rolling import CULPRITS_MAX, OTHERS, Carried, Rolling
from groupstorm.watch.snapshot import read, write
from tests.explain.explaining import added, round_of, storm
from tests.figures.tracing import figures_by_group
from tests.watch.rolling_rows import GROUP, SECOND, SPAN_US, by_hand, generation_row, rows_of, state_row

STORMS = [
    ("rolling-deploy", "eager"),
    ("rolling-deploy", "consumer"),
    ("poison-in-a-share-group", "released"),
    pytest.param(("rolling-deploy", "cooperative"), marks=pytest.mark.slow),
    pytest.param(("deploy-and-crash", "eager"), marks=pytest.mark.slow),
    pytest.param(("deploy-and-crash", "static"), marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=STORMS, ids="-".join)
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("storm")
    preset, variant = request.param
    return storm(folder, preset, variant, {"members": 4, "partitions": 8})


def at_once(rows: list[WatchedRow], from_us: int, end_us: int) -> Mapping[str, Figures]:
    """The figures of a window by `groupstorm analyze`'s own pass over all rows."""
    if from_us > 0:
        return figures_by_group((one.row for one in rows), Window(from_us, end_us))
    whole = FiguresAccumulator()
    whole.count_from(0)
    for one in rows:
        whole.add_row(one.row)
    return {rows[0].group: whole.figures(end_us)}


@pytest.mark.parametrize("source", ["", "coordinator"])
def test_figures_of_a_span_are_those_of_a_window_whatever_was_carried(trace: Path, source: str) -> None:
    rows = rows_of(trace, source)
    rolling = Rolling(SPAN_US, late_us=0, carried_rows=10)
    carried = 0
    for so_far in prefixes(rows):
        rolling.add(one for one in so_far if one.seq >= rolling.carried.next_seq)
        carried += rolling.carry()
        end_us = so_far[-1].time_us
        pictures = {one.group: one.figures for one in rolling.pictures(SPAN_US, end_us)}
        assert pictures == at_once(so_far, end_us - SPAN_US, end_us)
    assert carried > 1


def prefixes(rows: list[WatchedRow]) -> Iterator[list[WatchedRow]]:
    """More and more of the rows, cut between two instants."""
    step = len(rows) // 12
    due = step
    for end in range(1, len(rows)):
        if rows[end].time_us != rows[end - 1].time_us and end >= due:
            due = end + step
            yield rows[:end]


@pytest.mark.parametrize("source", ["", "coordinator"])
def test_sums_over_everything_that_was_carried_are_the_figures_of_the_whole_trace(
    trace: Path, source: str
) -> None:
    rows = rows_of(trace, source)
    rolling = Rolling(SPAN_US, late_us=0, carried_rows=10)
    for so_far in prefixes(rows):
        rolling.add(one for one in so_far if one.seq >= rolling.carried.next_seq)
        rolling.carry()
    end_us = so_far[-1].time_us
    at_once = Rolling(end_us)
    at_once.add(so_far)
    whole = {one.group: one for one in at_once.pictures(end_us, end_us)}
    for group, sums in rolling.sums(end_us).items():
        begun = whole[group].begun
        assert sums.generations == whole[group].figures.generations
        by_cause, by_member = Counter[str](), Counter[str]()
        for (cause, member), count in begun.items():
            by_cause[cause] += count
            by_member[member] += count
        del by_member[""]  # nobody began the group's start
        assert (sums.begun_by_cause, sums.begun_by_member) == (by_cause, by_member)
        unowned_seconds = whole[group].figures.unowned_partition_seconds
        if unowned_seconds is not None:
            assert sums.unowned_us == round(unowned_seconds * SECOND)


def test_files_that_are_late_are_missed_and_then_taken_in_by_seq() -> None:
    rolling = Rolling(SPAN_US)
    rolling.add(generation_row(seq) for seq in (0, 1, 4, 5))
    assert (rolling.missing, generations(rolling)) == (2, 4)
    rolling.add(generation_row(seq) for seq in (2, 3))
    assert (rolling.missing, generations(rolling)) == (0, 6)


def test_rows_that_come_twice_count_once_and_two_rows_of_one_seq_are_refused() -> None:
    rolling = Rolling(SPAN_US)
    rolling.add([generation_row(0), generation_row(0)])
    rolling.add([generation_row(0)])
    assert generations(rolling) == 1
    with pytest.raises(InputError, match="two rows have the seq 0: expected the files of one trace"):
        rolling.add([generation_row(0, time_us=7)])


def test_rows_behind_which_everything_was_carried_are_too_late() -> None:
    rolling = Rolling(SPAN_US, late_us=0, carried_rows=1)
    rolling.add(generation_row(seq) for seq in (0, 1, 3, 4, 300))
    assert rolling.carry()
    rolling.add([generation_row(2)])
    assert (rolling.too_late, rolling.missing, generations(rolling)) == (1, 295, 5)


def test_few_rows_are_not_carried_nor_rows_that_a_late_file_may_precede() -> None:
    rolling = Rolling(SPAN_US, late_us=30 * SECOND, carried_rows=3)
    rolling.add(generation_row(seq) for seq in (0, 1, 2, 92))
    assert not rolling.carry()  # 92 s - 60 s - 30 s: two rows
    rolling.add([generation_row(93)])
    assert rolling.carry()
    assert rolling.carried.next_seq == 3


def test_a_span_that_is_longer_than_the_trace_is_all_of_it() -> None:
    rolling = Rolling(SPAN_US)
    rolling.add(generation_row(seq) for seq in range(10))
    (one,) = rolling.pictures(1_000 * SECOND, 9 * SECOND)
    assert one.figures.generations == 10


def test_time_goes_on_when_no_rows_come() -> None:
    rolling = Rolling(SPAN_US)
    rolling.add(generation_row(seq) for seq in range(10))
    (one,) = rolling.pictures(SPAN_US, 65 * SECOND)
    assert one.figures.generations == 5  # of the seconds 5 to 9


def test_a_row_before_the_one_in_front_of_it_is_refused() -> None:
    rolling = Rolling(SPAN_US)
    rolling.add([generation_row(0), generation_row(1, time_us=5), generation_row(2, time_us=4)])
    with pytest.raises(InputError, match="row 2: time_us: 4: expected at least 5"):
        rolling.pictures(SPAN_US, 9)


def test_what_was_carried_can_be_kept_and_taken_up() -> None:
    rows = [generation_row(seq) for seq in range(200)]
    first = Rolling(SPAN_US, late_us=0, carried_rows=1)
    first.add(rows)
    first.carry()
    text = json.dumps(write(Carried, first.carried))
    second = Rolling(SPAN_US, read(Carried, json.loads(text)))
    second.add(rows[first.carried.next_seq :])
    assert first.carried.next_seq == 139
    assert second.sums(199 * SECOND) == first.sums(199 * SECOND)
    assert second.sums(199 * SECOND)["g"].generations == 200


def test_the_members_that_are_counted_by_name_are_bounded() -> None:
    rows = []
    for number in range(CULPRITS_MAX + 5):
        rows += [
            state_row(2 * number, "Stable", "PreparingRebalance", f"m-{number}"),
            state_row(2 * number + 1, "PreparingRebalance", "Stable", ""),
        ]
    rolling = Rolling(1_000 * SECOND)
    rolling.add(rows)
    by_member = rolling.sums(1_000 * SECOND)["g"].begun_by_member
    assert by_member["m-0"] == 1
    assert by_member[OTHERS] == 5
    assert len(by_member) == CULPRITS_MAX + 1


def test_a_member_goes_by_its_client_id_also_after_it_was_carried() -> None:
    def came(seq: int, member_id: str) -> list[WatchedRow]:
        row = {"seq": seq, "time_us": seq * SECOND, "source": "coordinator", "event": "member_added"}
        row |= {
            "group": "g",
            "member": "worker",
            "member_id": member_id,
            "generation": 1,
            "cause": "new-member",
        }
        added = read_line(json.dumps(row | {"count": 1, "duration_us": 1}))
        assert added is not None
        begun = state_row(seq + 1, "Stable", "PreparingRebalance", member_id)
        return [added, begun, state_row(seq + 2, "PreparingRebalance", "Stable", "")]

    rolling = Rolling(SPAN_US, late_us=0, carried_rows=1)
    rolling.add(
        [
            *came(0, "worker-1"),
            *came(3, "worker-2"),
            state_row(100, "Stable", "PreparingRebalance", "worker-1"),
        ]
    )
    assert rolling.carry()
    assert rolling.sums(100 * SECOND)["g"].begun_by_member == {"worker": 3}


@pytest.mark.parametrize(
    ("old_sends", "begun_by"),
    [(True, {"5gg (shop)": 1, "7ab (shop)": 1}), (False, {"shop": 2})],
)
def test_members_that_share_a_client_id_are_not_one(old_sends: bool, begun_by: dict[str, int]) -> None:
    """Pods with librdkafka's own client id are several; a member that has crashed, and its successor, are one
    pod: the old member sends nothing any more."""
    sent = {"s": 55, "event": "join_parked", "member": "shop", "member_id": "5gg", "generation": 2}
    rows = [*GROUP, added(29, "shop", "5gg"), *round_of(29, 3, "new-member", "5gg")]
    rows += [added(39, "shop", "7ab"), *round_of(39, 4, "new-member", "7ab"), *([sent] if old_sends else [])]
    rolling = Rolling(SPAN_US)
    rolling.add(by_hand(*rows))
    by_member = rolling.sums(SPAN_US)["g"].begun_by_member
    assert {name: count for name, count in by_member.items() if "shop" in name} == begun_by


def generations(rolling: Rolling) -> int:
    return rolling.sums(rolling.last_us)["g"].generations
