"""Assignors that are wrong, each in one way; the check must find the way, with few words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import cycle

from groupstorm.assignors.contract import TopicMetadata
from groupstorm.assignors.promises import Balance, CoPartitioning, Promises
from groupstorm.assignors.userdata import Subscription, TopicPartition

Topics = Mapping[str, TopicMetadata]
Members = Mapping[str, Subscription]
Answer = dict[str, list[TopicPartition]]


def every(topics: Topics, members: Members) -> list[TopicPartition]:
    """Return the partitions that are subscribed to and exist."""
    wanted = sorted({topic for member in members.values() for topic in member.topics if topic in topics})
    return [TopicPartition(topic, number) for topic in wanted for number in range(topics[topic].partitions)]


def dealt(topics: Topics, members: Members) -> Answer:
    """Sound, if all subscribe alike: partitions dealt out like cards, by member id."""
    answer: Answer = {member: [] for member in sorted(members)}
    for partition, member in zip(every(topics, members), cycle(sorted(members)), strict=False):
        answer[member].append(partition)
    return answer


def throws_for_three(topics: Topics, members: Members) -> Answer:
    assert len(members) < 3, "two are enough"
    return dealt(topics, members)


def gives_what_is_not_there(topics: Topics, members: Members) -> Answer:
    answer = dealt(topics, members)
    for topic, metadata in topics.items():
        answer[min(members)].append(TopicPartition(topic, metadata.partitions))
    return answer


def gives_what_is_not_subscribed(topics: Topics, members: Members) -> Answer:
    return dealt(topics, members)


def gives_twice(topics: Topics, members: Members) -> Answer:
    answer = dealt(topics, members)
    if len(members) > 1 and answer[min(members)]:
        answer[max(members)].append(answer[min(members)][0])
    return answer


def forgets_the_last(topics: Topics, members: Members) -> Answer:
    answer = dealt(topics, members)
    if len(members) == 4:
        answer[max(members)] = []
    return answer


def grants_at_once(topics: Topics, members: Members) -> Answer:
    return dealt(topics, members)


def never_settles(topics: Topics, members: Members) -> Answer:
    """Takes something away from somebody in every round."""
    return {
        member: [p for p in mine if p not in members[member].owned]
        for member, mine in dealt(topics, members).items()
    }


def piles_up(topics: Topics, members: Members) -> Answer:
    return {min(members): every(topics, members)}


def moves_about(topics: Topics, members: Members) -> Answer:
    return dealt(topics, members)


def tears_apart(topics: Topics, members: Members) -> Answer:
    return dealt(topics, members)


def answers_otherwise(topics: Topics, members: Members, asked: list[None] | None = None) -> Answer:
    asked = _ASKED
    asked.append(None)
    answer = dealt(topics, members)
    return answer if len(asked) % 2 else {member: mine[::-1] for member, mine in answer.items()}


_ASKED: list[None] = []


def first_come(topics: Topics, members: Members) -> Answer:
    answer: Answer = {member: [] for member in members}
    for partition, member in zip(every(topics, members), cycle(members), strict=False):
        answer[member].append(partition)
    return answer


def never_answers(topics: Topics, members: Members) -> Answer:
    while len(members) > 1:
        pass
    return dealt(topics, members)


def by_set_order(topics: Topics, members: Members) -> Answer:
    """Walks a set of strings: Python's order for those depends on PYTHONHASHSEED."""
    answer: Answer = {member: [] for member in members}
    for partition, member in zip(every(topics, members), cycle(set(members)), strict=False):
        answer[member].append(partition)
    return answer


def _declare(function: Callable[[Topics, Members], Answer], **declared: object) -> None:
    for name, value in {"needs_equal_subscriptions": True, **declared}.items():
        setattr(function, name, value)


for _function in (throws_for_three, gives_what_is_not_there, gives_twice, forgets_the_last, dealt):
    _declare(_function)
_declare(gives_what_is_not_subscribed, needs_equal_subscriptions=False)
_declare(grants_at_once, protocols=("cooperative",))
_declare(never_settles, protocols="cooperative")
_declare(piles_up, promises=Promises(balance=Balance.TO_ONE))
_declare(moves_about, promises=Promises(fewest_moves=True))
_declare(tears_apart, promises=Promises(co_partitioned=CoPartitioning.EQUAL_SIZES))
_declare(first_come, promises=Promises(any_member_order=True))
_declare(answers_otherwise)
_declare(never_answers)
_declare(by_set_order)
