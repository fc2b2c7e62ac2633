"""Random histories: what must hold in every group at every moment."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from groupstorm.coordinator.classic.states import TRANSITIONS
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    Heartbeat,
    JoinGroupResponse,
    LeaveGroup,
    LeavingMember,
    OffsetCommit,
)
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause, GroupState
from tests.coordinator.world import World
from tests.hypothesis_examples import examples

_PROTOCOLS = st.sampled_from(
    [
        (("range", b"1"),),
        (("range", b"2"),),
        (("range", b"1"), ("sticky", b"")),
        (("sticky", b""), ("range", b"1")),
    ]
)
_ANY = st.integers(0, 50)


class Histories(RuleBasedStateMachine):
    """One group, static and dynamic members, appends that take time and fail."""

    @initialize(delay_ms=st.sampled_from([0, 1_000, 3_000]), size=st.sampled_from([2, 4, 1_000]))
    def begin(self, delay_ms: int, size: int) -> None:
        self.world = World(CoordinatorConfig(initial_rebalance_delay_ms=delay_ms, max_size=size))
        self.generation = 0
        self.seen_events = 0
        self.state: str | None = None
        self.expected: set[Any] = set()

    def _someone(self, pick: int) -> str:
        """A member, a pending id, an id that is gone, or nobody's."""
        group = self.world.classic_group()
        known = [] if group is None else [*group.members, *group.pending_members]
        ids = [*sorted(known), "m1", "m2", "nobody"]
        return ids[pick % len(ids)]

    def _instance(self, member: str) -> str | None:
        group = self.world.classic_group()
        found = group.members.get(member) if group is not None else None
        return found.group_instance_id if found is not None else None

    @rule(
        version=st.sampled_from([3, 4, 9]),
        instance=st.sampled_from([None, None, "i1", "i2"]),
        protocols=_PROTOCOLS,
        rebalance=st.sampled_from([1_000, 20_000]),
    )
    def join(self, version: int, instance: str | None, protocols: Any, rebalance: int) -> None:
        token = self.world.join(
            instance=instance, version=version, protocols=protocols, rebalance=rebalance, session=6_000
        )
        self.expected.add(token)

    @rule(pick=_ANY, protocols=_PROTOCOLS)
    def join_again(self, pick: int, protocols: Any) -> None:
        member = self._someone(pick)
        self._replace_parked(member, sync=False)
        token = self.world.join(member, self._instance(member), version=9, protocols=protocols)
        self.expected.add(token)

    @rule(pick=_ANY, error=st.sampled_from([None, None, Error.NOT_ENOUGH_REPLICAS]))
    def sync(self, pick: int, error: Error | None) -> None:
        member = self._someone(pick)
        self._replace_parked(member, sync=True)
        self.world.driver.append_error = error
        self.expected.add(self.world.sync(member, {member: b"plan"}, instance=self._instance(member)))
        self.world.driver.append_error = None

    def _replace_parked(self, member: str, *, sync: bool) -> None:
        """A second request replaces a parked first one, as in Kafka: that one is never answered."""
        group = self.world.classic_group()
        found = group.members.get(member) if group is not None else None
        parked = found and (found.sync if sync else found.join)
        if parked:
            self.expected.discard(parked.token)

    @rule(pick=_ANY)
    def heartbeat(self, pick: int) -> None:
        member = self._someone(pick)
        group = self.world.classic_group()
        generation = -1 if group is None else group.generation
        self.expected.add(self.world.send(Heartbeat("g", member, self._instance(member), generation, 4)))

    @rule(pick=_ANY)
    def leave(self, pick: int) -> None:
        member = self._someone(pick)
        self._replace_parked(member, sync=True)  # its parked sync is forgotten with it
        self.expected.add(self.world.send(LeaveGroup("g", (LeavingMember(member),), 5)))

    @rule(pick=_ANY, error=st.sampled_from([None, Error.NETWORK_EXCEPTION]))
    def commit(self, pick: int, error: Error | None) -> None:
        member = self._someone(pick)
        group = self.world.classic_group()
        generation = -1 if group is None else group.generation
        offsets = {"t": {0: CommittedOffset(1)}}
        self.world.driver.append_error = error
        request = OffsetCommit("g", member, self._instance(member), generation, offsets, 9)
        self.expected.add(self.world.send(request))
        self.world.driver.append_error = None

    @rule(duration_ms=st.sampled_from([0, 1, 500, 3_000, 6_000, 20_000]))
    def advance(self, duration_ms: int) -> None:
        self.world.advance(duration_ms)

    @rule(delay_ms=st.sampled_from([0, 0, 5, 6_000]))
    def appends_take(self, delay_ms: int) -> None:
        self.world.driver.append_delay_ms = delay_ms

    @precondition(lambda self: self.world.classic_group() is not None)
    @invariant()
    def counts_agree(self) -> None:
        group = self.world.group
        members = group.members.values()
        joined = [member for member in members if member.join is not None]
        assert group.awaiting_join == len(joined)
        assert len(members) == group.awaiting_join + sum(member.join is None for member in members)
        assert group.static_members == {
            member.group_instance_id: member.member_id for member in members if member.group_instance_id
        }
        names = Counter(name for member in members for name, _ in member.protocols)
        assert {name: count for name, count in group.supported.items() if count} == dict(names)
        assert group.preferences == dict(Counter(member.names for member in members))
        assert not set(group.pending_members) & set(group.members)
        assert (group.leader in group.members) if members else (group.leader is None)
        assert group.state is not GroupState.EMPTY or not members

    @precondition(lambda self: self.world.classic_group() is not None)
    @invariant()
    def an_open_round_has_a_timer(self) -> None:
        group = self.world.group
        if group.state is GroupState.PREPARING_REBALANCE or group.pending_members:
            assert self.world.coordinator.next_deadline() is not None

    @invariant()
    def events_chain(self) -> None:
        for event in self.world.events[self.seen_events :]:
            match event:
                case events.GroupCreated():
                    self.state, self.generation = GroupState.EMPTY, 0
                case events.GroupDeleted():
                    self.state = None
                case events.GroupStateChanged():
                    assert event.previous_state == self.state
                    assert TRANSITIONS[GroupState(event.previous_state)][Cause(event.cause)] == event.state
                    closes = event.previous_state == GroupState.PREPARING_REBALANCE
                    assert event.generation == self.generation + closes
                    self.state, self.generation = event.state, event.generation
                case events.OperationFailed():
                    # the timer of a group that was taken back fires in its successor, as in Kafka
                    assert "cannot leave Empty because of 'no-members'" in event.detail
                    self.generation = event.generation
        self.seen_events = len(self.world.events)
        group = self.world.classic_group()
        assert (None if group is None else group.state) == self.state

    def teardown(self) -> None:
        """Left alone, the group empties, and everything that was asked has been answered once."""
        if not hasattr(self, "world"):
            return
        self.world.advance(3_600_000)
        self.events_chain()
        assert self.state in (None, GroupState.EMPTY)
        assert self.expected <= set(self.world.replies)
        ids = [
            reply.member_id
            for reply in self.world.replies.values()
            if isinstance(reply, JoinGroupResponse) and reply.error is Error.MEMBER_ID_REQUIRED
        ]
        assert len(ids) == len(set(ids))


Histories.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)
TestHistories = Histories.TestCase
