"""A coordinator of share groups (KIP-932) whose clock, persister and log the test holds in its hands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.messages import (
    ShareGroupHeartbeat,
    ShareGroupHeartbeatResponse,
)
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.coordinator.topics import Topic
from groupstorm.turns import Turns

FOO, BAR = UUID(int=1), UUID(int=2)


class Persister:
    """Answers with ``error``; None: never."""

    def __init__(self) -> None:
        self.error: Error | None = Error.NONE
        self.initialized: list[Initialization] = []
        self.deleted: list[tuple[str, dict[UUID, list[int]]]] = []

    def initialize(self, group: str, asked: Initialization, /) -> Turns[Error | None]:
        assert group == "g"
        self.initialized.append(asked)
        yield 1
        return self.error

    def delete(self, group: str, partitions: Mapping[UUID, Iterable[int]], /) -> Turns[Error | None]:
        self.deleted.append((group, {topic: sorted(numbers) for topic, numbers in partitions.items()}))
        yield 1
        return self.error


class Share:
    """A coordinator of share groups with two topics, whose clock the test sets."""

    def __init__(self, kafka: Compatibility = Compatibility.REPAIRED_4_4_0) -> None:
        self.persister = Persister()
        self.append_error: Error | None = None
        self.records: list[Record] = []
        config = CoordinatorConfig.from_mapping(
            {"groupstorm.compatibility": kafka, "group.share.assignment.interval.ms": 0}
        )
        self.coordinator = GroupCoordinator(
            config, member_ids=str, append=self._append, whole_records=True, persister=self.persister
        )
        self.now_ms = 1_000
        self.coordinator.update_topics({"foo": Topic(FOO, 2), "bar": Topic(BAR, 1)}, (), self.now_ms)

    def _append(self, records: Any, cause: AppendCause) -> tuple[int, Error | None]:
        del cause
        if self.append_error is None:
            self.records += records
        return 0, self.append_error

    def ask(self, request: Any) -> Any:
        """The answer to a request; what follows at the same instant follows."""
        replies = self.coordinator.handle(request, self.now_ms, "it").replies
        self.coordinator.fire(self.now_ms)
        return replies[0][1] if replies else None

    def beat(self, member: str, epoch: int, *topics: str, **fields: Any) -> ShareGroupHeartbeatResponse:
        answer = self.ask(ShareGroupHeartbeat("g", member, epoch, topics=topics or None, **fields))
        assert isinstance(answer, ShareGroupHeartbeatResponse)
        return answer

    @property
    def group(self) -> ShareGroup:
        group = self.coordinator.group("g")
        assert isinstance(group, ShareGroup)
        return group
