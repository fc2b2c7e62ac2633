"""A coordinator is killed or moves at any moment: its group becomes stable again and answers everybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    NO_MEMBER_ID,
    Heartbeat,
    JoinGroupResponse,
    LeaveGroup,
    LeavingMember,
    SyncGroupResponse,
)
from groupstorm.coordinator.records import AppendCause, GroupMetadataRecord, MemberRecord
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import GroupState
from tests.coordinator.world import World, no_delay
from tests.hypothesis_examples import examples

DELAY_MS = 3_000


#: JoinGroup 3 and a static member need no second request to be in the group.
@pytest.mark.parametrize(("version", "instance"), [(3, None), (4, None), (5, "i")])
def test_the_first_record_of_a_group_names_no_member(version: int, instance: str | None) -> None:
    world = World()
    world.join(version=version, instance=instance)
    assert world.appended == [
        ([GroupMetadataRecord("g", 0, None, None, None, members=0)], AppendCause.EMPTY_GROUP)
    ]


@pytest.mark.parametrize("roster", [(), (MemberRecord("m5", None, "c", "/h", 60_000, 10_000, b"", b""),)])
def test_a_recorded_leader_that_is_no_member_does_not_lead(roster: tuple[MemberRecord, ...]) -> None:
    """Journals exist whose first records name a leader although the group had no members."""
    world = World(no_delay())
    record = GroupMetadataRecord("g", 1, "consumer", "range", "m9", len(roster), roster)
    world.take(world.coordinator.load([record], 0))
    assert world.group.leader == (roster[0].member_id if roster else None)
    token = world.join(instance="i", version=5)
    world.advance(60_000)
    assert world.error(token) is Error.NONE


@dataclass(eq=False)
class Process:
    """A client process: it joins, syncs, sends heartbeats, and takes errors as Kafka's client does."""

    version: int
    instance: str | None
    member_id: str = NO_MEMBER_ID
    generation: int = -1
    #: The assignments of the generation, if the process leads.
    plan: dict[str, bytes] | None = None
    #: What the process does next, once ``waits_for`` is answered: join, sync or heartbeat.
    next: str = "join"
    waits_for: Any = None

    def disconnected(self) -> None:
        """The broker is gone, and with it the answer: a JoinGroup or SyncGroup is followed by a JoinGroup."""
        if self.waits_for is not None and self.next != "heartbeat":
            self.next = "join"
        self.waits_for = None

    def act(self, world: World) -> None:
        """Take the answer, if there is one, and send the next request."""
        if self.waits_for is not None:
            response = world.replies.get(self.waits_for)
            if response is None:
                return
            self.waits_for = None
            self._take(response)
        self.waits_for = self._send(world)

    def _send(self, world: World) -> Any:
        if self.next == "join":
            return world.join(self.member_id, self.instance, version=self.version)
        if self.next == "sync":
            return world.sync(self.member_id, self.plan, instance=self.instance, generation=self.generation)
        return world.send(Heartbeat("g", self.member_id, self.instance, self.generation, 4))

    def _take(self, response: Any) -> None:
        if isinstance(response, JoinGroupResponse) and not response.error:
            self.member_id, self.generation = response.member_id, response.generation
            self.plan = {one.member_id: one.member_id.encode() for one in response.members}
            self.next = "sync"
        elif isinstance(response, JoinGroupResponse) and response.error is Error.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif not response.error:
            self.next = "heartbeat"
            assert not isinstance(response, SyncGroupResponse) or response.assignment
        else:
            assert response.error in RETRIED, response
            self.next = "join"
            if response.error in NEW_ID:
                self.member_id = NO_MEMBER_ID


#: Errors after which a process joins as a new member. FENCED_INSTANCE_ID ends a client, and its supervisor
#: starts it again: the new id of a static member that came back during a round is lost if the coordinator
#: restarts before the round's record is written, in Kafka too.
NEW_ID = {Error.FENCED_INSTANCE_ID, Error.UNKNOWN_MEMBER_ID}
#: Errors after which a process joins again.
RETRIED = {
    *NEW_ID,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.ILLEGAL_GENERATION,
    Error.NOT_COORDINATOR,
    Error.REBALANCE_IN_PROGRESS,
}
_PICK = st.integers(0, 50)
#: Without an instance: the id round trip from version 4 on.
_KINDS = st.sampled_from([(3, None), (4, None), (5, "i1"), (9, "i1"), (9, "i2"), (5, "i3")])
#: A parked member whose process is gone stays for five minutes.
_PATIENCE_MS = 600_000


class Restarts(RuleBasedStateMachine):
    """Processes come, go and act in any order; the coordinator is killed or moves between any two steps."""

    @initialize(delay_ms=st.sampled_from([0, DELAY_MS]))
    def begin(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        self.world = World(no_delay(initial_rebalance_delay_ms=delay_ms))
        self.processes: list[Process] = []

    @rule(kind=_KINDS)
    def starts(self, kind: tuple[int, str | None]) -> None:
        """A new process; one that had the same instance is gone without a word."""
        version, instance = kind
        self.processes = [one for one in self.processes if instance is None or one.instance != instance]
        self.processes.append(Process(version, instance))
        self.processes[-1].act(self.world)

    @precondition(lambda self: self.processes)
    @rule(pick=_PICK)
    def acts(self, pick: int) -> None:
        self.processes[pick % len(self.processes)].act(self.world)

    @precondition(lambda self: self.processes)
    @rule(pick=_PICK, leaves=st.booleans())
    def ends(self, pick: int, leaves: bool) -> None:
        process = self.processes.pop(pick % len(self.processes))
        if leaves and process.waits_for is None:
            self.world.send(LeaveGroup("g", (LeavingMember(process.member_id, process.instance),), 5))

    @rule(duration_ms=st.sampled_from([1, 100, DELAY_MS, 11_000]))
    def time_passes(self, duration_ms: int) -> None:
        self.world.advance(duration_ms)

    @rule(delay_ms=st.sampled_from([0, 5, 200]))
    def appends_take(self, delay_ms: int) -> None:
        self.world.driver.append_delay_ms = delay_ms

    @rule()
    def is_killed(self) -> None:
        append_delay_ms = self.world.driver.append_delay_ms
        self.world = self.world.successor(initial_rebalance_delay_ms=self.delay_ms)
        self.world.driver.append_delay_ms = append_delay_ms
        for process in self.processes:
            process.disconnected()

    @rule()
    def moves(self) -> None:
        self.world.move()

    @rule()
    def comes_to_rest(self) -> None:
        """Every process is in a stable group before the longest timeout is over, and nobody is parked."""
        end_ms = self.world.now_ms + _PATIENCE_MS
        while not self.is_at_rest():
            assert self.world.now_ms < end_ms, (self.world.coordinator, self.processes)
            for process in self.processes:
                process.act(self.world)
            self.world.advance(1_000)
        assert self.world.of(events.OperationFailed) == []

    def is_at_rest(self) -> bool:
        group = self.world.classic_group()
        if group is None or not self.processes:
            return not self.processes
        answered = all(
            one.next == "heartbeat" and one.waits_for in self.world.replies for one in self.processes
        )
        members = {one.member_id for one in self.processes}
        generations = {one.generation for one in self.processes}
        return (
            answered
            and group.state is GroupState.STABLE
            and members == set(group.members)
            and generations == {group.generation}
        )

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.comes_to_rest()


Restarts.TestCase.settings = settings(max_examples=examples(150), stateful_step_count=30, deadline=None)
TestRestarts = Restarts.TestCase
