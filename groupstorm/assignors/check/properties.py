"""The properties of an assignor, each a question to one round or to one change of a group.

The answer is a sentence if the property is broken, and None if it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    HELD = "held"
    BROKEN = "broken"
    NOT_PROMISED = "not promised"


class Subject(NamedTuple):
    """The assignor that is checked, and its promises."""

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


def answers(_: Subject, round_: Round) -> str | None:
    """The assignor neither throws nor refuses."""
    return round_.refusal


def only_subscribed(_: Subject, round_: Round) -> str | None:
    """Every assigned partition exists and goes to a member that subscribes to its topic."""
    for member, partitions in round_.assigned.items():
        for topic, number in partitions:
            if topic not in round_.subscriptions[member].topics:
                return f"{member} is given {topic}-{number} and has not subscribed to {topic}"
            if topic not in round_.topics or not 0 <= number < round_.topics[topic].partitions:
                return f"{member} is given {topic}-{number}, which does not exist"
    return None


def once(_: Subject, round_: Round) -> str | None:
    """No partition has two members."""
    owner: dict[TopicPartition, str] = {}
    for member, partitions in round_.assigned.items():
        for partition in partitions:
            if partition in owner:
                return f"{partition} is given to {owner[partition]} and to {member}"
            owner[partition] = member
    return None


def complete(subject: Subject, round_: Round) -> str | None:
    """A partition without a member is withheld from its new owner, or declared as left out."""
    topics = {topic for subscription in round_.subscriptions.values() for topic in subscription.topics}
    wanted = {
        TopicPartition(topic, number)
        for topic in topics
        if topic in round_.topics
        for number in range(round_.topics[topic].partitions)
    }
    for given in (round_.assigned, round_.owned):
        for partitions in given.values():
            wanted.difference_update(partitions)
    if wanted and subject.promises.leaves_out is not None:
        wanted -= subject.promises.leaves_out(round_.topics, round_.subscriptions)
    if not wanted:
        return None
    named = ", ".join(map(str, sorted(wanted)[:5]))
    more = f" and {len(wanted) - 5} more" if len(wanted) > 5 else ""
    return f"{named}{more} without an owner"


def revoked_first(subject: Subject, round_: Round) -> str | None:
    """No member gets a partition while another one owns it (validateCooperativeAssignment, KIP-429)."""
    if not subject.cooperative:
        return None
    owners = {partition: member for member, owned in round_.owned.items() for partition in owned}
    for member, partitions in round_.assigned.items():
        mine = set(round_.owned[member])
        for partition in partitions:
            if partition not in mine and partition in owners:
                return f"{member} is granted {partition} before {owners[partition]} has given it up"
    return None


def deterministic(subject: Subject, round_: Round) -> str | None:
    """Asked twice, the assignor gives the same answer, with its lists in the same order."""
    second = _again(subject, round_, round_.subscriptions)
    first = {member: list(partitions) for member, partitions in round_.assigned.items()}
    return None if second == first else f"the same question was answered otherwise: {_differ(first, second)}"


def any_member_order(subject: Subject, round_: Round) -> str | None:
    """With the members in reverse order, and sorted by id, every member gets the same."""
    first = {member: sorted(partitions) for member, partitions in round_.assigned.items()}
    for order in (reversed(list(round_.subscriptions)), sorted(round_.subscriptions)):
        named = list(order)
        second = _again(subject, round_, named)
        if second is not None:
            second = {member: sorted(partitions) for member, partitions in second.items()}
        if second != first:
            return f"asked in the order {', '.join(named)}: {_differ(first, second)}"
    return None


Lists = Mapping[str, list[TopicPartition]]


def _again(subject: Subject, round_: Round, members: Iterable[str]) -> Lists | None:
    asked = {member: round_.subscriptions[member] for member in members}
    try:
        result = subject.assignor.assign(dict(round_.topics), asked)
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
    named = [str(partition) for partition in partitions] if isinstance(partitions, list | tuple) else []
    return ", ".join(named) or "nothing"


def settles(_: Subject, change: Change) -> str | None:
    """Cooperative rounds come to an end."""
    return None if change.settled else f"after {len(change.rounds)} rounds members still have to revoke"


def balance(subject: Subject, change: Change) -> str | None:
    """Loads differ by no more than promised; without a promise, by one partition."""
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
    """Partitions leave their owner for balance only. If claims may be stale nothing is expected."""
    measured = moves(subject, change)
    if measured is None or measured[0] <= measured[1]:
        return None
    return f"{measured[0]} moved, {measured[1]} would have done"


def moves(subject: Subject, change: Change) -> tuple[int, int] | None:
    """The number of moves, and the fewest of a best-balanced assignment; None if that is unknown."""
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
    """One member has partition n of all topics, or of all topics of equal size."""
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


#: Asked of every round, in this order, up to the first one that shows an invalid answer.
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
#: If an answer breaks one of these, no further question is asked.
SOUND = frozenset({ANSWERS, SUBSCRIBED, ONCE})
