"""Clients of a broker that will be killed, and what the broker has acknowledged to each."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.kills.requests import begin_transaction, end_transaction, send
from tests.broker.streams_members import streams_beat, streams_join
from tests.broker.wire import RawClient, milliseconds

Address = tuple[str, int]
TOPIC = "orders"
#: The partitions: of the producer without transactions, and the two of the transactions.
PLAIN, FIRST, SECOND = 0, 1, 2


@dataclass
class Acknowledged:
    """Offsets that clients were told, over all lives of one broker. Each value is written by one thread."""

    records: list[tuple[int, bytes]] = field(default_factory=list)
    """Offset and value of each record of partition 0."""
    commits: dict[str, int] = field(default_factory=dict)
    """Group -> the highest offset whose commit was acknowledged."""
    tried_commits: dict[str, int] = field(default_factory=dict)
    """Group -> the highest offset whose commit was sent."""
    generation: int = 0
    group_epoch: int = 0
    """Of a streams group."""
    epoch: int = -1
    producer_id: int = -1
    committed: list[bytes] = field(default_factory=list)
    """The values of acknowledged transactions; each was written to both partitions."""
    aborted: list[bytes] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    problems: list[AssertionError] = field(default_factory=list)
    """What a client got and must not get."""

    @property
    def has_all_kinds(self) -> bool:
        """Whether there is something of each kind that a restart could lose."""
        kinds = (self.records, self.commits, self.committed, self.aborted, self.generation, self.group_epoch)
        return all(kinds)


def under_load(address: Address, told: Acknowledged) -> list[threading.Thread]:
    """Start the clients. Each ends as soon as its connection does."""
    clients: tuple[Callable[[RawClient, Acknowledged], None], ...] = (produce, commit, join, count, transact)
    threads = [threading.Thread(target=_until_the_end, args=(one, address, told)) for one in clients]
    for thread in threads:
        thread.start()
    return threads


def _until_the_end(
    act: Callable[[RawClient, Acknowledged], None], address: Address, told: Acknowledged
) -> None:
    try:
        with RawClient(address) as client:
            while True:
                act(client, told)
    except ConnectionError:
        return  # the broker was killed
    except AssertionError as problem:
        told.problems.append(problem)


def produce(client: RawClient, told: Acknowledged) -> None:
    """One record with acks=all."""
    value = b"record-%d" % next(told.numbers)
    answer = send(client, TOPIC, PLAIN, wire.batch([value]))
    assert answer.error_code == Error.NONE, answer
    told.records.append((answer.base_offset, value))


def commit(client: RawClient, told: Acknowledged) -> None:
    """An offset of a group without members."""
    group = "committing"
    offset = told.tried_commits.get(group, 0) + 1
    told.tried_commits[group] = offset
    partition = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
    topic = {"name": TOPIC, "partitions": (partition,)}
    fields: dict[str, Any] = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
    answer = client.ask(wire.OFFSET_COMMIT, 8, topics=(topic,), **fields)
    assert answer.topics[0].partitions[0].error_code == Error.NONE
    told.commits[group] = offset


def join(client: RawClient, told: Acknowledged) -> None:
    """A static member joins, gets its assignment and leaves. As a static one it takes the place of the member
    that an earlier life of the broker has left in the group."""
    protocol = {"name": "range", "metadata": b"m"}
    joined = client.ask(
        wire.JOIN_GROUP,
        5,
        group_id="joining",
        session_timeout=milliseconds(6_000),
        rebalance_timeout=milliseconds(6_000),
        member_id="",
        group_instance_id="static",
        protocol_type="consumer",
        protocols=(protocol,),
    )
    assert joined.error_code == Error.NONE, joined
    own = {"member_id": joined.member_id, "group_instance_id": "static"}
    plan = {"member_id": joined.member_id, "assignment": b"all"}
    in_generation = {"group_id": "joining", "generation_id": joined.generation_id}
    synced = client.ask(wire.SYNC_GROUP, 3, assignments=(plan,), **in_generation, **own)
    assert synced.error_code == Error.NONE, synced
    # the assignment's record is what a restart goes on from
    assert joined.generation_id >= told.generation, (joined.generation_id, told.generation)
    told.generation = joined.generation_id
    left = client.ask(wire.LEAVE_GROUP, 3, group_id="joining", members=(own,))
    assert left.members[0].error_code == Error.NONE, left


def count(client: RawClient, told: Acknowledged) -> None:
    """A member joins a streams group, whose changelog is made, and leaves: both count the group epoch up."""
    member = f"member-{next(told.numbers)}"
    joined = client.ask(wire.STREAMS_GROUP_HEARTBEAT, 1, **streams_join("counting", TOPIC, member=member))
    assert joined.error_code == Error.NONE, joined
    (group,) = client.ask(wire.STREAMS_GROUP_DESCRIBE, 1, group_ids=("counting",)).groups
    assert group.group_epoch > told.group_epoch, (group.group_epoch, told.group_epoch)
    told.group_epoch = group.group_epoch
    assert [one.name for one in group.topology.subtopologies[0].state_changelog_topics]
    left = client.ask(wire.STREAMS_GROUP_HEARTBEAT, 1, **streams_beat("counting", member, -1))
    assert left.error_code == Error.NONE, left


def transact(client: RawClient, told: Acknowledged) -> None:
    """One transaction over two partitions and a group's offset, committed or, every third one, aborted."""
    producer = begin_transaction(client, "t", TOPIC, (FIRST, SECOND))
    if producer is None:
        return
    assert producer > (told.producer_id, told.epoch), "epochs never go back"
    told.producer_id, told.epoch = producer
    number = next(told.numbers)
    value = b"transaction-%d" % number
    for partition in (FIRST, SECOND):
        records = wire.batch([value], producer_id=producer[0], epoch=producer[1], sequence=0, attributes=0x10)
        assert send(client, TOPIC, partition, records, "t").error_code == Error.NONE
    commits = number % 3 != 0
    end_transaction(client, "t", producer, commits)
    (told.committed if commits else told.aborted).append(value)
