"""What a watch keeps over a restart, and whose checkpoint it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.problems import InputError
from groupstorm.watch.checkpoint import open_checkpoint
from groupstorm.watch.rolling import Rolling
from tests.watch.rolling_rows import SPAN_US, generation_row


def test_rows_the_state_before_them_and_alerts_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    rolling = Rolling(SPAN_US, late_us=0, carried_rows=1)
    rows = [generation_row(seq) for seq in range(100)]
    rolling.add(rows)
    with open_checkpoint(folder, "a") as checkpoint:
        assert (checkpoint.rows(), checkpoint.carried(), checkpoint.active()) == ([], None, frozenset())
        checkpoint.keep(0, rows, 17.5)
        assert rolling.carry()
        checkpoint.carry(rolling.carried)
        checkpoint.keep_active(frozenset({("generations>3 per 1h", "g")}))
    with open_checkpoint(folder, "a") as checkpoint:
        assert checkpoint.rows() == rows[rolling.carried.next_seq :] != []
        assert checkpoint.carried() == rolling.carried
        assert checkpoint.came() == 17.5
        assert checkpoint.active() == {("generations>3 per 1h", "g")}


def test_a_batch_is_done_when_it_is_kept_and_so_are_those_before_it(tmp_path: Path) -> None:
    with open_checkpoint(tmp_path / "c", "a") as checkpoint:
        assert not checkpoint.is_done(0)
        checkpoint.keep(9, [], None)
        assert [checkpoint.is_done(number) for number in (8, 9, 10)] == [True, True, False]


def test_a_row_that_comes_twice_is_kept_once(tmp_path: Path) -> None:
    with open_checkpoint(tmp_path / "c", "a") as checkpoint:
        checkpoint.keep(0, [generation_row(0)], 1)
        checkpoint.keep(1, [generation_row(0), generation_row(1)], 2)
        assert [one.seq for one in checkpoint.rows()] == [0, 1]


def test_the_checkpoint_of_another_trace_is_refused(tmp_path: Path) -> None:
    with open_checkpoint(tmp_path / "c", "/traces/a"):
        pass
    with pytest.raises(InputError) as refused, open_checkpoint(tmp_path / "c", "/traces/b"):
        pass
    assert str(refused.value) == (
        f"--checkpoint {tmp_path / 'c'}: is the checkpoint of /traces/a, not /traces/b: "
        "name another folder or remove it"
    )


def test_a_checkpoint_is_used_by_one_watch_at_a_time(tmp_path: Path) -> None:
    second = open_checkpoint(tmp_path / "c", "a")
    with (
        open_checkpoint(tmp_path / "c", "a"),
        pytest.raises(InputError, match="another watch is using it"),
        second,
    ):
        pass
    with open_checkpoint(tmp_path / "c", "a"):
        pass


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    with pytest.raises(InputError, match="holds something else"), open_checkpoint(tmp_path, "a"):
        pass
    (tmp_path / "notes.txt").rename(tmp_path / "rows.sqlite")
    with pytest.raises(InputError, match="not the checkpoint of a watch"), open_checkpoint(tmp_path, "a"):
        pass


def test_if_sparks_part_of_it_is_gone_batches_are_counted_anew(tmp_path: Path) -> None:
    with open_checkpoint(tmp_path / "c", "a") as checkpoint:
        checkpoint.keep(5, [generation_row(0)], 1)
        checkpoint.spark_folder.mkdir()
    with open_checkpoint(tmp_path / "c", "a") as checkpoint:
        assert checkpoint.is_done(0)
        checkpoint.spark_folder.rmdir()
    with open_checkpoint(tmp_path / "c", "a") as checkpoint:
        assert not checkpoint.is_done(0)
        assert [one.seq for one in checkpoint.rows()] == [0]
