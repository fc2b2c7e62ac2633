"""One process of a consumer group and its coordinator, without a scenario: joining, resting, and waking up.

One way takes 1 ms. The member finds the coordinator at 2 ms, joins with the heartbeat that is answered at
4 ms, acknowledges at 4 ms and knows its positions at 6 ms. Heartbeats leave at 5004, 10004 ...
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.clients.consumer_group.operations import SendHeartbeat
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import ConsumerGroupHeartbeatResponse
from groupstorm.coordinator.simulated import IN_TOUCH
from groupstorm.storms.member_settings import consumer_config
from groupstorm.storms.scenario.topics import topic_names
from groupstorm.storms.world.consumer_group.process import ConsumerGroupProcess
from groupstorm.storms.world.consumers import PlainConsumers
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.world import World
from tests.storms.storms_in_memory import START, MemorySink, Storm, scenario, storm
from tests.storms.test_consumer_group_by_hand import rows, step
from tests.storms.transcript import WORLD

SECOND = 1_000_000


class Group:
    """A group of processes in the world of `test_consumer_group_by_hand`: two partitions, no steps."""

    def __init__(self, exact: bool = False, /, **settings: Any) -> None:
        world = scenario([START], **WORLD | {"group.protocol": "consumer"} | settings)
        self._sink = MemorySink()
        self.environment = Environment(world.resolve(None, 1, {}), self._sink, exact)
        self.clock = self.environment.clock
        self.world = World(self.environment, PlainConsumers(self.environment, []))

    def new(self, index: int = 0, **config: Any) -> ConsumerGroupProcess:
        """A process, which has not started. ``config``: what its consumer has otherwise."""
        settings, name = self.environment.settings, f"member-{index}"
        configured = consumer_config(settings, self.environment.group, topic_names(settings), name, index)
        process = ConsumerGroupProcess(
            self.environment, index, 1, replace(configured, **config), settings.of_member(index)
        )
        self.environment.members.add(process)
        return process

    def started(self, index: int = 0, **config: Any) -> ConsumerGroupProcess:
        process = self.new(index, **config)
        process.start()
        return process

    def until(self, ms: int) -> None:
        self.world.run_until(ms * 1_000)

    def rows(self, from_ms: int) -> list[str]:
        """The rows from a time on, as `test_consumer_group_by_hand` shows them."""
        self.environment.trace.flush()
        figures: Any = None
        return rows(Storm(self._sink.rows, figures), from_ms, 1_000_000) if self._sink.rows else []

    def rates(self) -> list[tuple[int, tuple[str, ...]]]:
        """The rows about processing: when (ms), and of which partitions."""
        self.environment.trace.flush()
        figures: Any = None
        found = Storm(self._sink.rows, figures).events("processing_rates_changed")
        return [(time_us // 1_000, event.partitions) for time_us, event in found]

    def counted(self, api: str) -> int:
        """The requests without an error."""
        return self.environment.broker.requests.get((api, None), 0)


def answer(process: ConsumerGroupProcess, epoch: int = 2, error: Error = NO_ERROR) -> None:
    """A heartbeat of the process is answered now."""
    sent: Any = SimpleNamespace(member_epoch=2)
    response = ConsumerGroupHeartbeatResponse(error, process.group_member.member_id, epoch, 5_000)
    process.answered(SendHeartbeat(sent, True), response)


HEARTBEATS = "ConsumerGroupHeartbeat"


def test_a_member_begins_to_join_with_its_first_poll_before_it_knows_the_coordinator() -> None:
    group = Group()
    process = group.started()
    assert (process.group_member.state, group.clock.now_us) == (MemberState.JOINING, 0)
    assert not process.membership.coordinator_known


def test_a_process_is_settled_if_it_has_joined_and_nothing_is_under_way() -> None:
    """It joins at 3 ms, and looks its positions up until 6 ms."""
    group = Group()
    process = group.new()
    settled = [process.settled]
    process.start()
    for ms in (0, 3, 5, 6):
        group.until(ms)
        settled.append(process.settled)
    assert settled == [False, False, False, False, True]
    group.until(100)
    process.pauses.busy(1 * SECOND)
    settled = [process.settled]
    group.until(1_100)
    settled.append(process.settled)
    process.disconnect(1 * SECOND)
    assert [*settled, process.settled] == [False, True, False]


def test_the_heartbeats_of_a_member_at_rest_are_computed() -> None:
    group = Group()
    process = group.started()
    group.until(4)
    assert process.periodic_requests.last_contact_ms(40_000) is None
    group.until(7)
    assert process.periodic_requests.last_contact_ms(40_000) == IN_TOUCH
    group.until(17_000)
    assert group.counted(HEARTBEATS) == 2


@pytest.mark.parametrize("what", ["answer", "runs again"])
def test_whatever_comes_to_a_member_at_rest_puts_its_heartbeats_where_they_are(what: str) -> None:
    """Those of 2, 4, 5004, 10004 and 15004 have arrived by 17000, and the next one leaves at 20004."""
    group = Group()
    process = group.started()
    group.until(17_000)
    if what == "answer":
        answer(process)
    else:
        process.runs_again()
    assert group.counted(HEARTBEATS) == 5
    group.until(20_003)
    process.stop()
    assert group.counted(HEARTBEATS) == 5


def test_a_response_that_comes_when_the_process_runs_again_is_taken_at_once() -> None:
    group = Group()
    process = group.started()
    group.until(1_000)
    process.pauses.paused_until_us = 1 * SECOND
    answer(process, epoch=3)
    assert process.membership.generation.id == 3
    process.pauses.paused_until_us = 1 * SECOND + 1
    answer(process, epoch=4)
    assert process.membership.generation.id == 3


@pytest.mark.parametrize("started", [False, True])
def test_a_process_that_has_not_started_or_is_gone_has_nothing_to_do_when_it_could_run_again(
    started: bool,
) -> None:
    """Its member is not asked for anything."""
    group = Group()
    process = group.new()
    if started:
        process.start()
        group.until(1_000)
        process.crash()
    asked: list[str] = []

    def ask(what: str, answer: Any) -> Any:
        asked.append(what)
        return answer

    member: Any = SimpleNamespace(
        operations=lambda: ask("operations", []),
        step=lambda now_ms: ask("step", 1),
        poll=lambda now_ms: ask("poll", None),
        state=process.group_member.state,
    )
    process.group_member = member
    process.runs_again()
    assert asked == []


def test_a_member_whose_connection_is_lost_knows_no_coordinator_until_it_has_found_it() -> None:
    """The connection can be made from 6000 on, and it asks for 2 ms."""
    group = Group()
    process = group.started()
    group.until(1_000)
    process.disconnect(5 * SECOND)
    for ms, known in ((1_000, False), (6_001, False), (6_002, True)):
        group.until(ms)
        assert process.membership.coordinator_known is known, ms


def test_the_way_of_a_heartbeat_depends_on_the_time_alone_whether_it_is_computed_or_sent() -> None:
    """Latencies differ by half a second: the session of the crashed member ends at the same time."""
    settings = {"group.protocol": "consumer", "members": 1, "net_latency_ms": {"uniform": [100, 600]}}
    world = scenario([START, step(60_000, "crash")], **WORLD | settings)
    computed, simulated = (storm(world, exact=exact) for exact in (False, True))
    assert len(computed.events("member_removed", cause="session-expired")) == 1
    assert computed.rows == simulated.rows
