"""Requests to the group coordinator, and the changes that it must know before the next one.

A request of a connection may be several requests to the coordinator, or none. The coordinator answers some of
them later, perhaps while it carries out another connection's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from groupstorm.broker.apis.api import AskCoordinator, KioMessage
from groupstorm.broker.apis.coordinators import move_internal_topic
from groupstorm.broker.changes import Change
from groupstorm.broker.config import INT32_MAX
from groupstorm.broker.log.topics import OFFSETS_TOPIC
from groupstorm.broker.requests import Unfinished
from groupstorm.broker.state import BrokerState
from groupstorm.broker.transactions import Marker
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.failures import error_response
from groupstorm.coordinator.messages import (
    GroupRequest,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    OffsetCommit,
    TxnOffsetCommit,
)
from groupstorm.coordinator.modern.config import GROUP_OPTIONS, STREAMS_GROUP_TEXTS
from groupstorm.coordinator.topics import Topic as GroupTopic
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause
from groupstorm.trace.events.scenario import PartitionsDeleted
from groupstorm.turns import Turns

#: The work of one request to the group coordinator.
_ASKING = 5
#: The work of one marker.
_MARKING = 2


class Answered(NamedTuple):
    """The response to the request of a connection."""

    connection: int
    response: KioMessage | Turns[KioMessage]


class _Token(NamedTuple):
    """Assigns a reply of the coordinator to a connection's request and to one of its questions."""

    connection: int
    question: int


@dataclass(slots=True)
class _Asked:
    """The questions of a connection's request. ``missing``: how many of them have no reply yet."""

    asked: AskCoordinator
    node: int
    missing: int
    replies: list[Any]


class GroupCoordination:
    """Asks the coordinator. Its effects are collected until the broker takes them."""

    def __init__(self, state: BrokerState, coordinator: GroupCoordinator, unfinished: Unfinished) -> None:
        self.events: list[events.Event] = []
        #: The requests whose questions have all been replied to, in this order.
        self.answered: deque[Answered] = deque()
        self._state = state
        self._coordinator = coordinator
        self._unfinished = unfinished
        self._asked: dict[int, _Asked] = {}
        #: Topic -> group -> the partitions that its members were assigned: they need owners until deleted.
        self._assigned: dict[str, dict[str, set[str]]] = {}
        state.changed_topics = [topic.name for topic in state.topics]
        state.changed_groups = list(state.group_configs)

    def ask(self, connection: int, node: int, asked: AskCoordinator) -> None:
        """Ask for a connection. ``node``: the broker that it has asked."""
        count = len(asked.requests)
        if not count:
            self.answered.append(Answered(connection, asked.finish(())))
            return
        questions = self._asked[connection] = _Asked(asked, node, count, [None] * count)
        if count == 1:
            self._ask_one(_Token(connection, 0), questions)
        else:
            self._unfinished.begin(connection, self._ask_in_turns(connection, questions))

    def forget(self, connection: int) -> None:
        """Forget a closed connection."""
        self._asked.pop(connection, None)

    def tell(self, now_ms: int) -> None:
        """Tell the coordinator the ends of transactions, topics, and configurations of groups."""
        state = self._state
        markers, state.transactions.markers = state.transactions.markers, []
        if markers:
            self._unfinished.begin(None, self._end_transactions(markers))
        if state.changed_topics or state.deleted_topics:
            known = [topic for name in state.changed_topics if (topic := state.topics.get(name)) is not None]
            changed = {topic.name: GroupTopic(topic.topic_id, len(topic.partitions)) for topic in known}
            deleted = [name for name in state.deleted_topics if name not in changed]
            state.changed_topics, state.deleted_topics = [], []
            self._deleted(deleted)
            self.take(self._coordinator.update_topics(changed, deleted, now_ms))
        for group in state.changed_groups:
            configs = state.group_configs.get(group, {})
            options: dict[str, int | str] = {
                name: int(value) for name, value in configs.items() if name in GROUP_OPTIONS
            }
            options |= {name: value for name, value in configs.items() if name in STREAMS_GROUP_TEXTS}
            self._coordinator.set_group_options(group, options)
        state.changed_groups = []

    def _end_transactions(self, markers: Iterable[Marker]) -> Turns[None]:
        """Write the markers. Each is one change, as is the end of the offsets; Kafka's brokers write them one
        by one, too."""
        state = self._state
        for marker in markers:
            for partition in marker.partitions:
                state.write_marker(marker, *partition)
                yield _MARKING
            if any(topic == OFFSETS_TOPIC for topic, _ in marker.partitions):
                self.take(
                    self._coordinator.end_transaction(marker.producer_id, marker.is_commit, state.now_ms)
                )
            state.transactions.complete(marker.transactional_id)

    def move(self, group: str, node: int | None, now_ms: int) -> None:
        """See `Broker.move_coordinator`."""
        coordinators = self._state.cluster.groups
        coordinators.move(group, node)
        move_internal_topic(self._state, OFFSETS_TOPIC)
        partition = coordinators.partition_of(group)
        moved = [one for one in self._coordinator.groups if coordinators.partition_of(one) == partition]
        self.take(self._coordinator.move(moved, now_ms))

    def take(self, effects: Effects) -> None:
        """Collect what a call of the coordinator has brought about."""
        self.events.extend(effects.events)
        self._note_assigned(effects.events)
        self._state.changes += cast("list[Change]", effects.records)
        for token, response in effects.replies:
            if isinstance(token, _Token):
                self._take_reply(token, response)
        for work in self._coordinator.take_long_work():
            self._unfinished.begin(None, self._take_in_turns(work))

    def _note_assigned(self, caused: Iterable[events.Event]) -> None:
        topics = set()
        for one in caused:
            if isinstance(one, events.SyncAnswered | events.MemberReconciled):
                for partition in one.partitions or ():
                    topics.add(topic := partition.rpartition("-")[0])
                    self._assigned.setdefault(topic, {}).setdefault(one.group, set()).add(partition)
            elif isinstance(one, events.GroupDeleted) and one.cause != Cause.UNLOADED:
                for groups in self._assigned.values():
                    groups.pop(one.group, None)
        # a leader may not know yet that a topic was deleted
        self._deleted(topic for topic in sorted(topics) if self._state.topics.get(topic) is None)

    def _deleted(self, topics: Iterable[str]) -> None:
        for topic in topics:
            for group, partitions in self._assigned.pop(topic, {}).items():
                self.events.append(PartitionsDeleted(group, (topic,), tuple(sorted(partitions))))

    def _ask_in_turns(self, connection: int, questions: _Asked) -> Turns[None]:
        for question in range(len(questions.asked.requests)):
            self._ask_one(_Token(connection, question), questions)
            yield _ASKING

    def _ask_one(self, token: _Token, questions: _Asked) -> None:
        request = questions.asked.requests[token.question]
        if not isinstance(request, ListGroups):
            error = self._refusal(request, questions.node)
            if error is not Error.NONE:
                self._take_reply(token, error_response(request, error))
                return
        may_match = None if self._state.authorizer is None else questions.asked.may_match
        effects = self._coordinator.handle(request, self._state.now_ms, token, may_match)
        if isinstance(request, JoinGroup | LeaveGroup):
            self.events += _reasons(request, effects.events)
        self.take(effects)

    def _take_in_turns(self, work: Turns[Effects]) -> Turns[None]:
        self.take((yield from work))

    def _refusal(self, request: GroupRequest, node: int) -> Error:
        """The error if the group is another broker's, or one group too many."""
        if self._state.cluster.groups.node_of(request.group) != node:
            return Error.NOT_COORDINATOR
        most = self._state.config.groupstorm_max_groups
        if most < INT32_MAX and isinstance(request, JoinGroup | OffsetCommit | TxnOffsetCommit):
            groups = self._coordinator.groups
            if len(groups) >= most and request.group not in groups:
                return Error.POLICY_VIOLATION
        return Error.NONE

    def _take_reply(self, token: _Token, response: Any) -> None:
        questions = self._asked.get(token.connection)
        if questions is None:
            return  # the client has closed its connection
        questions.replies[token.question] = response
        questions.missing -= 1
        if questions.missing == 0:
            del self._asked[token.connection]
            self.answered.append(Answered(token.connection, questions.asked.finish(questions.replies)))


def _reasons(request: JoinGroup | LeaveGroup, caused: Iterable[events.Event]) -> Iterator[events.Event]:
    """The words of a client about its own join, or about each member that it removed (KIP-800)."""
    asking = request.members if isinstance(request, LeaveGroup) else (request,)
    said = {one.member_id or one.group_instance_id: one.reason for one in asking}
    for one in caused:
        if isinstance(one, events.JoinParked | events.MemberRemoved):
            reason = said.pop(one.member_id, None) or said.pop(getattr(one, "instance", None), None)
            if reason:
                yield events.ClientReason(one.group, one.member, one.generation, reason, one.member_id)
