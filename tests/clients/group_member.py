"""A member of a consumer group and the little that its tests need of a driver."""

from __future__ import annotations

from typing import Any, Self
from uuid import UUID

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.member import ConsumerGroupMember
from groupstorm.clients.operations import Disconnected, GroupOperation, HeartbeatResponse, SendHeartbeat
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResponse

T, U = UUID(int=1), UUID(int=2)
INTERVAL_MS = 5_000


class Driven:
    """``did``: the operations since the last look. Time moves with `advance` alone."""

    #: The requests that its heartbeats are.
    request: type[Any] = ConsumerGroupHeartbeat
    topics = frozenset({"t"})

    def __init__(self, **config: Any) -> None:
        self.now_ms = 1_000
        self.names = {T: "t", U: "u"}
        self.has_positions = True
        self.did: list[GroupOperation] = []
        self._in_flight: list[SendHeartbeat] = []
        settings = ConsumerConfig("g", "c", ("t",), **({"enable_auto_commit": False} | config))
        self.member = self.new_member(settings)
        self.member.coordinator_found()

    def new_member(self, settings: ConsumerConfig) -> HeartbeatingMember[Any]:
        return ConsumerGroupMember(settings, "m", lambda: self.names, lambda: self.has_positions, self.now_ms)

    @classmethod
    def joining(cls, **config: Any) -> Self:
        """It has sent its first heartbeat."""
        driven = cls(**config)
        driven.member.subscribe(cls.topics)
        driven.poll()
        driven.step()
        return driven

    @classmethod
    def stable(cls, **config: Any) -> Self:
        """It owns t-0 and t-1 at epoch 1, and its last heartbeat has just been answered."""
        driven = cls.joining(**config)
        driven.answer(1, {T: (0, 1)})
        driven.reconcile()
        driven.step()
        driven.answer(1)
        driven.look()
        return driven

    def look(self) -> list[GroupOperation]:
        """The member's operations since the last look."""
        self._take()
        did, self.did = self.did, []
        return did

    def sent(self) -> list[Any]:
        """The heartbeats since the last look."""
        requests = [one.request for one in self.look() if isinstance(one, SendHeartbeat)]
        assert all(isinstance(request, self.request) for request in requests)
        return requests

    def advance(self, ms: int) -> None:
        self.now_ms += ms

    def step(self) -> int:
        wait_ms = self.member.step(self.now_ms)
        self._take()
        return wait_ms

    def poll(self) -> None:
        self.member.poll(self.now_ms)
        self._take()

    def heartbeat(self) -> Any:
        """The one that leaves when the interval is over."""
        self.look()
        self.advance(INTERVAL_MS)
        self.poll()
        self.step()
        [request] = self.sent()
        return request

    def callback(self, failed: bool = False) -> None:
        self.member.callback_begins()
        self.member.callback_ended(failed)
        self._take()

    def reconcile(self) -> None:
        """Poll, and run the only callback."""
        self.poll()
        self.callback()

    def answer(
        self, epoch: int, assignment: dict[UUID, tuple[int, ...]] | None = None, interval: int = INTERVAL_MS
    ) -> None:
        self.answered(ConsumerGroupHeartbeatResponse(Error.NONE, "m", epoch, interval, assignment))

    def refuse(self, error: Error) -> None:
        self.answered(ConsumerGroupHeartbeatResponse(error))

    def disconnect(self) -> None:
        self.answered(Disconnected())

    def answered(self, response: HeartbeatResponse | Disconnected) -> None:
        """To the oldest heartbeat under way."""
        self._take()
        self.member.answered(self._in_flight.pop(0), response, self.now_ms)
        self._take()

    def _take(self) -> None:
        for operation in self.member.operations():
            self.did.append(operation)
            if isinstance(operation, SendHeartbeat):
                self._in_flight.append(operation)
