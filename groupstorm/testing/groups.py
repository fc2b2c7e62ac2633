"""A group as a test looks at it: what it is now, and waiting until it is what the test wants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from groupstorm.coordinator.states import DEAD, GroupState
from groupstorm.problems import InputError
from groupstorm.testing.waiting import DEFAULT_TIMEOUT_S, Happening, until, wait

STATES = (*(str(state) for state in GroupState), DEAD)


class GroupTimeout(AssertionError):
    """A group did not become what a test waits for; the message says what it is, and what happened."""


class MemberView(NamedTuple):
    """A member of a group. ``client_host`` as Kafka prints it; ``partitions`` likewise: orders-0."""

    client_id: str
    member_id: str
    group_instance_id: str | None
    client_host: str
    partitions: tuple[str, ...]


class GroupView(NamedTuple):
    """A group at one moment.

    ``state`` is Kafka's name, Dead where there is no such group. ``generation`` is None where the broker does
    not tell it. ``is_settled``: whoever has joined has been sent its assignment.
    """

    state: str
    generation: int | None
    members: tuple[MemberView, ...]
    is_settled: bool

    @property
    def partitions(self) -> int:
        """How many partitions are assigned."""
        return sum(len(member.partitions) for member in self.members)


NO_GROUP = GroupView(DEAD, None, (), is_settled=True)


class Wanted(NamedTuple):
    """What a test waits for; None: whatever it is."""

    state: str
    members: int | None = None
    partitions: int | None = None

    def is_met(self, group: GroupView) -> bool:
        """Whether the group is so now. Stable is it only when everybody has its assignment."""
        return (
            group.state == self.state
            and (self.state != GroupState.STABLE or group.is_settled)
            and self.members in (None, len(group.members))
            and self.partitions in (None, group.partitions)
        )

    def __str__(self) -> str:
        members = [] if self.members is None else [f"{self.members} members"]
        partitions = [] if self.partitions is None else [f"{self.partitions} partitions assigned"]
        more = " and ".join(members + partitions)
        return f"{self.state} with {more}" if more else self.state


class Group(ABC):
    """One group of a broker. Members are named by what they are; ``id`` is what clients call group.id."""

    def __init__(self, group_id: str) -> None:
        self.id = group_id

    async def stable(
        self,
        members: int | None = None,
        *,
        partitions: int | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """Wait until the group is Stable and everybody has been sent its assignment, with so many members
        and so many assigned partitions where that is said.

        A client takes its assignment a moment after it was sent. A cooperative group is Stable between its
        two rounds as well: name ``partitions`` to wait for the second. Raises GroupTimeout.
        """
        wanted = Wanted(GroupState.STABLE, members, partitions)
        await until(self._waiting(wanted), timeout_s, partial(self._too_late, wanted))

    def wait_stable(
        self,
        members: int | None = None,
        *,
        partitions: int | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """`stable` for tests that are not async."""
        wanted = Wanted(GroupState.STABLE, members, partitions)
        wait(self._waiting(wanted), timeout_s, partial(self._too_late, wanted))

    async def reaches(self, state: str, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Wait until the group is in a state, by Kafka's name. Raises GroupTimeout, InputError."""
        wanted = Wanted(known_state(state))
        await until(self._waiting(wanted), timeout_s, partial(self._too_late, wanted))

    def wait_reaches(self, state: str, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """`reaches` for tests that are not async."""
        wanted = Wanted(known_state(state))
        wait(self._waiting(wanted), timeout_s, partial(self._too_late, wanted))

    @property
    def state(self) -> str:
        """Empty, PreparingRebalance, CompletingRebalance, Stable; Dead where there is no such group."""
        return self.view().state

    @property
    def members(self) -> tuple[MemberView, ...]:
        return self.view().members

    @property
    def assignment(self) -> Mapping[str, tuple[str, ...]]:
        """Member id -> partitions, as Kafka prints them: orders-0."""
        return {member.member_id: member.partitions for member in self.view().members}

    @property
    def generation(self) -> int | None:
        """The group's generation; None where there is no group, and where a real broker does not tell it."""
        return self.view().generation

    @abstractmethod
    def view(self) -> GroupView:
        """The group as it is now."""

    @abstractmethod
    def committed(self, topic: str, partition: int) -> int | None:
        """The committed offset of a partition; None where nothing is committed."""

    @abstractmethod
    def _waiting(self, wanted: Wanted) -> Happening:
        """Is done as soon as the group is as wanted; cancelled when nobody waits any more."""

    @abstractmethod
    def _last_events(self) -> Sequence[str]:
        """The last events of the group, one line each; none where the broker does not tell them."""

    def _too_late(self, wanted: Wanted, timeout_s: float) -> GroupTimeout:
        return GroupTimeout(failure(self.id, wanted, timeout_s, self.view(), self._last_events()))


def failure(
    group_id: str, wanted: Wanted, timeout_s: float, view: GroupView, last_events: Sequence[str]
) -> str:
    """What was waited for, what the group is, and what happened last."""
    lines = [f"group {group_id} was not {wanted} within {timeout_s:g} s", f"it is {_described(view)}"]
    lines += [f"  {member.client_id} ({member.member_id}): {_listed(member)}" for member in view.members]
    if last_events:
        lines += ["its last events:", *(f"  {line}" for line in last_events)]
    elif view.state == DEAD:
        lines.append("no client has asked for it: is it the group.id that your application uses?")
    return "\n".join(lines)


def _described(view: GroupView) -> str:
    generation = "" if view.generation is None else f", generation {view.generation}"
    count = len(view.members)
    return f"{view.state}{generation}, with {count} member{'' if count == 1 else 's'}"


def _listed(member: MemberView) -> str:
    return ", ".join(member.partitions) or "no partitions"


def known_state(name: str) -> str:
    """A state by Kafka's name. Raises InputError for another one."""
    if name not in STATES:
        raise InputError(f"state: {name!r}: expected one of {', '.join(STATES)}")
    return name
