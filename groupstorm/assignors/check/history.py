"""Histories: what befalls a group, step by step, and the rounds of rebalancing that follow.

A history is data and means something with any of its steps left out, so that a failing one can be
made smaller: a step about somebody who is not there does nothing. The group is the client's side
alone: members remember what they were last assigned, and nothing takes time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from groupstorm.assignors.contract import (
    AssignmentRefused,
    Assignor,
    RebalanceProtocol,
    TopicMetadata,
    subscription_user_data,
)
from groupstorm.assignors.custom import PROGRAMMING_ERRORS
from groupstorm.assignors.userdata import NO_GENERATION, Assignment, Subscription, TopicPartition

#: Rounds after which a group that has not settled never will: Kafka's own need three at most.
MAX_ROUNDS = 12

Assigned = Mapping[str, tuple[TopicPartition, ...]]


class Do(StrEnum):
    """What a step does."""

    JOIN = "join"
    LEAVE = "leave"
    RETURN = "return"
    """A member that left, or was thought dead, is back with what it remembers."""
    RETURN_CLAIMING = "return-claiming"
    """As RETURN, but a cooperative member still says that it owns what it had (KAFKA-12983)."""
    SUBSCRIBE = "subscribe"
    """One member (or all, if none is named) subscribes to other topics."""
    RESIZE = "resize"
    """A topic has so many partitions now: created, grown, deleted, or created anew and smaller."""
    MISS = "miss"
    """The next assignment does not reach the member; it joins again with what it had."""


class Step(NamedTuple):
    """Fields that a kind of step does not use stay empty.

    ``with_next``: the group rebalances only after the next step.
    """

    do: Do
    member: str = ""
    topics: tuple[str, ...] = ()
    partitions: int = 0
    with_next: bool = False

    def __str__(self) -> str:
        return f"{self._what()}, and in the same rebalance" if self.with_next else self._what()

    def _what(self) -> str:
        topics = ", ".join(self.topics) or "nothing"
        return {
            Do.JOIN: f"{self.member} joins and subscribes to {topics}",
            Do.LEAVE: f"{self.member} leaves",
            Do.RETURN: f"{self.member} is back, with its last assignment in mind",
            Do.RETURN_CLAIMING: f"{self.member} is back, and claims what it had",
            Do.SUBSCRIBE: f"{self.member or 'everybody'} subscribes to {topics} instead",
            Do.RESIZE: f"{topics} has {self.partitions} partitions from now on",
            Do.MISS: f"{self.member} will not receive the next assignment",
        }[self.do]


ReplicaRacks = tuple[frozenset[str], ...]


class Racks(NamedTuple):
    """``clients``: client.rack of members; ``replicas``: of topics, for each partition its replicas' racks.

    Who is not named has none. A topic whose size is another than that of its list has none, either.
    """

    clients: Mapping[str, str] = MappingProxyType({})
    replicas: Mapping[str, ReplicaRacks] = MappingProxyType({})


NO_RACKS = Racks()


class History(NamedTuple):
    """``topics``: those that there are at the beginning, with their numbers of partitions."""

    topics: Mapping[str, int]
    steps: tuple[Step, ...]
    racks: Racks = NO_RACKS


@dataclass
class Member:
    """``last``: the last assignment that reached it, in generation ``generation``."""

    topics: tuple[str, ...]
    last: Assignment | None = None
    generation: int = NO_GENERATION
    misses: bool = False

    def owned(self) -> tuple[TopicPartition, ...]:
        """What it still works on when it joins a cooperative group: not what it has unsubscribed from."""
        told = () if self.last is None else self.last.partitions
        return tuple(sorted(tp for tp in told if tp.topic in self.topics))


class Round(NamedTuple):
    """One generation: the question, the answer, and what members owned when they joined.

    ``user_data`` goes to every member with its assignment; ``refusal`` says why there is no answer.
    """

    generation: int
    topics: Mapping[str, TopicMetadata]
    subscriptions: Mapping[str, Subscription]
    owned: Assigned
    assigned: Assigned
    user_data: bytes | None = None
    refusal: str | None = None


class Change(NamedTuple):
    """A step with the rounds that it took; none where the step changed nothing by itself.

    ``before`` and ``after``: who owned what before the step and once the group had settled.
    ``clean``: every member's claims are true, so that nothing but the assignor decides what moves.
    """

    number: int
    step: Step
    rounds: tuple[Round, ...]
    settled: bool
    clean: bool
    before: Mapping[TopicPartition, str]
    after: Assigned


@dataclass
class Group:
    """A group in the course of a history.

    With an assignor for equal subscriptions whoever joins subscribes as the others do.
    """

    assignor: Assignor
    topics: dict[str, int]
    racks: Racks = NO_RACKS
    members: dict[str, Member] = field(default_factory=dict)
    gone: dict[str, Member] = field(default_factory=dict)
    generation: int = 0
    clean: bool = True

    @property
    def cooperative(self) -> bool:
        return RebalanceProtocol.COOPERATIVE in self.assignor.protocols

    def take(self, step: Step) -> bool:
        """What the step changes at once; whether a rebalance follows."""
        return _TAKES[step.do](self, step)

    def _join(self, step: Step) -> bool:
        if step.member in self.members or not step.topics:
            return False
        self.gone.pop(step.member, None)
        self.members[step.member] = Member(self._as_the_others(step.topics))
        return True

    def _as_the_others(self, topics: tuple[str, ...]) -> tuple[str, ...]:
        if not self.assignor.needs_equal_subscriptions:
            return topics
        return next((member.topics for member in self.members.values()), topics)

    def _leave(self, step: Step) -> bool:
        member = self.members.pop(step.member, None)
        if member is None:
            return False
        self.gone[step.member] = member
        return True

    def _return(self, step: Step) -> bool:
        member = self.gone.pop(step.member, None)
        if member is None:
            return False
        member.topics = self._as_the_others(member.topics)
        if self.cooperative and step.do is not Do.RETURN_CLAIMING:  # what it owned is lost (onPartitionsLost)
            member = Member(member.topics)
        self.members[step.member] = member
        self.clean = False
        return True

    def _subscribe(self, step: Step) -> bool:
        if not step.member or self.assignor.needs_equal_subscriptions:
            chosen = list(self.members.values())
        else:
            chosen = [self.members[step.member]] if step.member in self.members else []
        changed = [member for member in chosen if member.topics != step.topics and step.topics]
        for member in changed:
            member.topics = step.topics
        return bool(changed)

    def _resize(self, step: Step) -> bool:
        changes = False
        for topic in step.topics:
            changes |= self.topics.get(topic, 0) != step.partitions
            self.topics[topic] = step.partitions
        return changes

    def _miss(self, step: Step) -> bool:
        if step.member in self.members:
            self.members[step.member].misses = True
        return False

    def owners(self) -> dict[TopicPartition, str]:
        """Who owns what exists and is still subscribed to."""
        return {
            tp: name
            for name, member in self.members.items()
            for tp in member.owned()
            if 0 <= tp.partition < self.topics.get(tp.topic, 0)
        }

    def ask(self) -> Round:
        """One round, without its consequences: everybody joins, the leader assigns."""
        topics = {topic: self._metadata(topic, count) for topic, count in self.topics.items() if count}
        subscriptions = {name: self._subscription(name, member) for name, member in self.members.items()}
        owned = {name: member.owned() if self.cooperative else () for name, member in self.members.items()}
        self.generation += 1
        try:
            result = self.assignor.assign(topics, subscriptions)
        except AssignmentRefused as refused:
            return Round(self.generation, topics, subscriptions, owned, {}, refusal=str(refused))
        except PROGRAMMING_ERRORS as thrown:
            what = f"{type(thrown).__name__}: {thrown}"
            return Round(self.generation, topics, subscriptions, owned, {}, refusal=what)
        assigned = {name: tuple(partitions) for name, partitions in result.partitions.items()}
        return Round(self.generation, topics, subscriptions, owned, assigned, result.user_data)

    def _metadata(self, topic: str, count: int) -> TopicMetadata:
        replicas = self.racks.replicas.get(topic, ())
        return TopicMetadata(count, replicas if len(replicas) == count else None)

    def _subscription(self, name: str, member: Member) -> Subscription:
        return Subscription(
            topics=member.topics,
            user_data=subscription_user_data(self.assignor, member.last, member.generation),
            owned=member.owned() if self.cooperative else (),
            generation=member.generation,
            rack=self.racks.clients.get(name),
        )

    def hand_out(self, told: Round) -> bool:
        """Everybody takes the assignment; whether somebody has to join again."""
        again = False
        for name, member in self.members.items():
            if member.misses:
                member.misses, again, self.clean = False, True, False
                continue
            assigned = tuple(sorted(told.assigned.get(name, ())))
            if self.cooperative:
                again |= not set(assigned).issuperset(told.owned[name])
            member.last = Assignment(assigned, told.user_data)
            member.generation = told.generation
        return again


_TAKES = {
    Do.JOIN: Group._join,
    Do.LEAVE: Group._leave,
    Do.RETURN: Group._return,
    Do.RETURN_CLAIMING: Group._return,
    Do.SUBSCRIBE: Group._subscribe,
    Do.RESIZE: Group._resize,
    Do.MISS: Group._miss,
}


def play(assignor: Assignor, history: History) -> Iterator[Change]:
    """The history's changes, one after the other; ends with a round that has no answer."""
    group = Group(assignor, dict(history.topics), history.racks)
    due = False
    for number, step in enumerate(history.steps, start=1):
        before = group.owners()
        due |= group.take(step)
        if step.with_next or not due or not group.members:
            due = due and step.with_next
            yield Change(number, step, (), settled=True, clean=True, before=before, after={})
            continue
        rounds: list[Round] = []
        due, again = False, True
        while again and len(rounds) < MAX_ROUNDS:
            rounds.append(group.ask())
            again = rounds[-1].refusal is None and group.hand_out(rounds[-1])
        after = rounds[-1].assigned
        yield Change(number, step, tuple(rounds), not again, group.clean, before, after)
        if rounds[-1].refusal is not None:
            return
        group.clean = True
