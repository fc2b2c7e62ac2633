"""A group of a test: its present state, its lag, and waiting for another state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, overload

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.classic.states import DEAD
from groupstorm.coordinator.consumer.group import ConsumerGroupState
from groupstorm.problems import InputError
from groupstorm.testing.arguments import Setting, holds, number, one_of, optional_number, text
from groupstorm.testing.waiting import DEFAULT_TIMEOUT_S, WaitFuture, until, wait
from groupstorm.trace.events.group_states import GroupState
from groupstorm.wording import counted


class LogEnds(NamedTuple):
    """The first offset of a partition's log, and the offset that its next record gets."""

    start: int
    end: int


class Progress(NamedTuple):
    """A group at one moment. All by partition as Kafka prints it (orders-0).

    ``ends``: of all partitions of the topics that count; ``committed``: the group's offsets; ``assigned``:
    the partitions that its members have.
    """

    ends: Mapping[str, LogEnds]
    committed: Mapping[str, int]
    assigned: Collection[str]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that the group has committed in or that its members have partitions of."""
        return topics_of([*self.committed, *self.assigned])

    def lag(self) -> dict[str, int | None]:
        """Records behind the committed offset, for every partition that is assigned or has one; None for one
        without a committed offset, as `kafka-consumer-groups` prints -."""
        shown = sorted({*self.committed, *self.assigned} & {*self.ends}, key=TopicPartition.parse)
        return {
            one: self.ends[one].end - self.committed[one] if one in self.committed else None for one in shown
        }

    def behind(self, topics: Collection[str]) -> dict[str, int]:
        """The partitions of these topics whose end is not committed, and how many records each has left.
        Records before the beginning of the log were deleted."""
        left = {
            one: ends.end - max(self.committed.get(one, ends.start), ends.start)
            for one, ends in self.ends.items()
            if one.rpartition("-")[0] in topics
        }
        return {one: left[one] for one in sorted(left, key=TopicPartition.parse) if left[one] > 0}

    def missing(self, topics: Iterable[str]) -> list[str]:
        """Return those of these topics that do not exist."""
        there = topics_of(self.ends)
        return [one for one in topics if one not in there]

    def is_at_end(self, topics: Collection[str]) -> bool:
        """Whether the group has committed the ends of these topics, which exist; none: of `topics`."""
        wanted = topics or self.topics
        return bool(wanted) and not self.missing(topics) and not self.behind(wanted)


def topics_of(partitions: Iterable[str]) -> tuple[str, ...]:
    """The topics of partitions as Kafka prints them, in order."""
    return tuple(sorted({one.rpartition("-")[0] for one in partitions}))


STATES = tuple(dict.fromkeys([*map(str, GroupState), *map(str, ConsumerGroupState), DEAD]))

#: The types of a group, and the protocols of a member, by Kafka's names.
CLASSIC, CONSUMER, SHARE = "classic", "consumer", "share"


class GroupTimeout(AssertionError):
    """A group did not fulfil a condition in time; the message describes the group and its last events."""


class MemberView(NamedTuple):
    """A member of a group. ``client_host`` as Kafka prints it; ``partitions`` likewise: orders-0.

    ``protocol``: the one that the member speaks, `classic`, `consumer` or `share`. ``epoch`` and ``target``:
    in a consumer group (KIP-848) and a share group (KIP-932) the epoch that the member has reached, and the
    partitions that it shall have. In a consumer group ``partitions`` has those too that the member has to
    give up and may still own.
    """

    client_id: str
    member_id: str
    group_instance_id: str | None
    client_host: str
    partitions: tuple[str, ...]
    protocol: str = CLASSIC
    epoch: int | None = None
    target: tuple[str, ...] = ()


class GroupView(NamedTuple):
    """A group at one moment.

    ``state``: Kafka's name, Dead if there is no such group. ``generation``: None if the broker does not tell
    it; of a consumer or share group it is the group epoch. ``is_settled``: the broker has sent every member
    its assignment; in a consumer group every member has also said that it owns nothing else. ``type``:
    `classic`, `consumer` or `share`, None if there is no such group.
    """

    state: str
    generation: int | None
    members: tuple[MemberView, ...]
    is_settled: bool
    type: str | None = CLASSIC

    @property
    def owners(self) -> Mapping[str, tuple[str, ...]]:
        """Partition (orders-0) -> the client ids of the members that have it."""
        owners: dict[str, tuple[str, ...]] = {}
        for member in self.members:
            for partition in member.partitions:
                owners[partition] = (*owners.get(partition, ()), member.client_id)
        return owners

    @property
    def partitions(self) -> int:
        """The number of partitions that are assigned."""
        return sum(len(member.partitions) for member in self.members)


class LockedRecords(NamedTuple):
    """Neighbouring records of a share group that a member has and has not acknowledged yet.

    ``client_id``: the member's, None if it is not in the group any more. ``lock_ms``: what is left of the
    lock's time.
    """

    first_offset: int
    last_offset: int
    member_id: str
    client_id: str | None
    delivery_count: int
    lock_ms: int


NO_GROUP = GroupView(DEAD, None, (), is_settled=True, type=None)


class GroupCondition(NamedTuple):
    """A condition that a test waits for; None: any number."""

    state: str
    members: int | None = None
    partitions: int | None = None

    def is_met(self, group: GroupView) -> bool:
        """Whether the group fulfils the condition. Stable also means that every member has its assignment."""
        return (
            group.state == self.state
            and (self.state != GroupState.STABLE or group.is_settled)
            and self.members in (None, len(group.members))
            and self.partitions in (None, group.partitions)
        )

    def __str__(self) -> str:
        members = [] if self.members is None else [counted(self.members, "member")]
        partitions = [] if self.partitions is None else [f"{counted(self.partitions, 'partition')} assigned"]
        more = " and ".join(members + partitions)
        return f"{self.state} with {more}" if more else self.state


class GroupPredicate(NamedTuple):
    """A condition that a test states itself; ``what``: its name in the message of a failure."""

    is_met: Callable[[GroupView], bool]
    what: str

    def __str__(self) -> str:
        return self.what


#: The condition that a test waits for.
Wanted = GroupCondition | GroupPredicate


def own_condition(condition: Callable[[GroupView], bool], what: str) -> GroupPredicate:
    """Raises InputError if the condition is no function."""
    if not callable(condition):
        raise InputError(f"condition: {condition!r}: expected a function of the group's view")
    return GroupPredicate(lambda view: holds(condition(view)), text("what", what))


def stable_condition(members: object, partitions: object) -> GroupCondition:
    """Stable with so many members and assigned partitions. Raises InputError."""
    if members == 0:
        raise InputError('members: 0: a group without members is never Stable: wait until it reaches "Empty"')
    wanted = optional_number("members", members), optional_number("partitions", partitions)
    return GroupCondition(GroupState.STABLE, *wanted)


class GroupUnderTest(ABC):
    """One group of a broker. ``id`` is the clients' group.id."""

    def __init__(self, group_id: str) -> None:
        self.id = group_id

    async def stable(
        self,
        members: int | None = None,
        *,
        partitions: int | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """Wait until the group is Stable and the broker has sent every member its assignment. ``members``,
        ``partitions``: with so many members, with so many assigned partitions.

        A client takes its assignment a moment after it was sent. A cooperative group is Stable between its
        two rounds as well: name ``partitions`` to wait for the second. A consumer group (KIP-848) is Stable
        when every member has all of its target and nothing else. Raises GroupTimeout.
        """
        wanted = stable_condition(members, partitions)
        await until(self._waiting(wanted), timeout_s, partial(self._make_timeout, wanted))

    def wait_stable(
        self,
        members: int | None = None,
        *,
        partitions: int | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """`stable` for tests that are not async."""
        wanted = stable_condition(members, partitions)
        wait(self._waiting(wanted), timeout_s, partial(self._make_timeout, wanted))

    async def reaches(self, state: str, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Wait until the group is in a state, by Kafka's name. Raises GroupTimeout, InputError."""
        wanted = GroupCondition(known_state(state))
        await until(self._waiting(wanted), timeout_s, partial(self._make_timeout, wanted))

    def wait_reaches(self, state: str, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """`reaches` for tests that are not async."""
        wanted = GroupCondition(known_state(state))
        wait(self._waiting(wanted), timeout_s, partial(self._make_timeout, wanted))

    async def until(
        self,
        condition: Callable[[GroupView], bool],
        what: str = "so",
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """Wait until a condition of yours holds for the group; ``what`` names it in the message of a failure.
        The condition is looked at on another thread, every few ms: it may ask the group and the broker, and
        must not wait for clients. Raises GroupTimeout."""
        wanted = own_condition(condition, what)
        await until(self._waiting(wanted), timeout_s, partial(self._make_timeout, wanted))

    def wait_until(
        self,
        condition: Callable[[GroupView], bool],
        what: str = "so",
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """`until` for tests that are not async."""
        wanted = own_condition(condition, what)
        wait(self._waiting(wanted), timeout_s, partial(self._make_timeout, wanted))

    @abstractmethod
    def configure(self, settings: Mapping[str, Setting]) -> None:
        """Set options of the group, by Kafka's names: share.auto.offset.reset. Raises InputError."""

    @property
    def type(self) -> str | None:
        """``classic``, ``consumer`` (KIP-848) or ``share`` (KIP-932); None if there is no such group. It may
        change."""
        return self.view().type

    @property
    def state(self) -> str:
        """Empty, PreparingRebalance, CompletingRebalance, Stable; of a consumer group Empty, Assigning,
        Reconciling, Stable; of a share group Empty, Stable; Dead if there is no such group."""
        return self.view().state

    @property
    def settled(self) -> bool:
        """Whether the group is Stable and the broker has sent every member its assignment."""
        view = self.view()
        return view.state == GroupState.STABLE and view.is_settled

    @property
    def owners(self) -> Mapping[str, tuple[str, ...]]:
        """Partition (orders-0) -> the client ids of the members that have it, as the broker knows it."""
        return self.view().owners

    @property
    def members(self) -> tuple[MemberView, ...]:
        return self.view().members

    @property
    def assignment(self) -> Mapping[str, tuple[str, ...]]:
        """Member id -> partitions, as Kafka prints them: orders-0."""
        return {member.member_id: member.partitions for member in self.view().members}

    @property
    def generation(self) -> int | None:
        """A classic group's generation; None on a real broker, which does not tell it. The epoch of another
        group. None if there is no group."""
        return self.view().generation

    @abstractmethod
    def view(self) -> GroupView:
        """The group as it is now."""

    @overload
    def committed(self) -> Mapping[str, int]: ...

    @overload
    def committed(self, topic: str, partition: int) -> int | None: ...

    def committed(
        self, topic: str | None = None, partition: int | None = None
    ) -> Mapping[str, int] | int | None:
        """The committed offset of a partition, None if the group has not committed any; without arguments all
        that it has, by partition (orders-0). Of a share group the end of the log less the records that it is
        not done with: it may be done with some and not with others before them. Raises InputError if there is
        no such partition."""
        if topic is None and partition is None:
            return self._progress(()).committed
        name = self._topic(text("topic", topic))
        asked = f"{name}-{number('partition', partition)}"
        progress = self._progress((name,))
        if asked not in progress.ends and asked not in progress.committed:
            missing = progress.missing((name,))
            raise InputError(f"{asked}: there is no such {'topic' if missing else 'partition'}")
        return progress.committed.get(asked)

    def lag(self) -> Mapping[str, int | None]:
        """Records behind the committed offset, by partition (orders-0), for each that is assigned or has one;
        None if the group has not committed any offset there."""
        return self._progress(None).lag()

    async def caught_up(self, *topics: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Wait until the group has committed the end of every partition of these topics; without names: of
        those in which it has committed or which its members have. Raises GroupTimeout."""
        wanted = self._named(topics)
        await until(self._waiting_caught_up(wanted), timeout_s, partial(self._make_behind, wanted))

    def wait_caught_up(self, *topics: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """`caught_up` for tests that are not async."""
        wanted = self._named(topics)
        wait(self._waiting_caught_up(wanted), timeout_s, partial(self._make_behind, wanted))

    def _named(self, topics: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._topic(text("topics", topic)) for topic in topics)

    def _make_behind(self, topics: tuple[str, ...], timeout_s: float) -> GroupTimeout:
        progress = self._progress(topics or None)
        wanted = topics or progress.topics
        left = [
            *(
                f"  {one}: {counted(records, 'record')} left"
                for one, records in progress.behind(wanted).items()
            ),
            *(f"  {one}: there is no such topic" for one in progress.missing(topics)),
        ]
        what = ", ".join(wanted) or "any topic"
        lines = [f"group {self.id} had not committed the end of {what} within {timeout_s:g} s", *left]
        view = self.view()
        return GroupTimeout("\n".join([*lines, *_present(view, self._last_events())]))

    @abstractmethod
    def _topic(self, name: str) -> str:
        """The topic's name on the broker."""

    @abstractmethod
    def _progress(self, topics: Sequence[str] | None) -> Progress:
        """The group's offsets, and the ends of these topics; None: of `Progress.topics`."""

    @abstractmethod
    def _waiting_caught_up(self, topics: Sequence[str]) -> WaitFuture:
        """As `_waiting`, for `caught_up`."""

    @abstractmethod
    def _waiting(self, wanted: Wanted) -> WaitFuture:
        """Is done as soon as the group fulfils the condition. The test cancels it when it gives up."""

    @abstractmethod
    def _last_events(self) -> Sequence[str]:
        """The last events of the group, one line each; none if the broker does not tell them."""

    def _make_timeout(self, wanted: Wanted, timeout_s: float) -> GroupTimeout:
        return GroupTimeout(failure(self.id, wanted, timeout_s, self.view(), self._last_events()))


def failure(
    group_id: str, wanted: Wanted, timeout_s: float, view: GroupView, last_events: Sequence[str]
) -> str:
    """The condition, the present group and its last events, for the message of a failure."""
    title = f"group {group_id} was not {wanted} within {timeout_s:g} s"
    return "\n".join([title, *_present(view, last_events)])


def _present(view: GroupView, last_events: Sequence[str]) -> list[str]:
    """The present group and its last events, one line each."""
    lines = [f"it is {_described(view)}"]
    lines += [f"  {member.client_id} ({member.member_id}): {_listed(member)}" for member in view.members]
    if last_events:
        lines += ["its last events:", *(f"  {line}" for line in last_events)]
    elif view.state == DEAD:
        uses = "this group.id, subscribe(), a topic that exists, and the broker's security"
        lines.append(f"no client has joined it: does your application use {uses}?")
    return lines


def _described(view: GroupView) -> str:
    word = "epoch" if view.type in (CONSUMER, SHARE) else "generation"
    generation = "" if view.generation is None else f", {word} {view.generation}"
    count = len(view.members)
    return f"{view.state}{generation}, with {count} member{'' if count == 1 else 's'}"


def _listed(member: MemberView) -> str:
    shown = ", ".join(member.partitions) or "no partitions"
    if member.epoch is None:
        return shown
    target = (
        ""
        if set(member.target) == set(member.partitions)
        else f"; shall have {', '.join(member.target) or 'none'}"
    )
    return f"epoch {member.epoch}: {shown}{target}"


def known_state(name: str) -> str:
    """A state by Kafka's name. Raises InputError for another one."""
    return one_of("state", name, STATES)
