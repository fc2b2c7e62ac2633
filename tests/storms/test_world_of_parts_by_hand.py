"""What a world asks of its parts when topics change, the coordinator fails over, and the run ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.topics import Topics
from groupstorm.storms.world.world import World

MS, SECOND = 1_000, 1_000_000
T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)


class Parts:
    """The parts of a world with the topics ``t``, of two partitions, and ``u``, of one. ``said``: what they
    were asked for; ``offsets``: the committed ones."""

    def __init__(self, **members: int) -> None:
        """``members``: names, and how long each waits (ms) before it asks for the coordinator again."""
        self.said: list[str] = []
        self.clock = Clock()
        self.offsets: dict[TopicPartition, int] = {}
        self.without_session: list[tuple[str, str]] = []
        self.member_ids: list[tuple[str, str]] = []
        processes: Any = SimpleNamespace(
            follow_ups=False, finish=lambda: self.said.append("processes finish")
        )
        records = SimpleNamespace(
            holders={},
            logs=SimpleNamespace(rate=lambda *_: 3_000, end=lambda *_: 0, next_change_us=lambda _: None),
            created=lambda created, _: self.said.append(f"records created {len(created)}"),
            forget=lambda gone: self.said.append(f"records forget {' '.join(map(str, gone))}"),
        )
        by_name = {name: self._member(name, backoff_ms) for name, backoff_ms in members.items()}
        environment: Any = SimpleNamespace(
            clock=self.clock,
            trace=SimpleNamespace(emit=self._emit, flush=lambda: self.said.append("flush")),
            scenario=None,
            settings=Settings(("", {"record_rate": 3})),
            seed=1,
            group="g",
            records=records,
            slow_records=None,
            invariants=SimpleNamespace(finish=lambda _, now_us: self.said.append(f"checks end {now_us}")),
            topics=Topics({"t": 2, "u": 1}),
            topics_changed=lambda *what: self.said.append(f"topics changed {what}"),
            members=SimpleNamespace(
                by_name=by_name,
                has=lambda name, member_id: (name, member_id) in self.member_ids,
                committed=lambda partitions: tuple(self.offsets.get(each, -1) for each in partitions),
            ),
            network=SimpleNamespace(down_until_us=0),
            broker=SimpleNamespace(
                fail_over=lambda until_us: self.said.append(f"no coordinator until {until_us}"),
                slow_appends=lambda *what: self.said.append(f"slow appends {what}"),
                fail_appends=lambda *what: self.said.append(f"failing appends {what}"),
                count=lambda what, number: self.said.append(f"{number} times {what[0]} {what[1]}"),
                coordinator=SimpleNamespace(members_without_session=lambda _: self.without_session),
            ),
        )
        self.environment, self.processes = environment, processes
        self.world = World(environment, processes)

    def _member(self, name: str, backoff_ms: int) -> Any:
        return SimpleNamespace(
            config=SimpleNamespace(retry_backoff_ms=backoff_ms),
            work=(),
            faults=SimpleNamespace(
                lose_coordinator=lambda for_us: self.said.append(f"{name} none for {for_us}")
            ),
            metadata_may_have_changed=lambda: self.said.append(f"{name} metadata"),
            periodic_requests=SimpleNamespace(finish=lambda: self.said.append(f"{name} stops its requests")),
            rates=SimpleNamespace(finish=lambda: self.said.append(f"{name} last rates")),
        )

    def _emit(self, _source: object, event: Any) -> None:
        self.said.append(f"row {type(event).__name__}")


def test_the_coordinator_learns_the_new_size_of_a_topic_that_grows() -> None:
    """The logs of the new partitions are empty, which a row says: their rate is that of all others."""
    parts = Parts(a=100)
    parts.world.add_partitions("t", 5)
    assert parts.said == [
        "topics changed ({'t': 5},)",
        "records created 3",
        "row PartitionsCreated",
        "row RecordRatesChanged",
        "a metadata",
    ]


def test_the_coordinator_keeps_the_size_of_a_topic_that_is_to_shrink() -> None:
    parts = Parts()
    parts.world.add_partitions("t", 1)
    assert parts.said == ["topics changed ({'t': 2},)", "records created 0"]


def test_the_coordinator_learns_which_topic_is_deleted_and_its_records_are_forgotten() -> None:
    parts = Parts(a=100)
    parts.world.delete_topic("t")
    assert parts.said == [
        "topics changed ({}, ['t'])",
        "row PartitionsDeleted",
        "records forget t-0 t-1",
        "a metadata",
    ]


def test_an_offset_of_zero_is_committed_and_a_partition_without_an_offset_is_left_out() -> None:
    parts = Parts()
    parts.offsets = {T0: 0, U0: 1}
    assert parts.world.committed == {T0: 0, U0: 1}


def test_each_member_waits_for_the_next_coordinator_and_then_for_a_part_of_its_own_backoff() -> None:
    """At 3 s there is none for 2 s. A member that asks every 100 ms has asked 20 times by then, one that asks
    every 300 ms 6 times. The draw here is half of the pause."""
    parts = Parts(a=100, b=300)
    parts.clock.advance_to(3 * SECOND)
    parts.world.fail_over(5 * SECOND, lambda over_ms: over_ms * MS // 2)
    asked = "times FindCoordinator COORDINATOR_NOT_AVAILABLE"
    assert parts.said == [
        "no coordinator until 5000000",
        f"20 {asked}",
        "a none for 2050000",
        f"6 {asked}",
        "b none for 2150000",
    ]


def test_a_fail_over_within_a_longer_one_does_not_shorten_it() -> None:
    parts = Parts()
    parts.world.fail_over(5 * SECOND, lambda over_ms: 0)
    parts.world.fail_over(4 * SECOND, lambda over_ms: 0)
    assert parts.said == ["no coordinator until 5000000"] * 2
    assert parts.environment.network.down_until_us == 5 * SECOND


def test_appends_that_are_slow_or_fail_are_those_of_the_broker() -> None:
    parts = Parts()
    parts.world.slow_appends(5 * SECOND, 30)
    parts.world.fail_appends(6 * SECOND)
    assert parts.said == ["slow appends (5000000, 30)", "failing appends (6000000,)"]


def test_a_member_is_found_by_its_name() -> None:
    parts = Parts(a=100, b=300)
    assert parts.world.member("b").config.retry_backoff_ms == 300


def test_members_without_a_session_are_left_behind_if_their_process_is_another_member_or_gone() -> None:
    parts = Parts()
    parts.without_session = [("m-1", "a"), ("m-2", "b"), ("m-3", "c")]
    parts.member_ids = [("a", "m-1"), ("b", "m-9")]
    assert parts.world.left_behind == ["b", "c"]


def test_the_processes_say_whether_members_will_ask_for_another_rebalance() -> None:
    parts = Parts()
    assert parts.world.follow_ups is False
    parts.processes.follow_ups = True
    assert parts.world.follow_ups is True


def test_a_run_ends_with_its_checks_behind_all_rows_and_then_with_its_processes_and_members() -> None:
    parts = Parts(a=100, b=100)
    parts.clock.advance_to(7 * SECOND)
    parts.world.finish()
    assert parts.said == [
        "flush",
        "checks end 7000000",
        "processes finish",
        "a stops its requests",
        "a last rates",
        "b stops its requests",
        "b last rates",
    ]
