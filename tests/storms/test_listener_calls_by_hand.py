"""What a process does when its listener is called: one call by hand, of a process that only notes.

onPartitionsRevoked takes 3 s, onPartitionsAssigned 2 s; both at 10 s if a test does not say otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import CallbackKind, Disconnected, RunCallback
from groupstorm.clients.requests import offset_commit, offset_fetch
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetCommitResponse, OffsetFetchResponse
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.draws import CALLBACK
from groupstorm.storms.world.rebalance_callbacks import TAKES_TIME, ListenerCalls, LocalState
from groupstorm.trace.events import member as events
from groupstorm.trace.schema import Source
from tests.storms.test_clients_by_hand import until

MS = 1_000
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
CONFIG = ConsumerConfig("g", "m", ("t", "u"), request_timeout_ms=30_000)
OFFSETS = OffsetFetchResponse(NO_ERROR)


class Listener:
    """A process, its environment, and the application on top of it. ``said``: what each was told, and when.

    ``answers``: what awaits the answers of requests; ``found``: what awaits the coordinator.
    """

    def __init__(self, hooks: bool = False, commits: Mapping[TopicPartition, int] | None = None) -> None:
        self.clock = Clock()
        self.clock.advance_to(10_000 * MS)
        self.said: list[str] = []
        self.answers: list[Any] = []
        self.found: list[Any] = []
        self.fetched: list[TopicPartition] = []
        self.durations = {"revoke_callback_ms": 3_000, "assign_callback_ms": 2_000, "restore_ms": 0}
        self.alive, self.name, self.config, self.step = True, "m", CONFIG, 1
        self.membership: Any = SimpleNamespace(
            generation=Generation(7, "m-1"),
            owned=(),
            commit_answered=lambda error, sent: self.note(f"answered {error.name} to {sent.id}"),
        )
        self.draws: Any = SimpleNamespace(
            duration_us=lambda ms, purpose: ms * MS if purpose == CALLBACK else -1
        )
        self.settings: Any = SimpleNamespace(distribution=lambda name: self.durations[name])
        self.periodic_requests: Any = SimpleNamespace(
            stop_commits=lambda: self.note("stop commits"),
            settle_commits=lambda: self.note("settle commits"),
            first_positions_known=lambda: self.note("first positions"),
        )
        self.polls: Any = SimpleNamespace(
            interrupted_for=lambda us: self.note(f"away for {us // MS}"), watch=lambda: self.note("watch")
        )
        self.rates: Any = SimpleNamespace(changed=lambda began: self.note(f"rates {began}"))
        self.connection: Any = SimpleNamespace(send=self._send, find_coordinator=self.found.append)
        self.work: Any = SimpleNamespace(partitions=(), start=self._start, drop=self._drop)
        self._commits = commits or {}
        self.hooks: Any = self if hooks else None
        environment: Any = SimpleNamespace(
            clock=self.clock,
            trace=SimpleNamespace(emit=self._emit),
            invariants=SimpleNamespace(
                generation_completed=lambda name, owned, fetched: self.note(
                    f"{name} owns {_named(owned)} and fetches {_named(fetched)}"
                )
            ),
            members=SimpleNamespace(committed=lambda partitions: tuple([40 for _ in partitions])),
            records=SimpleNamespace(commit=lambda positions: self.note(f"committed {positions}")),
        )
        self.calls = ListenerCalls(environment, self, self.hooks)

    def note(self, what: str) -> None:
        self.said.append(f"{self.clock.now_us // MS} {what}")

    def _emit(self, source: Source, event: Any) -> None:
        assert source is Source.MEMBER
        self.note(" ".join([type(event).__name__, *(_shown(part) for part in event)]))

    def _send(self, request: Any, timeout_ms: int, on_result: Any) -> None:
        assert timeout_ms == 30_000
        self.note(f"send {request}")
        self.answers.append(on_result)

    def _start(self, partitions: tuple[TopicPartition, ...], at: Sequence[int], now_us: int) -> Any:
        assert now_us == self.clock.now_us
        self.work.partitions = (*self.work.partitions, *partitions)
        return tuple(at)

    def _drop(self, partitions: tuple[TopicPartition, ...], now_us: int) -> tuple[int, ...]:
        assert now_us == self.clock.now_us
        self.note("drop")
        self.work.partitions = tuple(each for each in self.work.partitions if each not in partitions)
        return tuple([50 for _ in partitions])

    def later(self, delay_us: int, result: Any = None) -> Any:
        return f"later {delay_us // MS}" if delay_us else result

    def completed(self, step: int, result: Any) -> None:
        raise AssertionError("the membership does not wait for this")

    def expected_result(self) -> Any:
        return lambda result: self.note(f"returned {result}")

    # -- the application on top of the consumer

    def before_giving_up(self, operation: RunCallback) -> Mapping[TopicPartition, int]:
        self.note(f"before giving up {_named(operation.partitions)}")
        return self._commits

    def given_up(self, partitions: Sequence[TopicPartition]) -> None:
        self.note(f"given up {_named(partitions)}")

    def before_taking(self) -> None:
        self.note("before taking")

    def start_positions(self, committed: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(offset + 3 for offset in committed)

    def fetching(self, begun: Sequence[TopicPartition]) -> None:
        self.note(f"fetching {_named(begun)}")

    # -- what a test does

    def take(self, *partitions: TopicPartition, owned: tuple[TopicPartition, ...] = ()) -> Any:
        self.membership.owned = owned or partitions
        return self.calls.call(RunCallback(CallbackKind.ASSIGNED, partitions, "assignment"))

    def give_up(self, *partitions: TopicPartition, kind: CallbackKind = CallbackKind.REVOKED) -> Any:
        return self.calls.call(RunCallback(kind, partitions, "rebalance"))

    def until(self, ms: int) -> list[str]:
        """What is said from now on until then."""
        before = len(self.said)
        until(self.clock, ms * MS)
        return self.said[before:]

    def answer(self, response: Any) -> list[str]:
        """What the answer to the oldest request brings about."""
        before = len(self.said)
        self.answers.pop(0)(response)
        return self.said[before:]


def _named(partitions: Sequence[TopicPartition]) -> str:
    return ",".join(map(str, partitions)) or "-"


def _shown(part: Any) -> str:
    return (",".join(map(str, part)) or "-") if isinstance(part, tuple) else str(part)


def asks(**topics: tuple[int, ...]) -> str:
    return f"send {offset_fetch(CONFIG, topics)}"


# -- partitions go


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        (CallbackKind.REVOKED, events.PartitionsRevoked.__name__),
        (CallbackKind.LOST, events.PartitionsLost.__name__),
    ],
)
def test_a_process_that_gives_partitions_up_stops_first_and_the_callback_takes_its_time(
    kind: CallbackKind, event: str
) -> None:
    listener = Listener()
    assert listener.give_up(T0, T1, kind=kind) == "later 3000"
    assert listener.said == [
        "10000 stop commits",
        "10000 settle commits",
        "10000 drop",
        f"10000 {event} g m m-1 7 t-0,t-1 50,50 40,40 3000000 rebalance",
        "10000 away for 3000",
    ]


def test_an_application_is_told_before_and_after_its_partitions_are_given_up() -> None:
    listener = Listener(hooks=True)
    assert listener.give_up(T0) == "later 3000"
    assert listener.said[0] == "10000 before giving up t-0"
    assert listener.said[-1] == "10000 given up t-0"
    assert listener.said.index("10000 drop") < len(listener.said) - 1


def test_a_callback_that_commits_returns_its_duration_after_the_answer() -> None:
    listener = Listener(hooks=True, commits={T0: 50})
    assert listener.give_up(T0) is TAKES_TIME
    request = offset_commit(CONFIG, Generation(7, "m-1"), {"t": {0: CommittedOffset(50)}})
    assert listener.said[-1] == f"10000 send {request}"
    listener.membership.generation = Generation(8, "m-1")
    assert listener.until(10_400) == []
    assert listener.answer(OffsetCommitResponse((("t", 0, NO_ERROR),))) == [
        f"10400 committed { {T0: 50} }",
        f"10400 answered {NO_ERROR.name} to 7",
    ]
    assert listener.until(20_000) == ["13400 returned None"]


def test_a_commit_that_is_refused_or_lost_does_not_count_and_the_callback_returns() -> None:
    listener = Listener(hooks=True, commits={T0: 50})
    listener.give_up(T0)
    refused = OffsetCommitResponse((("t", 0, Error.ILLEGAL_GENERATION),))
    assert listener.answer(refused) == ["10000 answered ILLEGAL_GENERATION to 7"]
    assert listener.until(20_000) == ["13000 returned None"]
    listener = Listener(hooks=True, commits={T0: 50})
    listener.give_up(T0)
    assert listener.answer(Disconnected()) == []
    assert listener.until(20_000) == ["13000 returned None"]


# -- partitions come


def test_a_process_asks_for_its_offsets_when_the_callback_has_returned_and_fetches_with_the_answer() -> None:
    listener = Listener()
    assert listener.take(T0, T1, U0) == "later 2000"
    assert listener.said == ["10000 away for 2000"]
    assert listener.until(11_999) == []
    assert listener.until(12_500) == [f"12000 {asks(t=(0, 1), u=(0,))}"]
    assert listener.calls.held() == (T0, T1, U0)
    assert listener.answer(OFFSETS) == [
        "12500 first positions",
        "12500 PartitionsAssigned g m m-1 7 t-0,t-1,u-0 40,40,40 2000000",
        "12500 rates True",
        "12500 watch",
        "12500 m owns t-0,t-1,u-0 and fetches t-0,t-1,u-0",
    ]
    assert listener.calls.held() == (T0, T1, U0)


def test_a_callback_that_takes_no_time_asks_at_once() -> None:
    listener = Listener()
    listener.durations["assign_callback_ms"] = 0
    assert listener.take(T0) is None
    assert listener.said == [f"10000 {asks(t=(0,))}", "10000 away for 0"]
    assert listener.answer(OFFSETS)[1] == "10000 PartitionsAssigned g m m-1 7 t-0 40 0"


def test_a_process_that_fetches_already_has_known_positions_before() -> None:
    listener = Listener()
    listener.work.partitions = (T0,)
    listener.take(T1, owned=(T0, T1))
    listener.until(12_000)
    assert listener.answer(OFFSETS)[0] == "12000 PartitionsAssigned g m m-1 7 t-1 40 2000000"


def test_an_assignment_that_adds_nothing_is_taken_at_once() -> None:
    listener = Listener()
    listener.work.partitions = (T0,)
    assert listener.calls.call(RunCallback(CallbackKind.ASSIGNED, (), "assignment")) is None
    assert listener.said == [
        "10000 PartitionsAssigned g m m-1 7 - - 0",
        "10000 rates False",
        "10000 watch",
        "10000 m owns - and fetches t-0",
    ]


def test_the_offsets_are_asked_for_again_when_the_connection_was_lost() -> None:
    listener = Listener()
    listener.take(T0)
    listener.until(12_000)
    assert listener.answer(Disconnected()) == []
    listener.until(15_000)
    listener.found.pop()()
    assert listener.said[-1] == f"15000 {asks(t=(0,))}"
    assert listener.answer(OFFSETS)[1] == "15000 PartitionsAssigned g m m-1 7 t-0 40 2000000"


def test_a_process_that_is_gone_neither_asks_nor_fetches() -> None:
    listener = Listener()
    listener.take(T0)
    listener.alive = False
    assert listener.until(20_000) == []
    listener = Listener()
    listener.take(T0)
    listener.until(12_000)
    listener.alive = False
    assert listener.answer(OFFSETS) == []


def test_partitions_that_were_given_up_during_the_look_up_are_not_begun() -> None:
    listener = Listener()
    listener.take(T0, T1)
    listener.until(12_000)
    listener.give_up(T1)
    assert listener.calls.held() == (T0,)
    assert "12000 PartitionsAssigned g m m-1 7 t-0 40 2000000" in listener.answer(OFFSETS)


def test_a_look_up_from_before_a_partition_was_given_up_does_not_begin_it_again() -> None:
    """The answer to the first look-up comes when the partition has been given up and assigned again."""
    listener = Listener()
    listener.take(T0)
    listener.until(12_000)
    listener.give_up(T0)
    listener.membership.generation = Generation(8, "m-1")
    listener.take(T0)
    listener.until(14_000)
    assert listener.answer(OFFSETS) == [
        "14000 PartitionsAssigned g m m-1 7 - - 2000000",
        "14000 rates False",
        "14000 watch",
        "14000 m owns t-0 and fetches -",
    ]
    assert listener.answer(OFFSETS)[:2] == [
        "14000 first positions",
        "14000 PartitionsAssigned g m m-1 8 t-0 40 2000000",
    ]


def test_an_application_says_where_it_begins_and_learns_that_it_fetches() -> None:
    listener = Listener(hooks=True)
    listener.take(T0)
    assert listener.said == ["10000 before taking", "10000 away for 2000"]
    listener.until(12_000)
    said = listener.answer(OFFSETS)
    assert said[1] == "12000 PartitionsAssigned g m m-1 7 t-0 43 2000000"
    assert said[-1] == "12000 fetching t-0"


# -- the state of partitions


def test_state_is_rebuilt_for_the_partitions_that_the_last_assignment_did_not_have() -> None:
    state = LocalState()
    assert state.assigned((T0, T1)) == 2
    before = (T1, U0)
    assert state.assigned(before) == 1
    assert state.assigned(before) == 0
    assert state.assigned((U0,)) == 0
    assert state.assigned((T1, U0)) == 1


def test_a_callback_lasts_longer_by_the_state_that_it_rebuilds() -> None:
    listener = Listener()
    listener.durations["restore_ms"] = 5_000
    assert listener.take(T0, T1) == "later 12000"
    assert listener.take(U0, owned=(T0, T1, U0)) == "later 7000"
    assert listener.take(U0, owned=(T1, U0)) == "later 2000"
    assert listener.said == ["10000 away for 12000", "10000 away for 7000", "10000 away for 2000"]
