"""A watch keeps its figures over a restart, and takes only its own checkpoint."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from groupstorm import __version__
from groupstorm.explain.history import History
from groupstorm.problems import InputError
from groupstorm.watch.checkpoint import FORMAT, Checkpoint, open_checkpoint
from groupstorm.watch.feed import BATCHES, Progress
from groupstorm.watch.rolling import Rolling
from groupstorm.watch.sources import FolderSource
from groupstorm.watch.watching import Picture, RowsSoFar, Watch
from tests.watch.rolling_rows import SPAN_US, generation_row


def batch(number: int) -> Progress:
    return Progress(BATCHES, number)


def test_rows_the_state_before_them_and_alerts_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    rolling = Rolling(SPAN_US, late_us=0, carried_rows=1)
    rows = [generation_row(seq) for seq in range(100)]
    rolling.add(rows)
    with open_checkpoint(folder, "a") as checkpoint:
        assert (checkpoint.rows(), checkpoint.carried(), checkpoint.active()) == ([], None, frozenset())
        checkpoint.keep(batch(0), rows, 17.5)
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
        assert not checkpoint.is_done(batch(0))
        checkpoint.keep(batch(9), [], None)
        assert [checkpoint.is_done(batch(number)) for number in (8, 9, 10)] == [True, True, False]


def test_how_far_each_file_has_been_read_is_kept(tmp_path: Path) -> None:
    with open_checkpoint(tmp_path / "c", "a") as checkpoint:
        for progress in (
            Progress("trace-1.jsonl", 70),
            Progress("trace;.jsonl", 5),
            Progress("trace-1.jsonl", 90),
        ):
            checkpoint.keep(progress, [], None)
    with open_checkpoint(tmp_path / "c", "a") as checkpoint:
        assert checkpoint.progress() == {"trace-1.jsonl": 90, "trace;.jsonl": 5}


def test_a_row_that_comes_twice_is_kept_once(tmp_path: Path) -> None:
    with open_checkpoint(tmp_path / "c", "a") as checkpoint:
        checkpoint.keep(batch(0), [generation_row(0)], 1)
        checkpoint.keep(batch(1), [generation_row(0), generation_row(1)], 2)
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


def test_batches_that_are_counted_anew_leave_the_rows(tmp_path: Path) -> None:
    """As when Spark's part of the checkpoint is gone."""
    with open_checkpoint(tmp_path / "c", "a") as checkpoint:
        checkpoint.keep(batch(5), [generation_row(0)], 1)
        checkpoint.forget_batches()
    with open_checkpoint(tmp_path / "c", "a") as checkpoint:
        assert not checkpoint.is_done(batch(0))
        assert [one.seq for one in checkpoint.rows()] == [0]


# -- what others have written, or damaged ------------------------------------------------------------


def kept(folder: Path) -> None:
    """A checkpoint with a state and with rows behind it, of which Spark has read the files."""
    rolling = Rolling(SPAN_US, late_us=0, carried_rows=1)
    rows = [generation_row(seq) for seq in range(100)]
    rolling.add(rows)
    with open_checkpoint(folder, "a") as checkpoint:
        checkpoint.keep(batch(0), rows, 17.5)
        assert rolling.carry()
        checkpoint.carry(rolling.carried)
        checkpoint.keep_active(frozenset({("generations>3 per 1h", "g")}))
        checkpoint.spark_folder.mkdir()


def read_all(checkpoint: Checkpoint) -> None:
    checkpoint.rows()
    checkpoint.carried()
    checkpoint.active()
    checkpoint.came()
    checkpoint.progress()
    checkpoint.check_begins_with(generation_row(0).line)


def content_of(folder: Path) -> Mapping[str, Any]:
    return {
        str(one): os.readlink(one) if one.is_symlink() else one.is_file() and one.read_bytes()
        for one in [folder, *folder.rglob("*")]
    }


def check_refused(folder: Path) -> str:
    """It is refused in one line with its name and the remedy, and stays as it is; returns why."""
    before = content_of(folder)
    with pytest.raises(InputError) as refused, open_checkpoint(folder, "a") as checkpoint:
        read_all(checkpoint)
    said = str(refused.value)
    assert said.isprintable()
    assert len(said) < 300 + len(str(folder)), said
    assert said.startswith(f"--checkpoint {folder}: ")
    assert "name another folder" in said
    assert content_of(folder) == before
    return said


def sealed(text: str) -> str:
    """The text behind its checksum: whoever writes a checkpoint by hand can compute it."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest() + text


def change(folder: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(folder / "rows.sqlite")
    with connection:
        connection.execute(statement, values)
    assert connection.total_changes or statement.startswith("ALTER")
    connection.close()


def tell(folder: Path, name: str, text: str) -> None:
    change(folder, "UPDATE about SET value = ? WHERE name = ?", sealed(text), name)


def replace_file(folder: Path, content: Callable[[bytes], bytes]) -> None:
    file = folder / "rows.sqlite"
    file.write_bytes(content(file.read_bytes()))


def flipped(content: bytes, text: bytes) -> bytes:
    """One bit of another digit behind ``text``, where it stands in the file."""
    at = content.index(text) + len(text)
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def put_aside(one: Path, instead: Callable[[Path], object]) -> None:
    one.rename(one.parent.with_name("aside"))
    instead(one)


DAMAGE: Mapping[str, Callable[[Path], object]] = {
    "half of the file": lambda folder: replace_file(folder, lambda content: content[: len(content) // 2]),
    "all but the end": lambda folder: replace_file(folder, lambda content: content[:-4096]),
    "no byte": lambda folder: replace_file(folder, lambda _: b""),
    "text": lambda folder: replace_file(folder, lambda _: b"mine\n"),
    "a flipped bit of the state": lambda folder: replace_file(
        folder, lambda one: flipped(one, b'"_from_us": ')
    ),
    "a flipped bit of a row": lambda folder: replace_file(
        folder, lambda one: flipped(one, b'"generation": ')
    ),
    "a folder": lambda folder: put_aside(folder / "rows.sqlite", Path.mkdir),
    "a link": lambda folder: put_aside(
        folder / "rows.sqlite", lambda one: one.symlink_to(folder.with_name("aside"))
    ),
    "a link to nothing": lambda folder: put_aside(
        folder / "rows.sqlite", lambda one: one.symlink_to(folder.with_name("nothing"))
    ),
    "Spark's part a link": lambda folder: put_aside(
        folder / "spark", lambda one: one.symlink_to(folder.with_name("aside"))
    ),
    "Spark's part a file": lambda folder: put_aside(folder / "spark", Path.touch),
    "a journal that has SQLite delete a file": lambda folder: (folder / "rows.sqlite-journal").write_bytes(
        b"thesis" + bytes(8) + bytes.fromhex("d9d505f920a163d7")
    ),
    "a journal elsewhere": lambda folder: (folder / "rows.sqlite-journal").symlink_to(folder.with_name("j")),
    "a log elsewhere": lambda folder: (folder / "rows.sqlite-wal").symlink_to(folder.with_name("log")),
    "no file": lambda folder: (folder / "rows.sqlite").unlink(),
    "another column": lambda folder: change(folder, "ALTER TABLE rows ADD COLUMN more TEXT"),
    "a number for a text": lambda folder: change(folder, "UPDATE about SET value = 5"),
    "bytes for a text": lambda folder: change(folder, "UPDATE about SET value = x'00'"),
    "text without a checksum": lambda folder: change(folder, "UPDATE about SET value = '[]'"),
    "bytes for a row": lambda folder: change(folder, "UPDATE rows SET line = x'00'"),
    "text that is not UTF-8": lambda folder: change(
        folder, "UPDATE rows SET line = CAST(x'ff' AS TEXT) || line"
    ),
    "no JSON": lambda folder: tell(folder, "carried", "{"),
    "deep JSON": lambda folder: tell(folder, "carried", "[" * 100_000),
    "a huge number": lambda folder: tell(folder, "read:", "9" * 10_000),
    "a large number": lambda folder: tell(folder, "carried", f"[{10**300}, 0, {{}}, {{}}]"),
    "a time before all rows": lambda folder: tell(folder, "carried", "[-1, 0, {}, {}]"),
    "a time that is none": lambda folder: tell(folder, "came", "NaN"),
    "a text for a number": lambda folder: tell(folder, "read:", '"0"'),
    "less than nothing read": lambda folder: tell(folder, "read:", "-1"),
    "a list for a state": lambda folder: tell(folder, "carried", "[]"),
    "a state of nothing": lambda folder: tell(folder, "carried", '[0, 0, {"g": {}}, {}]'),
    "alerts that are none": lambda folder: tell(folder, "active", "[1]"),
    "a row that is none": lambda folder: change(folder, "UPDATE rows SET line = ?", sealed('{"seq": 5}')),
    "a version's line for a row": lambda folder: change(
        folder, "UPDATE rows SET line = ?", sealed('{"trace_schema_version": 1}')
    ),
    "another row": lambda folder: change(folder, "UPDATE rows SET seq = 500 WHERE seq = 99"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_no_watch_writes_is_refused_and_left_as_it_is(
    damage: Callable[[Path], object], tmp_path: Path
) -> None:
    kept(tmp_path / "c")
    damage(tmp_path / "c")
    check_refused(tmp_path / "c")


def test_a_state_that_no_rows_lead_to_is_refused(tmp_path: Path) -> None:
    """Each value has its type, but a rebalance has no round."""
    folder, trace = tmp_path / "c", tmp_path / "trace"
    trace.mkdir()
    kept(folder)
    connection = sqlite3.connect(folder / "rows.sqlite")
    (state,) = connection.execute("SELECT value FROM about WHERE name = 'carried'").fetchone()
    connection.close()
    from_us, next_seq, groups, sums = json.loads(state.removeprefix(state[:16]))
    groups["g"]["_recorder"]["_history"] += 1  # the number of the history, which follows one object more
    history = groups["g"]["_recorder"]["_epochs"]["_history"]
    history[[one.name for one in fields(History)].index("rebalances")] = [[1, [], [], 0, 0, 0, 0, None]]
    tell(folder, "carried", json.dumps([from_us, next_seq, groups, sums]))
    order = Watch(FolderSource(trace), folder, SPAN_US, [], 1, True)
    with open_checkpoint(folder, "a") as checkpoint:
        rows = RowsSoFar(order, checkpoint)
        with pytest.raises(
            InputError, match=r"its state does not go with the rows: .*: name another folder or"
        ):
            rows.show_to(Nobody())


class Nobody:
    def reading(self, rows: int) -> None: ...

    def show(self, picture: Picture) -> None: ...


class _Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("ran"),)


def test_the_pickled_state_of_an_earlier_version_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever hands over a folder could have run code in the watch of it."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "c"
    folder.mkdir()
    connection = sqlite3.connect(folder / "rows.sqlite")
    connection.executescript(
        "CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE rows (seq INTEGER PRIMARY KEY, line TEXT NOT NULL);"
    )
    with connection:
        for name, value in (("source", "a"), ("version", __version__), ("carried", pickle.dumps(_Payload()))):
            connection.execute("INSERT INTO about VALUES (?, ?)", (name, value))
    connection.close()
    assert f"has the format 0, not {FORMAT}" in check_refused(folder)
    assert not Path("ran").exists()


def test_a_checkpoint_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        kept(tmp_path / "c")
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("c", "c/rows.sqlite")] == [0o700, 0o600]
