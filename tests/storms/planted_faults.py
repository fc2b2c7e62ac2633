"""Faults of members, of the world and of the coordinator, planted for tests of the checks and of fuzzing.

Each replaces one rule, as a wrong edit of the code would. A fault is planted with pytest's monkeypatch, or in
a process of its own by name (`PLANT`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from inspect import isfunction
from typing import Any, Protocol

from groupstorm.assignors.contract import AssignmentResult, RebalanceProtocol, TopicMetadata
from groupstorm.assignors.userdata import Subscription, TopicPartition, decode_assignment
from groupstorm.clients.error_tables import RejoinCause
from groupstorm.clients.member_session import Generation
from groupstorm.clients.membership import Membership
from groupstorm.clients.operations import ASSIGNED, CallbackKind, Operation, RunCallback
from groupstorm.coordinator import offset_requests
from groupstorm.coordinator.classic import changes, rebalances, sessions, states
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.history import gaps
from groupstorm.history.records import RecordSums
from groupstorm.storms.records import positions
from groupstorm.storms.records.positions import Records, Work
from groupstorm.storms.world import process
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.storms.world.disturbances import Pauses
from groupstorm.storms.world.environment import Members
from groupstorm.storms.world.periodic_requests.requests import PeriodicRequests
from groupstorm.storms.world.rebalance_callbacks import ListenerCalls
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause, GroupState


class Patch(Protocol):
    """pytest's monkeypatch, or something that only sets."""

    def setattr(self, target: Any, name: str, value: Any) -> None: ...


class Dealer:
    """Deals all partitions to the members in turn, whoever owns them now.

    ``leaves_out`` of them get no owner; the first ``doubles`` get ``owners`` owners, None: all members.
    """

    needs_equal_subscriptions = False
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self, name: str, leaves_out: int = 0, doubles: int = 0, owners: int | None = None) -> None:
        self.name = name
        self._leaves_out = leaves_out
        self._doubles = doubles
        self._owners = owners

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        return None

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        partitions = [TopicPartition(t, p) for t, topic in topics.items() for p in range(topic.partitions)]
        members = sorted(subscriptions)
        dealt = partitions[self._leaves_out :]
        plan = {member: set(dealt[place :: len(members)]) for place, member in enumerate(members)}
        for member in members[: self._owners]:
            plan[member].update(dealt[: self._doubles])
        return AssignmentResult({member: sorted(own) for member, own in plan.items()})


#: An assignor that doubles: the client trusts it under this name, as Kafka's does.
DOUBLING = Dealer("cooperative-sticky", doubles=1)

# -- members ---------------------------------------------------------------------------------------


def keeps_what_it_lost(patch: Patch) -> None:
    """A cooperative member takes what its assignment adds, and keeps what it takes away."""

    def on_join_complete(self: Membership, assignment: bytes) -> Iterator[Operation]:
        self._assignment = decode_assignment(assignment)
        added = tuple(sorted(set(self._assignment.partitions).difference(self.owned)))
        self._last_assignments[self.generation.protocol or ""] = (self._assignment, self.generation.id)
        self.owned = tuple(sorted((*self.owned, *added)))
        yield RunCallback(ASSIGNED, added, "assignment")

    patch.setattr(Membership, "_on_join_complete", on_join_complete)


def zombie_never_loses(patch: Patch) -> None:
    """A member whose generation was reset goes on with its partitions: no onPartitionsLost."""
    give_up = Membership._give_up

    def without_lost(
        self: Membership, kind: CallbackKind, partitions: tuple[TopicPartition, ...], cause: str
    ) -> Generator[Operation, Any, None]:
        if kind is not CallbackKind.LOST:
            yield from give_up(self, kind, partitions, cause)

    patch.setattr(Membership, "_give_up", without_lost)


def zombie_ignores_on_partitions_lost(patch: Patch) -> None:
    """The application is told onPartitionsLost, and goes on processing."""
    stop_processing = ListenerCalls._stop_processing

    def told(self: ListenerCalls, operation: RunCallback) -> int:
        if operation.kind is not CallbackKind.LOST:
            return stop_processing(self, operation)
        work, patched = self._work, _KeepsProcessing(self._work)
        self._work = patched  # type: ignore[assignment]
        try:
            return stop_processing(self, operation)
        finally:
            self._work = work

    patch.setattr(ListenerCalls, "_stop_processing", told)


class _KeepsProcessing:
    """The work of a process that drops nothing."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def drop(self, partitions: tuple[TopicPartition, ...], now_us: int) -> tuple[int, ...]:
        return tuple(self._work.position(partition, now_us) for partition in partitions)


def joins_for_ever(patch: Patch) -> None:
    """A member that has its assignment joins again."""
    complete = Membership._on_join_complete

    def join_again(self: Membership, assignment: bytes) -> Iterator[Operation]:
        yield from complete(self, assignment)
        self.request_rejoin(RejoinCause.REVOKED_PARTITIONS)

    patch.setattr(Membership, "_on_join_complete", join_again)


# -- the world -------------------------------------------------------------------------------------


def paused_process_heartbeats(patch: Patch) -> None:
    """A process that stands still goes on heartbeating."""
    pause, stop = Pauses.pause, PeriodicRequests.stop

    def without_stop(self: Pauses, duration_us: int) -> None:
        PeriodicRequests.stop = _do_nothing  # type: ignore[method-assign, assignment]
        try:
            pause(self, duration_us)
        finally:
            PeriodicRequests.stop = stop  # type: ignore[method-assign]

    def reachable(self: VirtualConsumer) -> bool:
        return self.alive and self.clock.now_us >= self.connection.broken_until_us

    patch.setattr(Pauses, "pause", without_stop)
    patch.setattr(VirtualConsumer, "reachable", reachable)


def _do_nothing(_: PeriodicRequests) -> None:
    """In the place of `PeriodicRequests.stop`."""


def strangers_count_as_settled(patch: Patch) -> None:
    """A run ends although a process that runs is not in the group."""

    def settled_in(self: Members, group: Any) -> bool:
        living = [process for process in self.by_name.values() if process.started]
        return group is not None and all(process.settled for process in living)

    patch.setattr(Members, "settled_in", settled_in)


def commits_are_forgotten(patch: Patch) -> None:
    """The coordinator answers commits, and its offsets stay as the first ones were."""
    patch.setattr(
        Records, "commit", lambda self, positions: self.committed.update({**positions, **self.committed})
    )


def owners_begin_too_far(patch: Patch) -> None:
    """A new owner begins five records behind the committed offset."""
    start = Work.start

    def five_too_far(
        self: Work, partitions: tuple[TopicPartition, ...], committed: tuple[int, ...], now_us: int
    ) -> tuple[int, ...]:
        return start(self, partitions, tuple(one + 5 if one >= 0 else one for one in committed), now_us)

    patch.setattr(Work, "start", five_too_far)


def fenced_commits_count(patch: Patch) -> None:
    """Members commit in the generation before theirs, and the coordinator accepts that."""
    request = positions.commit_request

    def late(config: Any, positions: Any, sent: Generation) -> Any:
        return request(config, positions, sent._replace(id=sent.id - 1))

    patch.setattr(process, "commit_request", late)
    former_generations_commit(patch)


def former_generations_commit(patch: Patch) -> None:
    """The coordinator accepts commits of any generation, and no member sends one of a former generation."""
    accept = _passing(offset_requests.validate_commit, Error.ILLEGAL_GENERATION)
    patch.setattr(offset_requests, "validate_commit", accept)


def _passing(check: Callable[..., Error], wrong: Error) -> Callable[..., Error]:
    """The check that gives no error where it gave ``wrong``."""

    def passes(*request: Any) -> Error:
        error = check(*request)
        return NO_ERROR if error is wrong else error

    return passes


def former_generations_heartbeat(patch: Patch) -> None:
    """The coordinator answers heartbeats of a former generation without an error."""
    patch.setattr(sessions, "heartbeat", _passing(sessions.heartbeat, Error.ILLEGAL_GENERATION))


def former_epochs_commit(patch: Patch) -> None:
    """The coordinator of a consumer group accepts commits of any former member epoch."""
    patch.setattr(offset_requests, "_validate_epoch", lambda *_: NO_ERROR)


# -- the figures -----------------------------------------------------------------------------------


def gaps_are_a_second_short(patch: Patch) -> None:
    """Each time without an owner counts a second less."""
    add = gaps.GapSums.add
    patch.setattr(gaps.GapSums, "add", lambda self, one, gap_us: add(self, one, max(0, gap_us - 1_000_000)))


def duplicates_count_half(patch: Patch) -> None:
    """One of two records that are processed again counts."""
    duplicated: property = vars(RecordSums)["duplicated"]
    patch.setattr(RecordSums, "duplicated", property(lambda self: duplicated.__get__(self) // 2))


# -- the coordinator -------------------------------------------------------------------------------


def one_join_is_never_answered(patch: Patch) -> None:
    """In the second round the coordinator forgets the JoinGroup of one member."""
    _forget_one(patch, "answer_parked_join", changes.answer_parked_join)


def _forget_one(patch: Patch, name: str, answer: Callable[..., bool | None]) -> None:
    def forget_one(shard: Any, group: Any, member: Any, response: Any) -> bool | None:
        followers = [member_id for member_id in group.members if member_id != group.leader]
        if group.generation == 2 and followers[-1:] == [member.member_id]:
            return False
        return answer(shard, group, member, response)

    patch.setattr(rebalances, name, forget_one)


def generation_stands_still(patch: Patch) -> None:
    """The second round has the generation of the first."""
    next_generation = rebalances._next_generation

    def same(shard: Any, group: Any, cause: Cause, member_id: str | None) -> None:
        if group.generation == 1:
            group.generation = 0
        next_generation(shard, group, cause, member_id)

    patch.setattr(rebalances, "_next_generation", same)


def one_sync_is_never_answered(patch: Patch) -> None:
    """In the second round the coordinator forgets the SyncGroup of one member."""
    _forget_one(patch, "answer_parked_sync", changes.answer_parked_sync)


def sessions_never_end(patch: Patch) -> None:
    """The coordinator begins a session anew that is over."""

    def begin_anew(shard: Any, group: Any, member: Any) -> None:
        changes.restart_session(shard, group, member)

    patch.setattr(sessions, "_expire", begin_anew)


def strangers_may_heartbeat(patch: Patch) -> None:
    """A member that the coordinator has removed gets no error for its sessions."""
    patch.setattr(sessions, "heartbeat", _passing(sessions.heartbeat, Error.UNKNOWN_MEMBER_ID))


def a_round_does_not_wait(patch: Patch) -> None:
    """A round closes when its first member has joined: the others are removed."""
    patch.setattr(ClassicGroup, "all_joined", lambda group: group.awaiting_join > 0)


def everyone_gets_one_assignment(patch: Patch) -> None:
    """All members get what the leader has planned for one of them."""
    hand_out = rebalances.hand_out

    def the_same(shard: Any, group: Any, plan: Mapping[str, bytes], error: Error) -> None:
        most = max(plan.values(), key=len, default=b"")
        hand_out(shard, group, dict.fromkeys(plan, most), error)

    patch.setattr(rebalances, "hand_out", the_same)


def a_round_keeps_the_old_plan(patch: Patch) -> None:
    """Members that had an assignment keep it, whatever the leader has planned."""
    hand_out = rebalances.hand_out

    def the_old_one(shard: Any, group: Any, plan: Mapping[str, bytes], error: Error) -> None:
        before = {member_id: member.assignment for member_id, member in group.members.items()}
        hand_out(shard, group, {each: before.get(each) or plan[each] for each in plan}, error)

    patch.setattr(rebalances, "hand_out", the_old_one)


class _WrongPreviousState:
    """In the place of the module of events: a group that was Empty is said to have been Stable."""

    @staticmethod
    def GroupStateChanged(group: str, before: str, *rest: Any) -> events.GroupStateChanged:  # noqa: N802
        said = GroupState.STABLE if before is GroupState.EMPTY else before
        return events.GroupStateChanged(group, said, *rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(events, name)


def wrong_previous_state(patch: Patch) -> None:
    """Events of changes name another state as the one before."""
    patch.setattr(changes, "events", _WrongPreviousState())


def a_change_that_kafka_does_not_know(patch: Patch) -> None:
    """The coordinator's table has a row too many, and the coordinator takes it."""
    stable, timeout = GroupState.STABLE, Cause.REBALANCE_TIMEOUT
    table = {**states.TRANSITIONS}
    table[stable] = {**table[stable], timeout: GroupState.PREPARING_REBALANCE}
    transition = changes.transition

    def other_cause(shard: Any, group: Any, cause: Cause, member_id: str | None) -> None:
        transition(shard, group, timeout if group.state is stable else cause, member_id)

    patch.setattr(states, "TRANSITIONS", table)
    patch.setattr(rebalances, "transition", other_cause)


#: A coordinator rule broken in each of ten ways.
BROKEN_RULES = (
    "one_join_is_never_answered",
    "one_sync_is_never_answered",
    "sessions_never_end",
    "strangers_may_heartbeat",
    "a_round_does_not_wait",
    "everyone_gets_one_assignment",
    "a_round_keeps_the_old_plan",
    "generation_stands_still",
    "wrong_previous_state",
    "a_change_that_kafka_does_not_know",
)

#: Every fault of this module by its name.
PLANT: Mapping[str, Callable[[Patch], None]] = {
    name: one
    for name, one in globals().items()
    if isfunction(one) and one.__module__ == __name__ and not name.startswith("_")
}
