"""The rebalances, absences and restarts that belong to members and times: what the rules share.

Members that went and came back, or were replaced, are the raw material of deployments, waves and scaling.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from typing import Final, NamedTuple

from groupstorm.explain.history import History
from groupstorm.history.rebalances import REPLACED, Absence, Change, ChangeKind, Rebalance, Round
from groupstorm.trace.events.group_states import Cause, GroupState

SECOND_US: Final = 1_000_000
#: So long after what caused it a rebalance still belongs to it: a member comes back, and is told to rejoin.
AFTER_US: Final = 30 * SECOND_US


def concerned(rebalance: Rebalance) -> set[str]:
    """The members behind a rebalance: who began its rounds, who came and who went."""
    members = {one.member for one in rebalance.rounds} | {change.member for change in rebalance.changes}
    members.discard("")
    return members


def begun_by(history: History, members: Collection[str], from_us: int, to_us: int) -> list[Rebalance]:
    """Rebalances that began in a time, and that one of ``members`` began, came in or went in."""
    return [
        one
        for one in history.rebalances
        if from_us <= one.begun_us <= to_us and not concerned(one).isdisjoint(members)
    ]


def was_empty(rebalance: Rebalance) -> bool:
    """Whether a row says that the group had no members before it."""
    return rebalance.rounds[0].begun.get("previous_state") == GroupState.EMPTY


def rounds_of(history: History) -> Iterator[tuple[Rebalance, Round]]:
    """The rounds, each with its rebalance."""
    return ((rebalance, one) for rebalance in history.rebalances for one in rebalance.rounds)


def under_way(history: History, spans: Collection[tuple[int, int]]) -> list[Rebalance]:
    """The rebalances in which the group was at some time of ``spans``, each from one time to another."""
    return [
        one
        for one in history.rebalances
        if any(one.begun_us <= to_us and from_us <= one.until_us(history.to_us) for from_us, to_us in spans)
    ]


def under_way_at(history: History, times_us: Iterable[int]) -> list[Rebalance]:
    """The rebalances in which the group was at these times."""
    return [one for time_us in times_us for one in under_way(history, [(time_us, time_us)])]


def spans_of(times_us: Iterable[int], apart_us: int) -> list[tuple[int, int]]:
    """From when to when the times go on that are no further apart."""
    spans: list[tuple[int, int]] = []
    for time_us in sorted(times_us):
        if spans and time_us - spans[-1][1] <= apart_us:
            spans[-1] = spans[-1][0], time_us
        else:
            spans.append((time_us, time_us))
    return spans


def unwritten_spans(history: History, apart_us: int) -> list[tuple[int, int]]:
    """From when to when the coordinator could not write what the group's members did."""
    rounds = (one.begun_us for _, one in rounds_of(history) if one.cause == Cause.APPEND_FAILED)
    return spans_of([*rounds, *(one.time_us for one in history.of_kind("append-failed"))], apart_us)


def is_within(time_us: int, spans: Iterable[tuple[int, int]]) -> bool:
    """Whether it lies in one of the spans, or within a second of it."""
    return any(from_us - SECOND_US <= time_us <= to_us + SECOND_US for from_us, to_us in spans)


def begins_after(rebalance: Rebalance, asked_us: int) -> bool:
    """Whether one of its rounds began so soon after a member had asked for it."""
    return any(0 <= one.begun_us - asked_us <= SECOND_US for one in rebalance.rounds)


def with_changes(history: History, changes: Iterable[Change]) -> list[Rebalance]:
    """Rebalances in which one of ``changes`` happened."""
    wanted = {(one.kind, one.row["seq"]) for one in changes}
    return [
        one
        for one in history.rebalances
        if any((change.kind, change.row["seq"]) in wanted for change in one.changes)
    ]


def killed_by_records(history: History) -> list[Change]:
    """Members of a share group that went because work on a record had ended their process."""
    killed = {(one.member, one.time_us) for one in history.of_kind("killed-by-record")}
    alive = ((one, one.alive) for one in history.went() if one.alive is not None)
    return [one for one, row in alive if (one.member, row["time_us"]) in killed]


def away(history: History, members: Collection[str], from_us: int, to_us: int) -> list[Absence]:
    """Absences of ``members`` that began in a time."""
    return [one for one in history.absences if one.member in members and from_us <= one.from_us <= to_us]


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Names in the order of their appearance, without empty ones."""
    return tuple(name for name in dict.fromkeys(names) if name)


#: A process that stops is back under its name so soon: Kubernetes' restarts take seconds to minutes.
BACK_US: Final = 600_000_000
#: A process of another name comes so close to one that stops, before (max_surge) or after it.
REPLACEMENT_US: Final = 60_000_000

#: The group still forms if the next member comes so soon after the last rebalance was over.
FORMING_US: Final = 30_000_000

#: Causes of removal that a process gives itself by stopping in order.
PLANNED: Final = frozenset({"left", REPLACED})


def has_ended(gone: Change) -> bool:
    """Whether the last row of a member before it went says that its process ended."""
    return gone.is_closed or (gone.alive or {}).get("event") == "member_crashed"


class Restart(NamedTuple):
    """``went`` and ``came``: a process stopped, and this one took its place."""

    went: Change
    came: Change

    @property
    def stopped_us(self) -> int | None:
        """When the process stopped. None if no row says it: a coordinator goes on with a static member until
        another process takes its place, and its last sign of life may be hours before it stopped."""
        if self.went.cause != REPLACED:
            return self.went.time_us
        last = self.went.alive
        return int(last["time_us"]) if last is not None and has_ended(self.went) else None

    @property
    def down_us(self) -> int:
        """When the process stopped, at the latest."""
        return self.up_us if self.stopped_us is None else self.stopped_us

    @property
    def up_us(self) -> int:
        return self.came.time_us

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.went.member, self.came.member)))


def find_stop(history: History) -> list[Change]:
    """The departures with which somebody stopped the group: the last ones, as far as they were in order and
    each within a minute of the next; the group is empty when the trace ends, and nobody has come since. Empty
    if that is not so.

    A static member does not say that it leaves: it was closed, and its session expired. A consumer that ends
    with an error leaves, too, and nobody has stopped it.
    """
    came = history.came()
    if not history.is_empty or not came:
        return []
    found: list[Change] = []
    late = {one.time_us for one in history.of_kind("poll-timeout-told")}
    failed = {one.member for one in history.of_kind("member-failed")}
    for one in reversed(history.went()):
        in_order = one.cause == Cause.LEFT or (one.cause == Cause.SESSION_EXPIRED and one.is_closed)
        in_order = in_order and one.member not in failed
        is_earlier = bool(found) and found[-1].time_us - one.time_us > REPLACEMENT_US
        if one.time_us <= came[-1].time_us or one.time_us in late or is_earlier or not in_order:
            break
        found.append(one)
    return found[::-1]


def find_restarts(history: History) -> list[Restart]:
    """Pair every departure with the arrival that replaces it: of the same name, else the first of a new
    name around it. Nobody else is replaced by a name that was in the group before, or that came when the
    group formed; and nobody is who stopped with the group."""
    came = history.came()
    stop = {one.row["seq"] for one in find_stop(history)}
    taken: set[int] = set()
    formed_at_us, former = formed_us(history), _former(history)
    bound = {
        number for number, one in enumerate(came) if one.time_us <= formed_at_us or one.row["seq"] in former
    }
    restarts: list[Restart] = []
    alone: list[Change] = []
    by_name: dict[str, list[int]] = {}
    for number, change in enumerate(came):
        by_name.setdefault(change.member, []).append(number)
    for went in history.went():
        if went.row["seq"] in stop:
            continue
        same = _same_name(went, came, by_name.get(went.member, ()), taken)
        if same is None:
            alone.append(went)
        else:
            taken.add(same)
            restarts.append(Restart(went, came[same]))
    first = 0
    for went in alone:
        while first < len(came) and came[first].time_us < went.time_us - REPLACEMENT_US:
            first += 1
        other = _other_name(went, came, first, bound | taken)
        if other is not None:
            taken.add(other)
            restarts.append(Restart(went, came[other]))
    return sorted(restarts, key=lambda one: one.down_us)


def formed_us(history: History) -> int:
    """When the group had formed, if the history counts from the empty group on: the end of its first
    rebalances, in which members only came. Else its beginning."""
    if not history.began_empty or history.from_us > history.first_us:
        return history.from_us
    until_us = history.first_us
    for one in history.rebalances:
        came = all(change.kind is ChangeKind.CAME for change in one.changes)
        if one.ended_us is None or not came or one.begun_us - until_us > FORMING_US:
            break
        until_us = one.ended_us
    return until_us


def _former(history: History) -> set[int]:
    """The rows with which members came that had been in the group under the same name."""
    gone: set[str] = set()
    found: set[int] = set()
    for one in history.changes:
        if one.kind is ChangeKind.WENT:
            gone.add(one.member)
        elif one.member in gone:
            found.add(one.row["seq"])
    return found


def _same_name(went: Change, came: Sequence[Change], numbers: Sequence[int], taken: set[int]) -> int | None:
    free = [number for number in numbers if number not in taken]
    if went.cause == REPLACED:
        return next((number for number in free if came[number].row is went.row), None)
    own = (came[number].time_us for number in numbers if came[number].member_id == went.member_id)
    from_us = max((us + 1 for us in own if us <= went.time_us), default=0)
    from_us, to_us = max(from_us, went.time_us - REPLACEMENT_US), went.time_us + BACK_US
    return next((number for number in free if from_us <= came[number].time_us <= to_us), None)


def _other_name(went: Change, came: Sequence[Change], first: int, taken: set[int]) -> int | None:
    """The first free arrival of another name around a departure: so most of them find one."""
    until_us = went.time_us + REPLACEMENT_US
    near = takewhile(lambda number: came[number].time_us <= until_us, range(first, len(came)))
    free = (number for number in near if number not in taken and came[number].member != went.member)
    return next(free, None)


def away_most(restarts: Sequence[Restart]) -> int:
    """The largest number of processes that were away at one instant."""
    steps = sorted(
        step for one in restarts if one.up_us > one.down_us for step in ((one.down_us, 1), (one.up_us, -1))
    )
    return max(accumulate(step for _, step in steps), default=0)
