"""The properties of an assignor, each a question to one round or to one change of a group.

The assigned things are units here: partitions or, if partition n of all topics goes to one member (KIP-315),
partition numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from groupstorm.assignors.check.history import Assigned, Change, Round
from groupstorm.assignors.contract import AssignmentRefused, Assignor, RebalanceProtocol, TopicMetadata
from groupstorm.assignors.promises import Balance, CoPartitioning, Promises
from groupstorm.assignors.userdata import Subscription, TopicPartition

#: Brute force takes milliseconds up to here: 11 units to 4 members have 364 different loads.
MAX_MEMBERS = 4
MAX_UNITS = 11

#: A partition, or the number of one under every topic's name at once.
Unit = TopicPartition
_ALL_TOPICS = ""


class Units(NamedTuple):
    """Per unit its possible members and its owner before; per member its units now."""

    takers: Mapping[Unit, tuple[str, ...]]
    before: Mapping[Unit, str]
    after: Mapping[str, frozenset[Unit]]

    @property
    def loads(self) -> dict[str, int]:
        return {member: len(units) for member, units in self.after.items()}

    @property
    def moved(self) -> int:
        """Units whose member before has them no longer."""
        return sum(unit not in self.after[owner] for unit, owner in self.before.items())

    @property
    def is_small(self) -> bool:
        return len(self.after) <= MAX_MEMBERS and len(self.takers) <= MAX_UNITS


def units_of(
    topics: Mapping[str, TopicMetadata],
    subscriptions: Mapping[str, Subscription],
    before: Mapping[TopicPartition, str],
    after: Assigned,
    co_partitioned: CoPartitioning | None,
) -> Units:
    """``before`` may name members and partitions that are gone; these do not count."""
    whole = co_partitioned is CoPartitioning.ANY_SIZES

    def unit(partition: TopicPartition) -> Unit:
        return Unit(_ALL_TOPICS, partition.partition) if whole else partition

    takers: dict[Unit, tuple[str, ...]] = {}
    sizes = {
        topic: topics[topic].partitions
        for subscription in subscriptions.values()
        for topic in subscription.topics
        if topic in topics
    }
    for topic, size in sizes.items():
        members = tuple(name for name, subscription in subscriptions.items() if topic in subscription.topics)
        for number in range(min(sizes.values()) if whole else size):
            takers[unit(TopicPartition(topic, number))] = members
    return Units(
        takers,
        {
            unit(partition): owner
            for partition, owner in before.items()
            if unit(partition) in takers and owner in takers[unit(partition)]
        },
        {name: frozenset(map(unit, after.get(name, ()))) & takers.keys() for name in subscriptions},
    )


class Optimum(NamedTuple):
    """The best-balanced loads, the highest first, and the fewest moves to them."""

    loads: tuple[int, ...]
    moves: int


def optimum(units: Units) -> Optimum:
    """Try every way to give every unit to one of its takers."""
    members = list(units.after)
    place = {member: number for number, member in enumerate(members)}
    most_kept: dict[tuple[int, ...], int] = {(0,) * len(members): 0}
    for unit, takers in units.takers.items():
        further: dict[tuple[int, ...], int] = {}
        for loads, kept in most_kept.items():
            for taker in takers:
                number = place[taker]
                more = (*loads[:number], loads[number] + 1, *loads[number + 1 :])
                stays = kept + (units.before.get(unit) == taker)
                further[more] = max(further.get(more, 0), stays)
        most_kept = further
    best = min(most_kept, key=lambda loads: (_highest_first(loads), -most_kept[loads]))
    return Optimum(_highest_first(best), len(units.before) - most_kept[best])


def _highest_first(loads: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(loads, reverse=True))


def fewest_moves_when_equal(units: Units) -> int:
    """The fewest moves to a balance of one with equal subscriptions, in a group of any size.

    Every member keeps its units up to the smaller load. Of the members that had more, as many keep one more
    as may have the higher load.
    """
    owned = dict.fromkeys(units.after, 0)
    for owner in units.before.values():
        owned[owner] += 1
    least, extras = divmod(len(units.takers), len(owned))
    kept = sum(min(count, least) for count in owned.values())
    kept += min(sum(count > least for count in owned.values()), extras)
    return len(units.before) - kept


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
    NEVER_ASKED = "never asked"


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
    except AssignmentRefused:
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
