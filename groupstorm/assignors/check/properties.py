"""The properties of an assignor, each as a question to one round or to one change of a group.

A property that is broken is told in a sentence; one that holds says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

from groupstorm.assignors.check.history import Change, Round
from groupstorm.assignors.check.optimum import Units, fewest_moves_when_equal, optimum, units_of
from groupstorm.assignors.contract import AssignmentRefused, Assignor, RebalanceProtocol
from groupstorm.assignors.custom import PROGRAMMING_ERRORS
from groupstorm.assignors.promises import Balance, CoPartitioning, Promises
from groupstorm.assignors.userdata import TopicPartition

ANSWERS = "answers"
SUBSCRIBED = "only what is subscribed and exists"
ONCE = "no partition twice"
COMPLETE = "no partition left out"
COOPERATIVE = "never granted before it is revoked"
SETTLES = "settles"
BALANCE = "balance"
MOVES = "fewest moves"
CO_PARTITIONED = "co-partitioning"
DETERMINISTIC = "deterministic"
MEMBER_ORDER = "any order of members"

#: In the order of a report.
PROPERTIES = (
    ANSWERS,
    SUBSCRIBED,
    ONCE,
    COMPLETE,
    COOPERATIVE,
    SETTLES,
    BALANCE,
    MOVES,
    CO_PARTITIONED,
    DETERMINISTIC,
    MEMBER_ORDER,
)


class Verdict(StrEnum):
    """What came of one property."""

    HELD = "held"
    BROKEN = "broken"
    NOT_PROMISED = "not promised"


class Subject(NamedTuple):
    """What is checked, and against what."""

    assignor: Assignor
    promises: Promises

    @property
    def cooperative(self) -> bool:
        return RebalanceProtocol.COOPERATIVE in self.assignor.protocols

    def promised(self, name: str) -> bool:
        """Whether a broken property breaks the contract."""
        promises = self.promises
        asked = {
            BALANCE: promises.balance is not None,
            MOVES: promises.fewest_moves,
            CO_PARTITIONED: promises.co_partitioned is not None,
            MEMBER_ORDER: promises.any_member_order,
        }
        return asked.get(name, True)


# -- one round -----------------------------------------------------------------------------------


def answers(_: Subject, told: Round) -> str | None:
    """The assignor neither throws nor refuses."""
    return None if told.refusal is None else told.refusal


def only_subscribed(_: Subject, told: Round) -> str | None:
    """Everything exists and goes to a member that subscribes to its topic."""
    for member, partitions in told.assigned.items():
        for topic, number in partitions:
            if topic not in told.subscriptions[member].topics:
                return f"{member} is given {topic}-{number} and has not subscribed to {topic}"
            if topic not in told.topics or not 0 <= number < told.topics[topic].partitions:
                return f"{member} is given {topic}-{number}, which does not exist"
    return None


def once(_: Subject, told: Round) -> str | None:
    """Nothing is given away twice."""
    owner: dict[TopicPartition, str] = {}
    for member, partitions in told.assigned.items():
        for partition in partitions:
            if partition in owner:
                return f"{partition} is given to {owner[partition]} and to {member}"
            owner[partition] = member
    return None


def complete(subject: Subject, told: Round) -> str | None:
    """What is left out is withheld from its new owner, or may be left out as declared."""
    topics = {topic for subscription in told.subscriptions.values() for topic in subscription.topics}
    wanted = {
        TopicPartition(topic, number)
        for topic in topics
        if topic in told.topics
        for number in range(told.topics[topic].partitions)
    }
    for given in (told.assigned, told.owned):
        for partitions in given.values():
            wanted.difference_update(partitions)
    if wanted and subject.promises.leaves_out is not None:
        wanted -= subject.promises.leaves_out(told.topics, told.subscriptions)
    if not wanted:
        return None
    named = ", ".join(map(str, sorted(wanted)[:5]))
    more = f" and {len(wanted) - 5} more" if len(wanted) > 5 else ""
    return f"nobody is given {named}{more}"


def revoked_first(subject: Subject, told: Round) -> str | None:
    """What is new to a member belongs to no other member (validateCooperativeAssignment, KIP-429)."""
    if not subject.cooperative:
        return None
    owners = {partition: member for member, owned in told.owned.items() for partition in owned}
    for member, partitions in told.assigned.items():
        mine = set(told.owned[member])
        for partition in partitions:
            if partition not in mine and partition in owners:
                return f"{member} is granted {partition} before {owners[partition]} has given it up"
    return None


def deterministic(subject: Subject, told: Round) -> str | None:
    """The same question has the same answer, lists in the same order."""
    second = _again(subject, told, dict(told.subscriptions))
    first = {member: list(partitions) for member, partitions in told.assigned.items()}
    return None if second == first else f"the same question was answered otherwise: {_differ(first, second)}"


def any_member_order(subject: Subject, told: Round) -> str | None:
    """The members from last to first, and by id: everybody gets the same."""
    first = {member: sorted(partitions) for member, partitions in told.assigned.items()}
    for order in (reversed(list(told.subscriptions)), sorted(told.subscriptions)):
        named = {member: told.subscriptions[member] for member in order}
        second = _again(subject, told, named)
        if second is not None:
            second = {member: sorted(partitions) for member, partitions in second.items()}
        if second != first:
            return f"asked in the order {', '.join(named)}: {_differ(first, second)}"
    return None


Lists = Mapping[str, list[TopicPartition]]


def _again(subject: Subject, told: Round, subscriptions: Mapping[str, object]) -> Lists | None:
    asked = {member: told.subscriptions[member] for member in subscriptions}
    try:
        result = subject.assignor.assign(dict(told.topics), asked)
    except (AssignmentRefused, *PROGRAMMING_ERRORS):
        return None
    return {member: list(partitions) for member, partitions in result.partitions.items()}


def _differ(first: Lists, second: Lists | None) -> str:
    if second is None:
        return "no answer"
    member = next((m for m in sorted(first) if first[m] != second.get(m)), None)
    if member is None:
        return f"an answer for {', '.join(sorted(second.keys() - first.keys()))} as well"
    return f"{member} gets {shown(second.get(member, []))} instead of {shown(first[member])}"


def shown(partitions: object) -> str:
    """Partitions as people read them."""
    named = [str(partition) for partition in partitions] if isinstance(partitions, list | tuple) else []
    return ", ".join(named) or "nothing"


# -- one change, when the group has settled ------------------------------------------------------


def settles(_: Subject, change: Change) -> str | None:
    """Cooperative rounds come to an end."""
    return None if change.settled else f"after {len(change.rounds)} rounds members still have to revoke"


def balance(subject: Subject, change: Change) -> str | None:
    """Loads differ by no more than is promised; by one partition where nothing is."""
    promised = subject.promises.balance or Balance.TO_ONE
    last = change.rounds[-1]
    units = _units(subject, change)
    by_topics: dict[frozenset[str], list[str]] = {}
    for member, subscription in last.subscriptions.items():
        by_topics.setdefault(frozenset(subscription.topics), []).append(member)
    if promised is Balance.BEST:
        return _best_balance(units, len(by_topics) == 1)
    if promised is Balance.TO_ONE and len(by_topics) > 1:
        return None
    for topics, members in by_topics.items():
        allowed = len(topics) if promised is Balance.TO_ONE_PER_TOPIC else 1
        loads = {member: units.loads[member] for member in members}
        if max(loads.values()) - min(loads.values()) > allowed:
            return f"members with equal subscriptions have {_loads(loads)}: more than {allowed} apart"
    return None


def _best_balance(units: Units, equal: bool) -> str | None:
    loads = tuple(sorted(units.loads.values(), reverse=True))
    if equal and loads[0] - loads[-1] > 1:
        return f"members with equal subscriptions have {_loads(units.loads)}: more than 1 apart"
    if units.is_small and loads > (best := optimum(units).loads):
        return f"loads are {_loads(units.loads)}; {'/'.join(map(str, best))} is possible"
    return None


def _loads(loads: Mapping[str, int]) -> str:
    listed = sorted(loads.values(), reverse=True)
    return "/".join(map(str, listed)) if len(listed) <= 12 else f"from {listed[-1]} to {listed[0]}"


def fewest_moves(subject: Subject, change: Change) -> str | None:
    """No partition leaves its owner but for balance. Where claims may be stale nothing is expected."""
    measured = moves(subject, change)
    if measured is None or measured[0] <= measured[1]:
        return None
    return f"{measured[0]} moved, {measured[1]} would have done"


def moves(subject: Subject, change: Change) -> tuple[int, int] | None:
    """Moved, and the fewest that a best-balanced assignment moves; None where that is not known."""
    if not change.clean:
        return None
    units = _units(subject, change)
    if units.is_small:
        if not _is_equal(change) and subject.promises.balance is not Balance.BEST:
            return None
        return units.moved, optimum(units).moves
    return (units.moved, fewest_moves_when_equal(units)) if _is_equal(change) else None


def _is_equal(change: Change) -> bool:
    subscriptions = change.rounds[-1].subscriptions.values()
    return len({frozenset(subscription.topics) for subscription in subscriptions}) == 1


def _units(subject: Subject, change: Change) -> Units:
    last = change.rounds[-1]
    kind = subject.promises.co_partitioned
    return units_of(last.topics, last.subscriptions, change.before, change.after, kind)


def co_partitioned(subject: Subject, change: Change) -> str | None:
    """Partition n of all topics, or of all of equal size, is at one member."""
    if not _is_equal(change):
        return None
    any_sizes = subject.promises.co_partitioned is CoPartitioning.ANY_SIZES
    topics = change.rounds[-1].topics
    owners: dict[tuple[int, int], tuple[str, TopicPartition]] = {}
    for member, partitions in change.after.items():
        for partition in partitions:
            size = 0 if any_sizes else topics[partition.topic].partitions
            other, first = owners.setdefault((size, partition.partition), (member, partition))
            if other != member:
                return f"{first} is with {other}, {partition} with {member}"
    return None


#: Asked of every round; those behind an answer that is none, or no valid one, are not asked.
OF_ROUNDS: tuple[tuple[str, Callable[[Subject, Round], str | None]], ...] = (
    (ANSWERS, answers),
    (SUBSCRIBED, only_subscribed),
    (ONCE, once),
    (COMPLETE, complete),
    (COOPERATIVE, revoked_first),
    (DETERMINISTIC, deterministic),
    (MEMBER_ORDER, any_member_order),
)
#: Asked of every change once it has settled.
OF_CHANGES: tuple[tuple[str, Callable[[Subject, Change], str | None]], ...] = (
    (SETTLES, settles),
    (BALANCE, balance),
    (MOVES, fewest_moves),
    (CO_PARTITIONED, co_partitioned),
)
#: An answer that breaks one of these is worth no further question.
SOUND = frozenset({ANSWERS, SUBSCRIBED, ONCE})
