"""Background commits of a member of a consumer group, and what disturbs its heartbeats."""

from __future__ import annotations

from typing import Protocol

from groupstorm.coordinator.simulated import IN_TOUCH
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
            environment.sessions,
            no_timer,
            environment.sends_heartbeats,
            process,
        )
        self._process = process
        self._own_heartbeats = heartbeats

    def follow_membership(self) -> None:
        """The member itself knows when it sends heartbeats."""

    def stop(self) -> None:
        self._own_heartbeats.wake()
        super().stop()

    def restart(self) -> None:
        self._process.runs_again()
        self.restart_commits()

    def next_heartbeat_us(self) -> int:
        self._own_heartbeats.wake()
        return self._process.next_network_run_us()

    def last_contact_ms(self, deadline_ms: int) -> int | None:
        """A heartbeat that is sent restarts the session; the coordinator need not ask about those."""
        return IN_TOUCH if self._own_heartbeats.is_quiet else None

    def silent_since(self) -> int | None:
        return None

    def make_next_real(self, generation_over: bool) -> None:
        self._own_heartbeats.wake()
        super().make_next_real(generation_over)
