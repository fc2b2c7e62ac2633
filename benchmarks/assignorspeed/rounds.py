"""The groups of the benchmark: the members and their subscriptions as bytes, round after round."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from groupstorm.assignors.contract import Assignor, RebalanceProtocol, subscription_user_data
from groupstorm.assignors.leader import JoinedMember, LeaderMemory, perform_assignment
from groupstorm.assignors.userdata import Assignment, Subscription, decode_assignment, encode_subscription

PHASES = ("empty start", "one more", "10% leave")


class Names(StrEnum):
    """The naming of topics, which matters to Kafka's reader of owned partitions: a table with linear
    probing (ImplicitLinkedHashCollection), in which names of neighbouring hashes collide.
    """

    NUMBERED = "numbered"
    SCATTERED = "scattered"


class Subscribed(StrEnum):
    """Who subscribes to what."""

    EQUAL = "equal"
    BUT_ONE = "half but one"
    RANDOM = "random half"


class Size(NamedTuple):
    """A group's size."""

    members: int
    partitions: int
    topics: int
    names: Names = Names.NUMBERED
    subscribed: Subscribed = Subscribed.EQUAL

    def __str__(self) -> str:
        return f"{self.members:,} x {self.partitions:,}, {self.topics} {self.names}, {self.subscribed}"


class Round(NamedTuple):
    """A leader's question; ``phase`` None: the group settles, untimed."""

    phase: str | None
    members: list[JoinedMember]
    answer: dict[str, bytes]


class BenchmarkGroup:
    """One group with one assignor: its topics, and the rounds that it goes through."""

    def __init__(self, size: Size, assignor: Assignor) -> None:
        draw = random.Random(9987)
        self.assignor = assignor
        self.topics = {
            f"topic-{number}"
            if size.names is Names.NUMBERED
            else f"{draw.getrandbits(64):016x}": size.partitions // size.topics
            for number in range(size.topics)
        }
        # ids as a broker draws them: client id and a UUID
        ids = [f"consumer-{number}-{draw.getrandbits(128):032x}" for number in range(size.members + 1)]
        self._wanted = {
            member: _choose(list(self.topics), size.subscribed, number, draw)
            for number, member in enumerate(ids)
        }
        self._cooperative = RebalanceProtocol.COOPERATIVE in assignor.protocols
        self.rounds = list(self._play(ids, size.members))

    def timed(self) -> dict[str, Round]:
        """The rounds that are timed, by phase."""
        return {round_.phase: round_ for round_ in self.rounds if round_.phase is not None}

    def _play(self, ids: Sequence[str], members: int) -> Iterator[Round]:
        memory = LeaderMemory()
        last: Mapping[str, Assignment] = {}
        generation = 0
        for phase, present in zip(PHASES, (ids[:members], ids, ids[members // 10 :]), strict=True):
            for name in (phase, None):
                joining = self._subscriptions(present, last, generation)
                answer = perform_assignment(self.assignor, self.topics, joining, memory)
                last = {member: decode_assignment(data) for member, data in answer.items()}
                generation += 1
                yield Round(name, joining, answer)
                if not self._cooperative or phase == PHASES[-1]:
                    break

    def _subscriptions(
        self, present: Sequence[str], last: Mapping[str, Assignment], generation: int
    ) -> list[JoinedMember]:
        return [
            (member, None, encode_subscription(self._subscription(member, last.get(member), generation)))
            for member in present
        ]

    def _subscription(self, member: str, last: Assignment | None, generation: int) -> Subscription:
        return Subscription(
            self._wanted[member],
            subscription_user_data(self.assignor, last, generation),
            last.partitions if last is not None and self._cooperative else (),
            -1 if last is None else generation,
        )


def _choose(
    topics: Sequence[str], subscribed: Subscribed, number: int, draw: random.Random
) -> tuple[str, ...]:
    if subscribed is Subscribed.BUT_ONE and number % 2:
        return tuple(topics[1:])
    if subscribed is Subscribed.RANDOM:
        return tuple(topic for topic in topics if draw.random() < 1 / 2) or tuple(topics[:1])
    return tuple(topics)
