"""The process that sends periodic requests, as they see it."""

from __future__ import annotations

from typing import Protocol

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.errors import Error
from groupstorm.storms.records.positions import Work
from groupstorm.storms.world.client_clock import ClientClock
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.group_member import GroupMember


class Sender(Protocol):
    """The process that sends the requests. Its parts stay the same as long as it lives.

    ``commits``: who commits, a value of the setting of that name.
    """

    commits: str
    config: ConsumerConfig
    connection: VirtualConnection
    client_clock: ClientClock
    work: Work

    @property
    def membership(self) -> GroupMember: ...

    @property
    def settled(self) -> bool:
        """Whether it has joined and nothing is under way."""
        ...

    def reachable(self) -> bool:
        """Whether it can send heartbeats now."""
        ...

    def receives(self) -> bool:
        """Whether it can receive a response now."""
        ...

    def work_share(self) -> tuple[int, int]:
        """Return the application's share of time at work, in `SHARES`, and the microseconds between polls."""
        ...

    def heartbeat_answered(self, error: Error, sent: Generation) -> None:
        """A heartbeat was answered that had been sent in that generation."""
        ...

    def nudge(self) -> None:
        """A response may have made a rejoin necessary: the application notices at its next poll()."""
        ...
