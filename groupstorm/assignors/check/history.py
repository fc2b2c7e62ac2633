"""Histories: the steps that change a group, and the rounds of rebalancing that follow.

A history is data, and it stays meaningful if any of its steps is left out, so that a failing history can be
made smaller: a step about a member that is not in the group does nothing. The group is the client's side
alone: members keep their last assignment, and nothing takes time.

Random histories are mostly tiny ones, for which brute force finds the optimum. The same seed gives the same
histories on any machine, in any process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from groupstorm.assignors.contract import (
    AssignmentRefused,
    Assignor,
    RebalanceProtocol,
    TopicMetadata,
    subscription_user_data,
)
from groupstorm.assignors.userdata import NO_GENERATION, Assignment, Subscription, TopicPartition

#: After so many rounds a group counts as one that never settles; Kafka's assignors need three at most.
MAX_ROUNDS = 12

Assigned = Mapping[str, tuple[TopicPartition, ...]]


class StepKind(StrEnum):
    JOIN = "join"
    LEAVE = "leave"
    RETURN = "return"
    """A member that left, or was thought dead, returns with its last assignment."""
    RETURN_CLAIMING = "return-claiming"
    """As RETURN, but a cooperative member still claims the partitions that it had (KAFKA-12983)."""
    SUBSCRIBE = "subscribe"
    """One member, or all if the step names none, subscribes to other topics."""
    RESIZE = "resize"
    """A topic gets this number of partitions: created, grown, deleted, or created anew and smaller."""
    MISS = "miss"
    """The next assignment does not reach the member; it joins again with its last one."""


class HistoryStep(NamedTuple):
    """A step; fields of other kinds stay empty. ``with_next``: the group rebalances after the next step."""

    do: StepKind
    member: str = ""
    topics: tuple[str, ...] = ()
    partitions: int = 0
    with_next: bool = False

    def __str__(self) -> str:
        return f"{self._what()}, and in the same rebalance" if self.with_next else self._what()

    def _what(self) -> str:
        topics = ", ".join(self.topics) or "nothing"
        return {
            StepKind.JOIN: f"{self.member} joins and subscribes to {topics}",
            StepKind.LEAVE: f"{self.member} leaves",
            StepKind.RETURN: f"{self.member} is back, with its last assignment in mind",
            StepKind.RETURN_CLAIMING: f"{self.member} is back, and claims what it had",
            StepKind.SUBSCRIBE: f"{self.member or 'everybody'} subscribes to {topics} instead",
            StepKind.RESIZE: f"{topics} has {self.partitions} partitions from now on",
            StepKind.MISS: f"{self.member} will not receive the next assignment",
        }[self.do]


ReplicaRacks = tuple[frozenset[str], ...]


class HistoryRacks(NamedTuple):
    """Racks per member, and per topic those of each partition's replicas (ignored if the sizes differ)."""

    clients: Mapping[str, str] = MappingProxyType({})
    replicas: Mapping[str, ReplicaRacks] = MappingProxyType({})


NO_RACKS = HistoryRacks()


class History(NamedTuple):
    """``topics``: the topics at the beginning, with their numbers of partitions."""

    topics: Mapping[str, int]
    steps: tuple[HistoryStep, ...]
    racks: HistoryRacks = NO_RACKS


@dataclass
class SimulatedMember:
    """``last``: the last assignment that reached the member, in generation ``generation``."""

    topics: tuple[str, ...]
    last: Assignment | None = None
    generation: int = NO_GENERATION
    misses: bool = False

    def owned(self) -> tuple[TopicPartition, ...]:
        """The partitions on which it still works when it joins a cooperative group: those of its topics."""
        assigned = () if self.last is None else self.last.partitions
        return tuple(sorted(tp for tp in assigned if tp.topic in self.topics))


class Round(NamedTuple):
    """One generation: the question, the answer or the reason why there is none, the owners at the join."""

    generation: int
    topics: Mapping[str, TopicMetadata]
    subscriptions: Mapping[str, Subscription]
    owned: Assigned
    assigned: Assigned
    user_data: bytes | None = None
    refusal: str | None = None


class Change(NamedTuple):
    """A step with its rounds, if it starts any, and the owners before and after.

    ``clean``: the claims of all members are true, so only the assignor decides what moves.
    """

    number: int
    step: HistoryStep
    rounds: tuple[Round, ...]
    settled: bool
    clean: bool
    before: Mapping[TopicPartition, str]
    after: Assigned


@dataclass
class SimulatedGroup:
    """A group. If the assignor needs equal subscriptions, a new member subscribes as the others do."""

    assignor: Assignor
    topics: dict[str, int]
    racks: HistoryRacks = NO_RACKS
    members: dict[str, SimulatedMember] = field(default_factory=dict)
    gone: dict[str, SimulatedMember] = field(default_factory=dict)
    generation: int = 0
    clean: bool = True

    @property
    def cooperative(self) -> bool:
        return RebalanceProtocol.COOPERATIVE in self.assignor.protocols

    def take(self, step: HistoryStep) -> bool:
        """Apply the step; returns whether a rebalance follows."""
        match step.do:
            case StepKind.JOIN if step.member not in self.members and step.topics:
                self.gone.pop(step.member, None)
                self.members[step.member] = SimulatedMember(self._as_the_others(step.topics))
                return True
            case StepKind.LEAVE if step.member in self.members:
                self.gone[step.member] = self.members.pop(step.member)
                return True
            case StepKind.RETURN | StepKind.RETURN_CLAIMING if step.member in self.gone:
                self._return(step)
                return True
            case StepKind.SUBSCRIBE:
                return self._subscribe(step)
            case StepKind.RESIZE:
                changes = any(self.topics.get(topic, 0) != step.partitions for topic in step.topics)
                self.topics.update(dict.fromkeys(step.topics, step.partitions))
                return changes
            case StepKind.MISS if step.member in self.members:
                self.members[step.member].misses = True
        return False

    def _as_the_others(self, topics: tuple[str, ...]) -> tuple[str, ...]:
        if not self.assignor.needs_equal_subscriptions:
            return topics
        return next((member.topics for member in self.members.values()), topics)

    def _return(self, step: HistoryStep) -> None:
        member = self.gone.pop(step.member)
        member.topics = self._as_the_others(member.topics)
        if self.cooperative and step.do is not StepKind.RETURN_CLAIMING:
            # its partitions are lost (onPartitionsLost)
            member = SimulatedMember(member.topics)
        self.members[step.member] = member
        self.clean = False

    def _subscribe(self, step: HistoryStep) -> bool:
        if not step.member or self.assignor.needs_equal_subscriptions:
            chosen = list(self.members.values())
        else:
            chosen = [self.members[step.member]] if step.member in self.members else []
        changed = [member for member in chosen if member.topics != step.topics and step.topics]
        for member in changed:
            member.topics = step.topics
        return bool(changed)

    def owners(self) -> dict[TopicPartition, str]:
        """The owner of each partition that exists and is still subscribed to."""
        return {
            tp: name
            for name, member in self.members.items()
            for tp in member.owned()
            if 0 <= tp.partition < self.topics.get(tp.topic, 0)
        }

    def ask(self) -> Round:
        """One round, without its consequences: all members join, and the leader assigns."""
        topics = {topic: self._metadata(topic, count) for topic, count in self.topics.items() if count}
        subscriptions = {name: self._subscription(name, member) for name, member in self.members.items()}
        owned = {name: member.owned() if self.cooperative else () for name, member in self.members.items()}
        self.generation += 1
        asked = self.generation, topics, subscriptions, owned
        try:
            result = self.assignor.assign(topics, subscriptions)
        except AssignmentRefused as refused:
            return Round(*asked, {}, refusal=str(refused))
        assigned = {name: tuple(partitions) for name, partitions in result.partitions.items()}
        return Round(*asked, assigned, result.user_data)

    def _metadata(self, topic: str, count: int) -> TopicMetadata:
        replicas = self.racks.replicas.get(topic, ())
        return TopicMetadata(count, replicas if len(replicas) == count else None)

    def _subscription(self, name: str, member: SimulatedMember) -> Subscription:
        return Subscription(
            topics=member.topics,
            user_data=subscription_user_data(self.assignor, member.last, member.generation),
            owned=member.owned() if self.cooperative else (),
            generation=member.generation,
            rack=self.racks.clients.get(name),
        )

    def hand_out(self, round_: Round) -> bool:
        """All members take the assignment; returns whether one of them has to join again."""
        again = False
        for name, member in self.members.items():
            if member.misses:
                member.misses, again, self.clean = False, True, False
                continue
            assigned = tuple(sorted(round_.assigned.get(name, ())))
            if self.cooperative:
                again |= not set(assigned).issuperset(round_.owned[name])
            member.last = Assignment(assigned, round_.user_data)
            member.generation = round_.generation
        return again


def play(assignor: Assignor, history: History) -> Iterator[Change]:
    """The history's changes, one after the other; ends with a round that has no answer."""
    group = SimulatedGroup(assignor, dict(history.topics), history.racks)
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


T = TypeVar("T")


class Size(NamedTuple):
    members: int
    topics: int
    partitions: int
    steps: int


#: Percentage of each size.
_SIZES = ((70, Size(4, 2, 5, 7)), (25, Size(8, 3, 12, 8)), (5, Size(30, 5, 40, 6)))

#: Percentage of each kind of step; every history begins with joins.
_STEPS = (
    (25, StepKind.JOIN),
    (25, StepKind.LEAVE),
    (15, StepKind.RESIZE),
    (15, StepKind.SUBSCRIBE),
    (10, StepKind.MISS),
    (10, StepKind.RETURN),
)

#: Kafka's hash order depends on the members' ids: short ones, and ids as clients have them.
_ID_STYLES = ("m{}", "consumer-group-{}-7b1e", "{}a", "worker-{}")


def draw_history(seed: int, case: int, equal_subscriptions: bool) -> History:
    """The ``case``-th history of a seed; ``equal_subscriptions``: all members subscribe alike."""
    draws = _Draws(seed, case)
    size = draws.weighted(_SIZES)
    names = [f"t{number}" for number in range(draws.between(1, size.topics))]
    topics = {name: draws.between(1, size.partitions) for name in names}
    everybody = tuple(draws.some_of(names)) if equal_subscriptions else ()
    style = draws.one_of(_ID_STYLES)
    steps: list[HistoryStep] = []
    joined = draws.between(1, size.members)
    for number in range(joined):
        steps.append(
            HistoryStep(StepKind.JOIN, style.format(number), everybody or tuple(draws.some_of(names)))
        )
    for _ in range(draws.between(1, size.steps)):
        do = draws.weighted(_STEPS)
        subscribed = everybody or tuple(draws.some_of(names))
        member = style.format(draws.below(joined))
        if do is StepKind.JOIN:
            member = style.format(joined)
            joined += 1
            steps.append(HistoryStep(do, member, subscribed))
        elif do is StepKind.RESIZE:
            steps.append(
                HistoryStep(do, topics=(draws.one_of(names),), partitions=draws.below(size.partitions + 1))
            )
        elif do is StepKind.SUBSCRIBE and equal_subscriptions:
            everybody = tuple(draws.some_of(names))
            steps.append(HistoryStep(do, topics=everybody))
        elif do is StepKind.SUBSCRIBE:
            steps.append(HistoryStep(do, member, subscribed))
        else:
            steps.append(HistoryStep(do, member))
    return History(topics, tuple(steps))


class _Draws:
    def __init__(self, seed: int, case: int) -> None:
        self._name = f"{seed}/{case}"
        self._drawn = 0

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit`` - 1."""
        self._drawn += 1
        digest = blake2b(f"{self._name}/{self._drawn}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") * limit >> 64

    def between(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def some_of(self, choices: Sequence[T]) -> list[T]:
        """At least one of the choices, in their order."""
        sure = self.below(len(choices))
        return [choice for place, choice in enumerate(choices) if place == sure or self.below(2)]

    def weighted(self, choices: Sequence[tuple[int, T]]) -> T:
        """One of the choices, each as often as its weight says; the weights sum up to a hundred."""
        drawn = self.below(100)
        for weight, choice in choices:
            drawn -= weight
            if drawn < 0:
                return choice
        raise ValueError("the weights do not sum up to a hundred")
