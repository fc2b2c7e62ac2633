"""The commits of an application by hand (commitSync), after each batch or after each record.

They are computed, also in exact mode: everything that an application has finished is committed as long as the
coordinator accepts its commits. Each takes a round trip, which is part of the time that records take
(`RecordTimes`). What a poll() that matters finds finished is committed by a request, as the client commits
before it joins, and on close.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.positions import Records
from groupstorm.storms.scenario.commit_settings import RECORD
from groupstorm.storms.world.connection import Network
from groupstorm.storms.world.periodic_requests.resting import RestingMembers
from groupstorm.storms.world.periodic_requests.sender import Sender


class HandCommits:
    """The commits of one process while it polls."""

    __slots__ = (
        "_broker",
        "_by_record",
        "_clock",
        "_counted",
        "_looks",
        "_member_id",
        "_records",
        "_resting",
        "_sender",
    )

    def __init__(self, network: Network, records: Records, resting: RestingMembers, sender: Sender) -> None:
        self._clock = network.clock
        self._broker = network.broker
        self._records = records
        self._resting = resting
        self._sender = sender
        self._by_record = sender.commits == RECORD
        #: The member that commits; None: it does not.
        self._member_id: str | None = None
        #: How many looks at the logs are counted, and up to which positions.
        self._looks = 0
        self._counted: dict[TopicPartition, int] = {}

    def start(self) -> None:
        """The application commits from now on, if the coordinator accepts that."""
        generation = self._sender.membership.generation
        if self._member_id is None and self._broker.has_member(generation):
            self._member_id = generation.member_id
            self._looks = self._sender.work.loop.looks(self._clock.now_us)
            self._resting.add_committing(self._member_id, self.stop)

    def stop(self) -> None:
        """The application polls no more, or the coordinator refuses its commits from now on."""
        if self._member_id is not None:
            self.settle()
            self._resting.remove_committing(self._member_id)
            self._member_id = None

    def begun(self, positions: Mapping[TopicPartition, int]) -> None:
        """The application begins to process these partitions there."""
        self._counted.update(positions)

    def settle(self) -> None:
        """Let all commits until now count."""
        if self._member_id is None:
            return
        now_us, loop = self._clock.now_us, self._sender.work.loop
        positions = loop.positions(now_us) if self._by_record else loop.finished_positions(now_us)
        looks = loop.looks(now_us)
        self._broker.count(("OffsetCommit", None), self._commits(positions, looks - self._looks))
        self._looks, self._counted = looks, positions
        self._records.commit(positions)

    def _commits(self, positions: dict[TopicPartition, int], looks: int) -> int:
        """Count the commits that bring the group's offsets to these positions, in so many looks at the logs.

        A batch has at least one record, and at most as many as a poll() returns.
        """
        counted = self._counted
        records = sum([max(0, offset - counted.get(one, offset)) for one, offset in positions.items()])
        if self._by_record:
            return records
        return max(min(looks, records), -(-records // self._sender.work.loop.poll_records))
