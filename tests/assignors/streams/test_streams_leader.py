"""A whole rebalance: bytes of subscriptions in, bytes of assignments out (StreamsPartitionAssignorTest)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from groupstorm.assignors.streams.leader import Application, Rebalance, StreamsMember, rebalance
from groupstorm.assignors.streams.model import Config, Task, TaskPartition
from groupstorm.assignors.userdata import TopicPartition, UserDataError
from groupstorm.assignors.userdata.streams import (
    NO_REBALANCE_MS,
    AssignorError,
    SubscriptionInfo,
    TaskId,
    decode_assignment_info,
    encode_subscription_info,
)

ONE, TWO = UUID(int=1), UUID(int=2)
NOW_MS = 1_000_000


def application(tasks: int = 4, *, assignor: str = "ha", stateful: bool = True, **more: Any) -> Application:
    listed = [
        Task(
            TaskId("", 0, number),
            stateful,
            (TaskPartition("in", number),),
            (TaskPartition("log", number),) if stateful else (),
        )
        for number in range(tasks)
    ]
    ends = {task.id: 500_000 for task in listed if stateful}
    more.setdefault("end_offset_sums", ends)
    more.setdefault("config", Config())
    return Application(listed, assignor, process=ONE, **more)


def member(process: UUID, owned: list[int] | None = None, **more: Any) -> StreamsMember:
    """``sums``: per partition, how far its task's state is; what is owned is running."""
    sums = dict.fromkeys(owned or [], -2) | more.pop("sums", {})
    info = SubscriptionInfo(
        more.pop("version", 11),
        11,
        process,
        more.pop("endpoint", None),
        {TaskId("", 0, number): offset for number, offset in sums.items()},
        error_code=more.pop("error_code", 0),
    )
    parts = tuple(TopicPartition("in", number) for number in owned or [])
    return StreamsMember(encode_subscription_info(info), parts, more.pop("rack", None))


def partitions(found: Rebalance) -> dict[str, list[int]]:
    return {name: [part.partition for part in own.partitions] for name, own in found.assignments.items()}


def test_what_another_consumer_owns_is_withheld_until_it_is_revoked() -> None:
    """Stateless tasks: b is to have 1 and 3, which a still owns."""
    members = {"a": member(ONE, [0, 1, 2, 3]), "b": member(TWO)}
    found = rebalance(application(stateful=False), members, NOW_MS)
    assert partitions(found) == {"a": [0, 2], "b": []}
    assert not found.stable
    assert found.assignments["b"].info.next_rebalance_ms == 0
    assert found.assignments["a"].info.next_rebalance_ms == NO_REBALANCE_MS
    after = {"a": member(ONE, [0, 2]), "b": member(TWO)}
    assert partitions(rebalance(application(stateful=False), after, NOW_MS)) == {"a": [0, 2], "b": [1, 3]}


def test_a_withheld_task_stays_a_standby_where_it_was_one() -> None:
    """b has caught up with 1 and 3; it keeps them as standbys until a has let go."""
    members = {"a": member(ONE, [0, 1, 2, 3]), "b": member(TWO, sums={1: 500_000, 3: 500_000})}
    found = rebalance(application(), members, NOW_MS)
    assert partitions(found) == {"a": [0, 2], "b": []}
    assert set(found.assignments["b"].info.standby) == {TaskId("", 0, 1), TaskId("", 0, 3)}


def test_the_drafts_watchers_take_the_place_of_probing_where_all_know_the_code() -> None:
    members = {"a": member(ONE, [0, 1, 2, 3]), "b": member(TWO)}
    told = rebalance(application(assignor="kip441-draft"), members, NOW_MS)
    assert not told.stable
    assert {own.info.next_rebalance_ms for own in told.assignments.values()} == {NO_REBALANCE_MS}
    members["b"] = member(TWO, version=10)
    older = rebalance(application(assignor="kip441-draft"), members, NOW_MS)
    assert older.assignments["a"].info.next_rebalance_ms == NOW_MS + 600_000
    assert {own.info.error_code for own in older.assignments.values()} == {0}


def test_one_consumer_is_told_when_to_probe() -> None:
    members = {"a": member(ONE, [0, 1, 2, 3]), "b": member(TWO)}
    found = rebalance(application(), members, NOW_MS)
    times = {name: own.info.next_rebalance_ms for name, own in found.assignments.items()}
    assert times == {"a": NOW_MS + 600_000, "b": NO_REBALANCE_MS}


def test_without_lags_everything_stays_and_another_rebalance_follows() -> None:
    found = rebalance(
        application(end_offset_sums=None), {"a": member(ONE, [0, 1, 2, 3]), "b": member(TWO)}, NOW_MS
    )
    assert partitions(found) == {"a": [0, 1, 2, 3], "b": []}
    assert not found.stable


@pytest.mark.parametrize(
    ("members", "tasks", "code"),
    [
        ({"a": member(ONE, error_code=4), "b": member(TWO)}, 4, AssignorError.SHUTDOWN_REQUESTED),
        ({"a": member(ONE)}, None, AssignorError.INCOMPLETE_SOURCE_TOPIC_METADATA),
    ],
)
def test_errors_go_to_everybody(
    members: dict[str, StreamsMember], tasks: int | None, code: AssignorError
) -> None:
    asked = application()
    if tasks is None:
        asked = Application(None, "ha", Config(), ONE, {})
    found = rebalance(asked, members, NOW_MS)
    assert {own.info.error_code for own in found.assignments.values()} == {code}
    assert all(not own.partitions for own in found.assignments.values())


def future_member() -> StreamsMember:
    return StreamsMember((12).to_bytes(4, "big") + (12).to_bytes(4, "big"))


def test_a_future_version_beside_one_before_probing_is_an_error() -> None:
    found = rebalance(application(), {"a": member(ONE, version=2), "new": future_member()}, NOW_MS)
    assert {own.info.error_code for own in found.assignments.values()} == {AssignorError.ASSIGNMENT_ERROR}


def test_endpoints_are_told_who_serves_what() -> None:
    members = {"a": member(ONE, endpoint="one:80"), "b": member(TWO, endpoint="[::1]:81")}
    config = Config(num_standby_replicas=1)
    info = rebalance(application(config=config), members, NOW_MS).assignments["a"].info
    assert {host.host: [part.partition for part in own] for host, own in info.hosts.items()} == {
        "one": [0, 2],
        "::1": [1, 3],
    }
    assert {host.port: len(own) for host, own in info.standby_hosts.items()} == {80: 2, 81: 2}
    with pytest.raises(UserDataError, match="host:port"):
        rebalance(application(), {"a": member(ONE, endpoint="nowhere")}, NOW_MS)


@pytest.mark.parametrize("watch_list", [False, True])
def test_the_drafts_error_code_travels_in_our_version(watch_list: bool) -> None:
    asked = application(assignor="kip441-draft", watch_list=watch_list)
    found = rebalance(asked, {"a": member(ONE, [0, 1, 2, 3]), "b": member(TWO)}, NOW_MS)
    told = decode_assignment_info(found.assignments["b"].user_data)
    assert (told.version, told.error_code) == (12, AssignorError.IMBALANCED_ASSIGNMENT)
    assert bool(told.watch) == watch_list
    assert found.assignments["a"].info.version == 11
