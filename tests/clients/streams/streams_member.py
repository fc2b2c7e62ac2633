"""A thread in a streams group and the little that its tests need of a driver.

Its tasks, 0_0 to 0_5, read topic in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groupstorm.assignors.streams.groups import Task
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.clients.streams.group_member import StreamsGroupMember, ThreadFacts
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeat, StreamsGroupHeartbeatResponse
from tests.clients.group_member import INTERVAL_MS, Driven
from tests.clients.streams.streams_host import TOPOLOGY

OFFSETS_MS = 60_000


class DrivenThread(Driven):
    """``offsets`` and ``ends`` are what the thread's tasks report now."""

    member: StreamsGroupMember
    request = StreamsGroupHeartbeat
    topics = frozenset({"in"})

    def __init__(self, **config: Any) -> None:
        super().__init__(**({"group_protocol": GroupProtocol.STREAMS} | config))

    def new_member(self, settings: ConsumerConfig) -> StreamsGroupMember:
        self.offsets: dict[Task, int] = {}
        self.ends: dict[Task, int] = {}
        facts = ThreadFacts(
            "process-1",
            TOPOLOGY,
            lambda: dict(self.offsets),
            lambda: dict(self.ends),
            ("host", 8080),
            (("zone", "z1"),),
        )
        return StreamsGroupMember(settings, "m", facts, self.now_ms)

    @classmethod
    def thread(cls, active: Iterable[int] = (0, 1), **config: Any) -> DrivenThread:
        """It runs these tasks at epoch 2, and its last heartbeat has just been answered."""
        driven = cls.joining(**config)
        driven.tasks(2, active)
        driven.reconcile()
        driven.step()
        driven.told(2)
        driven.look()
        return driven

    def reconcile(self) -> None:
        """A step of the network thread begins it; then poll, and run the only callback."""
        self.step()
        super().reconcile()

    def tasks(self, epoch: int, active: Iterable[int]) -> None:
        """The answer tells these tasks."""
        told = (("0", tuple(active)),)
        self.answered(self._answer(epoch)._replace(active=told, standby=(), warmup=()))

    def told(self, epoch: int) -> None:
        """The answer tells no tasks."""
        self.answered(self._answer(epoch))

    def _answer(self, epoch: int) -> StreamsGroupHeartbeatResponse:
        return StreamsGroupHeartbeatResponse(
            Error.NONE, "m", epoch, INTERVAL_MS, task_offset_interval_ms=OFFSETS_MS
        )
