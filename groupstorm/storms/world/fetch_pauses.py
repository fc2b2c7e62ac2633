"""Partitions that a process owns and fetches nothing from for a while (KafkaConsumer.pause and resume)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.storms.records.positions import Work, names
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.group_member import GroupMember
from groupstorm.trace.events import member as events


class FetchingProcess(Protocol):
    """The process whose partitions they are."""

    clock: Clock
    config: ConsumerConfig
    name: str
    work: Work

    @property
    def membership(self) -> GroupMember: ...

    def emit(self, event: events.Event) -> None: ...


def pause_fetching(process: FetchingProcess, partitions: Iterable[TopicPartition]) -> None:
    """Hand out nothing of these. Partitions that the process has not begun are left alone."""
    begun = tuple([tp for tp in partitions if tp in process.work])
    if begun:
        positions = process.work.stop(begun, process.clock.now_us)
        group, member_id = process.config.group_id, process.membership.generation.member_id
        process.emit(events.PartitionsPaused(group, process.name, member_id, names(begun), positions))


def resume_fetching(process: FetchingProcess, partitions: Iterable[TopicPartition]) -> bool:
    """Hand out records of those that are paused. Returns whether there are any."""
    paused = tuple([tp for tp in partitions if process.work.stands_still(tp)])
    if paused:
        positions = process.work.resume_some(paused, process.clock.now_us)
        group, member_id = process.config.group_id, process.membership.generation.member_id
        process.emit(events.PartitionsResumed(group, process.name, member_id, names(paused), positions))
    return bool(paused)
