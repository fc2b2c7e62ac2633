"""What begins and ends with a process, worked out by hand.

Times of one member as in `test_positions_by_hand`: it has its partition at 3010 ms. Heartbeats leave at 6006,
9006 ..., background commits at 8008, 13008 ... If it is stopped at 60500, close() begins at 61000.
"""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.run import chosen_assignors
from groupstorm.storms.world.consumers import PlainConsumers
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.pauses import Pauses
from groupstorm.trace.rows import event_name
from tests.storms.storms_in_memory import START, MemorySink, Storm, scenario
from tests.storms.test_positions_by_hand import ALONE, played, requests
from tests.storms.test_world import begun, consumer, until
from tests.storms.transcript import WORLD

MS = 1_000
STOP: dict[str, Any] = {"at_ms": 60_500, "do": "stop", "members": [0]}
T0, T1 = TopicPartition("topic-0", 0), TopicPartition("topic-0", 1)


def times_ms(result: Storm, name: str, **fields: object) -> list[float]:
    return [at_us / MS for at_us, _ in result.events(name, **fields)]


# -- a process that has not polled yet


class Unborn:
    """A process that is made at 0 s and has not polled."""

    def __init__(self) -> None:
        resolved = scenario([START], **WORLD | ALONE).resolve(None, 1, {})
        self._sink = MemorySink()
        self._environment = Environment(resolved, self._sink)
        consumers = PlainConsumers(self._environment, chosen_assignors(resolved))
        self.process: Any = consumers.new(0, "member-0")

    def rows(self) -> list[str]:
        self._environment.trace.flush()
        return [event_name(type(event)) for _, _, event in self._sink.rows]


def test_a_process_that_has_not_polled_has_nothing_to_close() -> None:
    unborn = Unborn()
    unborn.process.stop()
    assert unborn.process.alive
    assert unborn.rows() == []


def test_a_process_that_dies_before_it_has_polled_is_not_in_the_trace() -> None:
    unborn = Unborn()
    assert not unborn.process.started
    unborn.process.crash()
    assert not unborn.process.alive
    assert unborn.rows() == []


def test_a_process_that_dies_when_it_has_polled_is_in_the_trace() -> None:
    unborn = Unborn()
    unborn.process.start()
    assert unborn.process.started
    unborn.process.crash()
    unborn.process.crash()
    assert unborn.rows() == ["member_started", "rejoin_requested", "member_crashed"]


# -- what begins with a process


def test_a_client_refreshes_its_metadata_at_intervals_from_its_start_on() -> None:
    """It starts at 5 s: at 35 s, 65 s ... It polls at the latest 50 ms after that, and the round takes 4 ms
    and a look-up of 2 ms."""
    world = begun({**START, "at_ms": 5_000}, **{"metadata.max.age.ms": 30_000})
    until(world, 61_000).add_partitions("topic-0", 2)
    assert consumer(until(world, 64_999)).membership.owned == (T0,)
    assert consumer(until(world, 65_100)).work.partitions == (T0, T1)


def test_the_garbage_collector_runs_as_long_as_its_process_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every 10 s, and the process dies at 35 s."""
    collected: list[float] = []
    crash = {"at_ms": 35_000, "do": "crash", "members": [0]}
    world = begun(START, crash, gc_pause_ms=300, gc_interval_ms=9_700)
    monkeypatch.setattr(Pauses, "pause", lambda *_: collected.append(world.clock.now_us / MS))
    until(world, 34_000)
    assert collected == [9_700, 19_700, 29_700]
    until(world, 100_000)
    assert len(collected) == 3


# -- topics that are gone


def test_an_owner_of_a_deleted_topic_refreshes_its_metadata_after_retry_backoff() -> None:
    """retry.backoff.ms is 100; it joins again at its next poll, at the latest 50 ms later."""
    world = until(begun(START, topics=2, **{"enable.auto.commit": False}), 60_000)
    member = consumer(world)
    world.delete_topic("topic-1")
    until(world, 60_099)
    assert (member.membership.rejoin_needed, len(member.membership.owned)) == (False, 2)
    until(world, 60_100)
    assert member.membership.rejoin_needed
    until(world, 60_200)
    assert (member.membership.rejoin_needed, member.membership.owned) == (False, (T0,))


# -- close()


def test_a_process_that_stands_still_goes_on_when_it_is_told_to_close() -> None:
    """Without waiting for the end of its pause at 80000: a commit and a LeaveGroup, there and back."""
    result = played({"at_ms": 60_000, "do": "pause", "members": [0], "for_ms": 20_000}, STOP)
    assert times_ms(result, "member_resumed") == [61_000]
    assert times_ms(result, "partitions_revoked") == [61_002]
    assert times_ms(result, "member_closed") == [61_004]


def test_a_process_that_never_stood_still_does_not_go_on_when_it_closes() -> None:
    result = played(STOP)
    assert times_ms(result, "member_closed") == [61_004]
    assert times_ms(result, "member_resumed") == []


def test_a_process_that_closes_sends_no_more_background_commits() -> None:
    """Responses do not pass until 70000. Commits until 58008 are 11; another one is close()'s own."""
    swallow = {"at_ms": 60_000, "do": "partition", "direction": "responses", "for_ms": 10_000, "members": [0]}
    result = played(swallow, STOP)
    assert times_ms(result, "partitions_revoked") == [70_001]
    assert requests(result)["OffsetCommit"] == 11 + 1


def test_a_static_member_that_has_closed_sends_no_more_heartbeats() -> None:
    """The coordinator hears of it last at 61001, when its commit arrives. Its session takes 45 s."""
    settings: dict[str, Any] = {"tail_ms": 60_000, "group.instance.id": "ordinal"}
    result = played(STOP, **settings)
    assert times_ms(result, "member_closed", cause="silent") == [61_002]
    assert times_ms(result, "member_removed", cause="session-expired") == [106_001]
    assert requests(result)["Heartbeat"] == 19


def test_a_commit_of_close_is_tried_again_after_retry_backoff() -> None:
    """The connection is broken until 61040, and then the client knows the coordinator. The first commit fails
    at 61000, so the second one leaves at 61100."""
    result = played({"at_ms": 60_000, "do": "disconnect", "members": [0], "for_ms": 1_040}, STOP)
    assert times_ms(result, "partitions_revoked") == [61_102]


def test_a_member_that_closes_before_it_knows_its_positions_commits_nothing() -> None:
    """It has its assignment at 3008 and its offsets at 3010; close() begins at 3009."""
    result = played({"at_ms": 2_509, "do": "stop", "members": [0]})
    [(at_us, revoked)] = result.events("partitions_revoked")
    assert (at_us, revoked.partitions, revoked.committed) == (3_009_000, ("topic-0-0",), (-1,))
    assert requests(result)["OffsetCommit"] == 0


def test_a_process_whose_end_is_awaited_is_reported_once() -> None:
    world = until(begun(START), 30_000)
    member = consumer(world)
    ended: list[bool] = []
    member.on_exit = lambda: ended.append(member.alive)
    member.stop()
    until(world, 31_000)
    member.crash()
    assert ended == [False]
    assert world.consumers == {}
