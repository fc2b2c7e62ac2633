"""The members of the group: the processes of a run by name, and questions to all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.messages import JoinGroup, SyncGroup
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.storms.records.positions import Records, Work, caught_up
from groupstorm.storms.records.rates import ProcessingRates
from groupstorm.storms.runs.scenario_host import ConsumerProcess
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.disturbances import ConnectionFaults, Pauses
from groupstorm.storms.world.group_member import GroupMember
from groupstorm.storms.world.periodic_requests.requests import PeriodicRequests
from groupstorm.trace.events.group_states import GroupState

#: The states of consumer and streams groups have these names, too.
_SETTLED_STATES: frozenset[str] = frozenset({GroupState.STABLE, GroupState.EMPTY})


class MemberProcess(ConsumerProcess, Protocol):
    """One incarnation of a process that is a member of the group."""

    work: Work
    config: ConsumerConfig
    connection: VirtualConnection
    faults: ConnectionFaults
    periodic_requests: PeriodicRequests
    rates: ProcessingRates

    @property
    def pauses(self) -> Pauses: ...

    @property
    def membership(self) -> GroupMember: ...

    @property
    def settled(self) -> bool:
        """Whether it has joined and nothing is under way."""
        ...

    def metadata_may_have_changed(self) -> None: ...

    def fetches_unknown_partitions(self) -> None:
        """The process owns partitions that do not exist any more."""
        ...


class Members:
    """``by_name`` are the processes that run; a later incarnation takes a name over from an earlier one."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self.by_name: dict[str, MemberProcess] = {}

    def add(self, process: MemberProcess) -> None:
        self.by_name[process.name] = process

    def remove(self, process: MemberProcess) -> None:
        """The process is gone; its name may belong to a later one by now."""
        if self.by_name.get(process.name) is process:
            del self.by_name[process.name]

    def committed(self, partitions: tuple[TopicPartition, ...]) -> tuple[int, ...]:
        """The group's committed offsets, background commits included; -1 if there is none."""
        holders, committed = self._records.holders, self._records.committed
        for partition in partitions:
            if partition in holders:
                for work in holders[partition]:
                    holder = self.by_name.get(work.owner)
                    if holder is not None:
                        holder.periodic_requests.settle_commits()
        return tuple([committed.get(one, -1) for one in partitions])

    def caught_up(self, partitions: tuple[TopicPartition, ...], now_us: int) -> bool:
        """Whether all records of these partitions have been processed."""
        return caught_up(
            self._records, [process.work for process in self.by_name.values()], partitions, now_us
        )

    def settled_in(self, group: ClassicGroup | ConsumerGroup | StreamsGroup | None) -> bool:
        """Whether the group is Stable or Empty, made of exactly the living, with nothing under way."""
        living = [process for process in self.by_name.values() if process.started]
        if group is None:
            return not living
        if group.state not in _SETTLED_STATES or set(group.members.keys()) != {
            process.membership.generation.member_id for process in living
        }:
            return False
        return all(process.settled for process in living)

    def has(self, name: str, member_id: str) -> bool:
        """Whether the process of this name is the member of this id."""
        process = self.by_name.get(name)
        return process is not None and process.membership.generation.member_id == member_id

    @property
    def unanswered(self) -> Sequence[str]:
        """Names of the processes whose JoinGroup or SyncGroup is parked; other requests wait for a write."""
        parked = {process.name: process.connection.parked for process in self.by_name.values()}
        return [
            name
            for name, request in parked.items()
            if request is not None and isinstance(request.request, JoinGroup | SyncGroup)
        ]
