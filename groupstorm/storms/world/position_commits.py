"""The commit for which a member waits: before a rebalance and on close (commitSync)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import OffsetCommitResponse, Response
from groupstorm.storms.records.positions import Work
from groupstorm.storms.world.commit_requests import commit_request
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.group_member import GroupMember
from groupstorm.storms.world.periodic_requests import PeriodicRequests
from groupstorm.storms.world.response_errors import first_error

_DISCONNECTED: Final = Disconnected()


class CommittingProcess(Protocol):
    """What the commit needs of its process. Its parts stay the same as long as it lives."""

    config: ConsumerConfig
    connection: VirtualConnection
    periodic_requests: PeriodicRequests
    work: Work

    @property
    def membership(self) -> GroupMember: ...


class PositionCommits:
    """Commits what the application of one process has processed."""

    __slots__ = ("_environment", "_process")

    def __init__(self, environment: Environment, process: CommittingProcess) -> None:
        self._environment = environment
        self._process = process

    def send(
        self,
        positions: Mapping[TopicPartition, int],
        sent: Generation,
        then: Callable[[Error | Disconnected], None],
    ) -> None:
        """Commit as a member of the generation ``sent``; ``then`` gets the error of the response, or
        `Disconnected`."""
        process = self._process
        process.connection.send(
            commit_request(process.config, positions, sent),
            process.config.request_timeout_ms,
            partial(self._answered, positions, sent, then),
        )

    def _answered(
        self,
        positions: Mapping[TopicPartition, int],
        sent: Generation,
        then: Callable[[Error | Disconnected], None],
        response: Response | Disconnected,
    ) -> None:
        process = self._process
        if not isinstance(response, OffsetCommitResponse):
            then(_DISCONNECTED)
            return
        error = first_error(response)
        if error is NO_ERROR:
            error = self._environment.commit(positions)
        if error is NO_ERROR:
            process.periodic_requests.commits_superseded()
        process.membership.commit_answered(error, sent)
        then(error)
