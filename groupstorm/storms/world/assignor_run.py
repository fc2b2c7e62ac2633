"""The leader's assignor in virtual time: it runs at once, and its plan comes after a computed duration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.leadership import EncodedAssignments, lead
from groupstorm.clients.membership import Membership
from groupstorm.clients.operations import Assign, AssignmentFailed
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.draws import ASSIGN, ApplicationDraws
from groupstorm.storms.world.environment import Environment
from groupstorm.trace.events import member as events


class LeadingProcess(Protocol):
    """The process of the generation's leader."""

    name: str
    config: ConsumerConfig
    draws: ApplicationDraws
    membership: Membership
    settings: Settings

    def emit(self, event: events.Event) -> None: ...


def run_assignor(
    process: LeadingProcess, operation: Assign, topics: Mapping[str, int], environment: Environment
) -> tuple[EncodedAssignments | AssignmentFailed, int]:
    """The assignor's result for these topics, and how many microseconds it takes in virtual time.

    Settings say how long it takes, not the machine: the same seed gives the same trace everywhere.
    """
    response, membership, settings = operation.response, process.membership, process.settings
    members = response.members
    membership.assignor_begins()
    with environment.assignor_work:
        plan = lead(
            operation.assignor, membership.rebalance_protocol, topics, members, environment.leader_memory
        )
    if isinstance(plan, AssignmentFailed):
        environment.assignor_work.failed(plan.error, plan.message)
    duration_us = process.draws.duration_us(settings.distribution("assign_ms"), ASSIGN)
    size = len(members) * sum(topics.values())
    duration_us += settings.integer("assign_ns_per_member_partition") * size // 1000
    generation = membership.generation
    process.emit(
        events.AssignmentComputed(
            process.config.group_id,
            process.name,
            generation.member_id,
            generation.id,
            response.protocol or "",
            duration_us,
            len(members),
        )
    )
    return plan, duration_us
