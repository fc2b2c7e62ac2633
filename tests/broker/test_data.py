"""`serve --data`: the state after a restart, however the process has ended."""

from __future__ import annotations

import resource
import signal
import struct
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groupstorm.broker import data_directory
from groupstorm.broker.assembly import make_broker
from groupstorm.broker.broker import Broker
from groupstorm.broker.broker_journal import BrokerJournal
from groupstorm.broker.changes import BatchAppended, Change, TopicConfigured, TopicCreated
from groupstorm.broker.data_directory import DataDirectory
from groupstorm.broker.journal import BEGINNING, JournalError, decode, encode, frame
from groupstorm.broker.log.batches import marker_batch, placed_at
from groupstorm.coordinator.errors import Error
from groupstorm.problems import ExitCode, InputError
from tests.broker import wire
from tests.broker.asking import (
    alter_configs,
    commit,
    create,
    create_partitions,
    delete_records,
    delete_topics,
    describe_configs,
    fetch,
    join,
    list_offsets,
    offset_fetch,
    produce,
    topic_id,
)
from tests.broker.driver import RESTARTS, Driver
from tests.broker.test_serve import DEADLINE_S, serving
from tests.broker.transactional import TransactionalProducer
from tests.broker.wire import RawClient
from tests.processes import outcome_of

Again = Callable[[Driver], None]
OPTIONS = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(params=RESTARTS)
def again(request: pytest.FixtureRequest) -> Again:
    """Restarts the broker."""
    return RESTARTS[request.param]


def test_topics_records_and_configurations_are_there_again(driver: Driver, again: Again) -> None:
    create(driver, 5, "second", partitions=1)
    create(driver, 5, "gone")
    delete_topics(driver, 5, "gone")
    create_partitions(driver, 3, 5)
    alter_configs(driver, 1, ("retention.bytes", 0, "5000"))
    alter_configs(driver, 1, ("consumer.session.timeout.ms", 0, "50000"), kind=32, name="g")
    for _ in range(4):
        produce(driver, 8)
    delete_records(driver, 2, 2)
    before = topic_id(driver), driver.broker.state.cluster_id, fetch(driver, 12, 2).records
    again(driver)
    assert (topic_id(driver), driver.broker.state.cluster_id, fetch(driver, 12, 2).records) == before
    assert [(topic.name, len(topic.partitions)) for topic in driver.broker.state.topics] == [
        ("orders", 5),
        ("second", 1),
    ]
    assert (list_offsets(driver, 7, -2).offset, list_offsets(driver, 7, -1).offset) == (2, 4)
    described = {one.name: one.value for one in describe_configs(driver, 4).configs}
    assert described["retention.bytes"] == "5000"
    grouped = {one.name: one.value for one in describe_configs(driver, 4, 32, "g").configs}
    assert grouped["consumer.session.timeout.ms"] == "50000"
    assert produce(driver, 8).base_offset == 4


def test_groups_are_there_again_with_their_members_and_offsets(driver: Driver, again: Again) -> None:
    connection = join(driver, 3)
    driver.advance(0)
    member_id = driver.answers[connection].member_id
    own = {"group_id": "g", "generation_id": 1, "member_id": member_id}
    plan = {"member_id": member_id, "assignment": b"plan"}
    driver.ask(wire.SYNC_GROUP, 3, assignments=(plan,), **own)
    commit(driver, 8, 0, generation_id_or_member_epoch=1, member_id=member_id)
    commit(driver, 8, 2, group_id="other")
    again(driver)
    assert driver.ask(wire.HEARTBEAT, 0, **own).error_code == Error.NONE
    assert driver.ask(wire.SYNC_GROUP, 3, **own).assignment == b"plan"
    assert offset_fetch(driver, 7, 0, 2) == [(0, 10, 0), (2, -1, 0)]
    assert offset_fetch(driver, 7, 2, group="other") == [(2, 12, 0)]
    driver.ask(wire.DELETE_GROUPS, 1, groups_names=("other",))
    again(driver)
    assert [one.group_id for one in driver.ask(wire.LIST_GROUPS, 0).groups] == ["g"]


def test_the_time_between_counts_for_retention_and_sessions_begin_anew(driver: Driver) -> None:
    commit(driver, 8)
    week_ms = 7 * 24 * 3_600_000
    driver.now_ms += week_ms - 1_000_000
    driver.restart()
    driver.advance(300_000)
    assert offset_fetch(driver, 7) == [(0, 10, 0)]
    driver.advance(1_000_000)
    assert offset_fetch(driver, 7) == [(0, -1, 0)]


def test_a_restart_writes_the_markers_of_a_transaction_that_has_ended(driver: Driver, again: Again) -> None:
    assert create_partitions(driver, 2, 1_000) is Error.NONE
    producer = TransactionalProducer(driver)
    producer.add(3, *range(1_000))
    producer.add_offsets()
    assert (producer.commit_offset(), producer.produce(partition=999)) == (Error.NONE, Error.NONE)
    assert producer.end(commit=True) is Error.NONE
    assert offset_fetch(driver, 7) == [(0, -1, 0)], "the markers are being written"
    again(driver)
    assert producer.end() is Error.CONCURRENT_TRANSACTIONS
    driver.advance(0)
    log = driver.broker.state.topics.partition("orders", 999)
    assert log is not None
    assert (log.last_stable_offset, offset_fetch(driver, 7)) == (2, [(0, 5, 0)])
    assert producer.end() is Error.NONE, "it is repeated"
    again(driver)
    assert offset_fetch(driver, 7) == [(0, 5, 0)]


def test_fewer_brokers_than_before_share_what_there_is() -> None:
    driver = Driver(OPTIONS, {"orders": 3}, brokers=3)
    driver.restart(brokers=2)
    (topic,) = driver.ask(wire.METADATA, 4, topics=None).topics
    assert [one.leader_id for one in topic.partitions] == [1, 2, 1]


# the journal

CHANGES: list[Change] = [
    TopicCreated("orders", uuid.UUID(int=3), 0, ((1, 2), (2, 1)), {"retention.ms": "5"}),
    BatchAppended("orders", 1, b"\x00bytes\n"),
    TopicConfigured("orders", {}),
]


@pytest.mark.parametrize(
    "payload", [b"{}\n", b"[2,[],[]]\n", b'[1,[],[["Nothing"]]]\n', b"[1,[5],[]]\nab", b"\xff"]
)
def test_a_frame_that_means_nothing_is_refused(payload: bytes) -> None:
    import crc32c

    with pytest.raises(JournalError, match="is not understood"):
        decode(struct.pack(">II", len(payload), crc32c.crc32c(payload)) + payload)


def test_changes_that_do_not_fit_are_one_sentence() -> None:
    with pytest.raises(InputError, match="TopicConfigured does not fit"):
        make_broker({}, {}, journal=[TopicConfigured("none", {})])


# the folder


def written(directory: DataDirectory) -> list[Change]:
    """Without the positions of batches."""
    return [one._replace(position=-1) if isinstance(one, BatchAppended) else one for one in directory.read()]


def test_a_folder_is_used_by_one_process_at_a_time(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path, pytest.fail)
    with pytest.raises(InputError, match="another process serves from it"):
        DataDirectory(tmp_path, pytest.fail)
    first.close()
    DataDirectory(tmp_path, pytest.fail).close()


def test_a_restart_goes_on_with_the_journal_behind_its_whole_part(tmp_path: Path) -> None:
    def restarted(topics: dict[str, int]) -> tuple[BrokerJournal, Broker]:
        journal = BrokerJournal(tmp_path, lambda: pytest.fail("it can be written"), said.append)
        return journal, journal.restart(
            lambda changes, now_ms: make_broker({}, topics, journal=changes, now_ms=now_ms), 0
        )

    said: list[str] = []
    journal, first = restarted({"orders": 3})
    assert journal.add([BatchAppended("orders", 1, placed_at(marker_batch(1, 0, True, 0), 0, 0))])
    journal.close()
    before = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(before + b"torn")
    journal, second = restarted({"orders": 3, "more": 1})
    of_second = list(second.snapshot())
    journal.close()
    after = (tmp_path / "journal").read_bytes()
    assert after.startswith(before), "nothing is written a second time"
    change = decode(after)[0][len(decode(before)[0])]
    assert isinstance(change, TopicCreated)
    assert change.name == "more"
    journal, third = restarted({})
    assert list(third.snapshot()) == of_second
    journal.close()
    assert (tmp_path / "journal").read_bytes() == after
    assert third.state.cluster_id == first.state.cluster_id
    assert len(said) == 1


def test_a_restart_writes_the_journal_anew_if_that_makes_it_much_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_directory, "_COMPACT_AFTER_BYTES", 1_000)
    directory = DataDirectory(tmp_path, pytest.fail)
    directory.rewrite(CHANGES[:1])
    for _ in range(20):
        directory.append(CHANGES[2:])
    directory.close()
    journal = BrokerJournal(tmp_path, lambda: pytest.fail("it can be written"), pytest.fail)
    journal.restart(lambda changes, now_ms: make_broker({}, {}, brokers=2, journal=changes), 0)
    journal.close()
    (*_, last) = written(DataDirectory(tmp_path, pytest.fail))
    assert (tmp_path / "journal").stat().st_size < 1_000
    assert last == TopicCreated("orders", uuid.UUID(int=3), 0, ((1, 2), (2, 1)), {})


def test_a_file_that_is_no_journal_is_refused_and_not_cut_off(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b"some notes")
    with pytest.raises(InputError, match="journal: no whole frame is in its 10 bytes"):
        written(DataDirectory(tmp_path, pytest.fail))
    assert (tmp_path / "journal").read_bytes() == b"some notes"


GARBAGE = (
    b"\0",
    bytes(8),
    bytes(4096),
    b"\xff" * 50,
    b"\0\0\0\x03\0\0\0\0abc",
    b"[1,[" * 20,
    bytes(range(256)),
)


def test_a_tail_that_is_no_whole_frame_is_cut_off_with_one_line(tmp_path: Path) -> None:
    first, place = frame(CHANGES[:1], BEGINNING)[::2]
    second = encode(CHANGES[1:], place)
    tails = [second[:end] for end in range(1, len(second))] + list(GARBAGE)
    tails += [second[:20] + one for one in GARBAGE]
    for tail in tails:
        (tmp_path / "journal").write_bytes(first + tail)
        said: list[str] = []
        directory = DataDirectory(tmp_path, said.append)
        assert written(directory) == CHANGES[:1], tail
        (line,) = said
        assert line.endswith(
            f"journal: the last {len(tail)} bytes are no whole frame and are cut off, {len(first)} are kept"
        )
        directory.close()


# the process


def committed(client: RawClient, group: str) -> int:
    topic = {"name": "orders", "partition_indexes": (0,)}
    answer = client.ask(wire.OFFSET_FETCH, 7, group_id=group, topics=(topic,))
    return int(answer.topics[0].partitions[0].committed_offset)


def commit_one(client: RawClient, offset: int) -> None:
    assert try_commit(client, offset) is Error.NONE


def try_commit(client: RawClient, offset: int) -> Error:
    partition = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
    topic = {"name": "orders", "partitions": (partition,)}
    fields: dict[str, Any] = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": ""}
    answer = client.ask(wire.OFFSET_COMMIT, 8, topics=(topic,), **fields)
    return Error(answer.topics[0].partitions[0].error_code)


@pytest.mark.slow
def test_a_commit_that_cannot_be_kept_is_refused_and_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # its files of bytecode would be cut as well
    data = ("--data", str(tmp_path / "data"))
    answered = 0
    with serving(*data, "--topic", "orders:2") as (process, address), RawClient(address) as client:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (10_000, 10_000))
        for offset in range(1, 1_000):
            error = try_commit(client, offset)
            if error is not Error.NONE:
                break
            answered = offset
        assert error is Error.NOT_COORDINATOR
        _, log = outcome_of(process, DEADLINE_S)
        assert process.returncode == ExitCode.OUTPUT
        assert log.splitlines()[-1] == (
            f"groupstorm: --data {tmp_path / 'data'}: cannot be written: File too large: "
            "the broker has ended; the journal holds all that was answered"
        )
    assert 0 < answered < 900
    with serving(*data) as (_, address), RawClient(address) as client:
        assert committed(client, "g") == answered


@pytest.mark.slow
def test_without_it_nothing_is_written(tmp_path: Path) -> None:
    with serving("--topic", "orders:2", folder=tmp_path) as (process, address):
        with RawClient(address) as client:
            commit_one(client, 1)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=DEADLINE_S)
    # Hypothesis, where it is installed, is imported by a library that kio uses, and makes its own folder
    assert [path for path in tmp_path.iterdir() if path.name != ".hypothesis"] == []
