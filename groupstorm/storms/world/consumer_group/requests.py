"""Background commits of a member of a consumer group, and what disturbs its heartbeats."""

from __future__ import annotations

from typing import Protocol

from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.periodic_requests import PeriodicRequests, ProcessTimer, Sender


class Heartbeats(Protocol):
    """The member's heartbeats (`QuietHeartbeats`)."""

    @property
    def is_quiet(self) -> bool:
        """Whether they are computed at present."""
        ...

    def wake(self) -> None:
        """Let them be sent from now on."""
        ...


class HeartbeatingProcess(Sender, Protocol):
    """The process that sends them."""

    def next_network_run_us(self) -> int:
        """When the client's network thread runs next."""
        ...

    def runs_again(self) -> None:
        """The process stood still, or nothing came through."""
        ...


class ConsumerGroupRequests(PeriodicRequests):
    """The background commits of one process. Its heartbeats are the member's own: whatever may disturb them
    ends their being computed."""

    __slots__ = ("_own_heartbeats", "_process")

    def __init__(
        self, environment: Environment, process: HeartbeatingProcess, heartbeats: Heartbeats
    ) -> None:
        no_timer = ProcessTimer(None, environment.seed, process.config.client_id, 0)
        super().__init__(
            environment.network,
            environment.records,
            environment.resting,
            no_timer,
            environment.sends_heartbeats,
            process,
        )
        self._process = process
        self._own_heartbeats = heartbeats

    def follow_membership(self) -> None:
        """The member itself knows when it sends heartbeats."""

    def stop(self) -> None:
        self.wake_heartbeats()
        self._resting.remove(self._membership.generation.member_id)
        super().stop()

    def restart(self) -> None:
        self._process.runs_again()
        self.restart_commits()

    def next_heartbeat_us(self) -> int:
        self.wake_heartbeats()
        return self._process.next_network_run_us()

    def _heartbeats_rest(self) -> bool:
        if not self._own_heartbeats.is_quiet:
            return False
        member_id = self._membership.generation.member_id
        self._resting.add(member_id, self)
        self._broker.suspend_session(member_id)
        return True

    def wake_heartbeats(self) -> None:
        self._own_heartbeats.wake()
