"""A membership that a test drives result by result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.assignors.registry import get
from groupstorm.assignors.userdata import (
    TopicPartition,
    encode_assignment,
)
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.membership import Membership
from groupstorm.clients.operations import (
    AwaitPoll,
    CommitPositions,
    Operation,
    Send,
)
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    JoinGroup,
    JoinGroupResponse,
    SyncGroup,
    SyncGroupResponse,
)
from groupstorm.trace.events import member as events

T0, T1, T2 = (TopicPartition("t", partition) for partition in range(3))
#: No test needs more: a member that is not done by then never is.
ANSWERS_MAX = 100
JOINED = JoinGroupResponse(Error.NONE, 1, "c-1", "other", "consumer", "cooperative-sticky")


def synced(*partitions: TopicPartition) -> SyncGroupResponse:
    return SyncGroupResponse(Error.NONE, "consumer", "cooperative-sticky", encode_assignment(partitions))


class ScriptedConsumer:
    """A membership without a driver. `operation`: the operation that it waits for."""

    def __init__(self, strategy: Sequence[str] = ("cooperative-sticky",), **settings: Any) -> None:
        config = ConsumerConfig("g", "c", ("t",), partition_assignment_strategy=tuple(strategy), **settings)
        self.strategy = strategy[0]
        self.emitted: list[events.Event] = []
        self.topics = {"t": 3}
        self.membership = Membership(
            config, [get(name) for name in strategy], lambda: self.topics, self.emitted.append
        )
        self._answers = 0
        self._flow = self.membership.run()
        self.operation: Operation | None = next(self._flow)

    def answer(self, result: Any = None) -> Operation | None:
        self._answers += 1
        assert self._answers < ANSWERS_MAX, f"the member asks for ever, now for {self.operation}"
        try:
            self.operation = self._flow.send(result)
        except StopIteration:
            self.operation = None
        return self.operation

    def close(self) -> Operation | None:
        self._flow = self.membership.close()
        return self.answer()

    def join(self, *partitions: TopicPartition) -> None:
        """Go from FindCoordinator or AwaitPoll to the next AwaitPoll with an assignment."""
        while not isinstance(self.operation, AwaitPoll) or self.membership.rejoin_needed:
            match self.operation:
                case Send(JoinGroup()):
                    self.answer(JOINED._replace(protocol=self.strategy))
                case Send(SyncGroup()):
                    self.answer(synced(*partitions)._replace(protocol=self.strategy))
                case CommitPositions():
                    self.answer(Error.NONE)
                case _:
                    self.answer()

    @property
    def request(self) -> Any:
        assert isinstance(self.operation, Send)
        return self.operation.request

    def causes(self) -> list[str]:
        return [event.cause for event in self.emitted if isinstance(event, events.RejoinRequested)]


def to_join(consumer: ScriptedConsumer) -> JoinGroup:
    """The next JoinGroup; commits until then are accepted."""
    while not (isinstance(consumer.operation, Send) and isinstance(consumer.request, JoinGroup)):
        consumer.answer(Error.NONE)
    request = consumer.request
    assert isinstance(request, JoinGroup)
    return request
