"""A checkpoint of the journal: what a restart reads, and the checkpoints that it ignores."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.broker import data_directory
from groupstorm.broker.assembly import make_broker
from groupstorm.broker.broker import Broker
from groupstorm.broker.broker_journal import BrokerJournal
from groupstorm.broker.data_directory import DataDirectory
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from tests.broker.asking import commit, fetch, produce
from tests.broker.driver import Driver

NOW_MS = 1_700_000_000_000


class OnDisk(Driver):
    """A driver whose broker keeps its changes in a folder."""

    def __init__(self, folder: Path, accept_loss: bool = False) -> None:
        super().__init__()
        self.said: list[str] = []
        self.failed = 0
        self.journal = BrokerJournal(folder, self._fail, self.said.append, accept_loss)
        self.broker = self.journal.restart(self._make, NOW_MS)

    @staticmethod
    def _make(changes: object, now_ms: int) -> Broker:
        return make_broker({}, {"orders": 3}, journal=changes, now_ms=now_ms)  # type: ignore[arg-type]

    def _fail(self) -> None:
        self.failed += 1

    def collect(self, effects: object) -> None:
        assert not effects.changes or self.journal.add(effects.changes)  # type: ignore[attr-defined]
        super().collect(effects)


def fill(driver: OnDisk, count: int) -> None:
    for _ in range(count):
        produce(driver, 9)
        commit(driver, 8)


def state(driver: OnDisk) -> object:
    return list(driver.broker.snapshot())


@pytest.mark.parametrize("how", ["missing", "cut", "changed", "version"])
def test_without_a_checkpoint_the_whole_journal_is_read(tmp_path: Path, how: str) -> None:
    driver = OnDisk(tmp_path)
    fill(driver, 5)
    before = state(driver)
    driver.journal.checkpoint()
    driver.journal.close()
    checkpoint = tmp_path / "checkpoint"
    data = checkpoint.read_bytes()
    match how:
        case "missing":
            checkpoint.unlink()
        case "cut":
            checkpoint.write_bytes(data[:-1])
        case "changed":
            checkpoint.write_bytes(data[:-1] + bytes((data[-1] ^ 1,)))
        case "version":
            checkpoint.write_bytes(data.replace(b"checkpoint 2", b"checkpoint 3", 1))
    again = OnDisk(tmp_path)
    assert state(again) == before
    damaged = f"--data {tmp_path}: checkpoint: is damaged: the whole journal is read"
    assert again.said == ([] if how == "missing" else [damaged])
    again.journal.close()


def test_a_new_journal_has_no_checkpoint_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_directory, "_COMPACT_AFTER_BYTES", 3_000)
    driver = OnDisk(tmp_path)
    fill(driver, 2)
    driver.journal.checkpoint()
    size = (tmp_path / "journal").stat().st_size
    for _ in range(60):
        commit(driver, 8)  # each one replaces the one before
    assert (tmp_path / "journal").stat().st_size < size + 4_000
    assert not (tmp_path / "checkpoint").exists()
    before = state(driver)
    driver.journal.close()
    again = OnDisk(tmp_path)
    assert state(again) == before
    again.journal.close()


def test_checkpoints_are_written_as_the_journal_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_directory, "_CHECKPOINT_AFTER_BYTES", 1_000)
    driver = OnDisk(tmp_path)
    fill(driver, 100)
    size = (tmp_path / "checkpoint").stat().st_size
    driver.journal.close()
    directory = DataDirectory(tmp_path, pytest.fail)
    next(directory.read())
    checkpointed_bytes, _ = directory.checkpointed
    behind = (tmp_path / "journal").stat().st_size - checkpointed_bytes
    assert checkpointed_bytes > 0
    assert behind < 1_000 + 4 * size + 1_000
    directory.close()


def test_a_checkpoint_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    driver = OnDisk(tmp_path)
    fill(driver, 1)
    (tmp_path / "checkpoint.new").mkdir()
    driver.journal.checkpoint()
    refused = f"--data {tmp_path}: cannot be written: Is a directory"
    assert driver.said == [f"{refused}: the next start reads more of the journal"]
    fill(driver, 1)
    driver.journal.check()
    driver.journal.close()


def damage(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def test_damage_in_front_of_the_checkpoint_is_found(tmp_path: Path) -> None:
    """By the check that runs while the broker serves; and a client never gets the batch."""
    driver = OnDisk(tmp_path)
    fill(driver, 40)
    driver.journal.checkpoint()
    log = driver.broker.state.topics.partition("orders", 0)
    assert log is not None
    at = log.batches.columns.positions[1] + 65
    driver.journal.close()
    damage(tmp_path / "journal", at)
    again = OnDisk(tmp_path)
    assert fetch(again, 12, 0).error_code == Error.KAFKA_STORAGE_ERROR
    assert fetch(again, 12, 2).error_code == Error.NONE
    problem = again.journal.check_unread(lambda: False)
    assert problem is not None
    assert "is damaged, and whole ones follow" in str(problem)
    again.journal.fail(problem)
    assert again.failed == 1
    with pytest.raises(InputError, match="is damaged"):
        again.journal.check()
    again.journal.close()


def test_an_undamaged_journal_passes_the_check(tmp_path: Path) -> None:
    driver = OnDisk(tmp_path)
    fill(driver, 3)
    driver.journal.checkpoint()
    driver.journal.close()
    again = OnDisk(tmp_path)
    assert again.journal.check_unread(lambda: False) is None
    again.journal.close()
