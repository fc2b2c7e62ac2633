"""What the parts of a consumer over TCP see of its membership, whichever group protocol it speaks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.errors import Error


class MemberStatus(Protocol):
    """A member of a group."""

    config: ConsumerConfig

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        """The partitions that the application may read, in order."""
        ...

    @property
    def generation(self) -> Generation:
        """The generation, or the member epoch, for requests and events; -1: not in the group."""
        ...

    @property
    def failure(self) -> str | None:
        """The fatal error by Kafka's name, or the exception that poll() throws; None while it runs."""
        ...

    @property
    def may_commit(self) -> bool:
        """Whether the coordinator takes commits of this member now."""
        ...

    @property
    def is_joining(self) -> bool:
        """Whether a commit has to wait for the generation that the member is joining."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether the member has what its group assigns to it, and nothing is under way."""
        ...

    @property
    def is_leader(self) -> bool: ...

    @property
    def assigned_topic_ids(self) -> Collection[UUID]:
        """The topics of the assignment, if the broker says which they are."""
        ...

    def commit_answered(self, error: Error, sent: Generation) -> None:
        """``error``: the first one of the response. ``sent``: the generation in the request."""
        ...

    def metadata_refreshed(self) -> None:
        """New topic metadata has arrived."""
        ...
