"""A leader's part in a round: complete its topic metadata, run the assignor, emit the event."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.assignors.leader import LeaderMemory
from groupstorm.clients.leadership import EncodedAssignments, lead
from groupstorm.clients.membership import Membership
from groupstorm.clients.operations import Assign, AssignmentFailed
from groupstorm.clients.wire.application import ApplicationBehaviour
from groupstorm.clients.wire.event_emitter import EventEmitter
from groupstorm.clients.wire.poll_loop import sleep_us
from groupstorm.clients.wire.topic_watch import TopicWatch
from groupstorm.trace.events import member as events


class GroupLeader:
    """Computes the assignments of the generations that one consumer leads."""

    def __init__(
        self,
        membership: Membership,
        watch: TopicWatch,
        application: ApplicationBehaviour,
        clock: Callable[[], int],
        emitter: EventEmitter,
    ) -> None:
        self._membership = membership
        self._watch = watch
        self._application = application
        self._clock = clock
        self._emitter = emitter
        self._memory = LeaderMemory()

    async def assign(self, operation: Assign) -> EncodedAssignments | AssignmentFailed:
        """The plan for the members of the response."""
        membership, assignor, members = self._membership, operation.assignor, operation.response.members
        await self._watch.cover(members)
        started_us = self._clock()
        topics = self._watch.topics
        membership.assignor_begins()
        plan = lead(assignor, membership.rebalance_protocol, topics, members, self._memory)
        await sleep_us(self._application.assign_us(len(members), sum(topics.values())))
        config, generation = membership.config, membership.generation
        self._emitter.emit(
            events.AssignmentComputed(
                config.group_id,
                config.client_id,
                generation.member_id,
                generation.id,
                assignor.name,
                self._clock() - started_us,
                len(members),
            )
        )
        return plan
