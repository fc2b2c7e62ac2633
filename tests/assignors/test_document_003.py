"""Document 003, KIP-315's stream-join-sticky: its tables, its rules, and what violates its expectations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.assignors import registry
from groupstorm.assignors.consumer.streamjoin import StreamJoinStickyAssignor
from groupstorm.assignors.contract import TopicMetadata, subscription_user_data
from groupstorm.assignors.leader import perform_assignment
from groupstorm.assignors.userdata import (
    Assignment,
    Subscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_subscription,
)
from groupstorm.assignors.userdata.sticky import (
    JoinData,
    decode_epoch,
    decode_join_data,
    encode_epoch,
    encode_join_data,
)
from tests.assignors.groups import assign_case

JOINED = ["clicks", "impressions"]


def member(name: str, had: list[int] | None = None, epoch: int | None = None, **more: Any) -> dict[str, Any]:
    told = {} if had is None else {"userdata_partitions": had, "userdata_epoch": epoch}
    return {"id": name, "topics": JOINED} | told | more


def answer(
    members: list[dict[str, Any]], counts: Mapping[str, int], name: str = "stream-join-sticky"
) -> dict[str, Any]:
    topics = {topic: {"partitions": count} for topic, count in counts.items()}
    return assign_case({"assignor": name, "topics": topics, "members": members})


def by_topic(found: dict[str, Any], topic: str) -> dict[str, list[int]]:
    return {m: [p for t, p in mine if t == topic] for m, mine in found["assignment"].items()}


def chosen(members: list[dict[str, Any]], partitions: int = 10) -> dict[str, list[int]]:
    """The numbers of every member; all of both topics, or the answer is wrong."""
    found = answer(members, dict.fromkeys(JOINED, partitions))
    clicks = by_topic(found, "clicks")
    assert clicks == by_topic(found, "impressions")
    return clicks


# --- the tables -------------------------------------------------------------------------------------


def test_lines_27_to_33_round_robin_tears_numbers_apart() -> None:
    """Round robin goes through sorted topics: the table needs names that sort impressions first."""
    members = [{"id": name, "topics": ["1-impressions", "2-clicks"]} for name in "ABCD"]
    found = answer(members, {"1-impressions": 10, "2-clicks": 10}, "roundrobin")
    assert by_topic(found, "1-impressions") == {"A": [0, 4, 8], "B": [1, 5, 9], "C": [2, 6], "D": [3, 7]}
    assert by_topic(found, "2-clicks") == {"A": [2, 6], "B": [3, 7], "C": [0, 4, 8], "D": [1, 5, 9]}


def test_lines_40_to_46_range_keeps_them_together() -> None:
    found = answer([member(name) for name in "ABCD"], dict.fromkeys(JOINED, 10), "range")
    expected = {"A": [0, 1, 2], "B": [3, 4, 5], "C": [6, 7], "D": [8, 9]}
    assert by_topic(found, "impressions") == by_topic(found, "clicks") == expected


def test_lines_52_to_65_range_moves_two_that_need_not_move() -> None:
    found = answer([member(name) for name in "ABC"], dict.fromkeys(JOINED, 10), "range")
    assert by_topic(found, "clicks") == {"A": [0, 1, 2, 3], "B": [4, 5, 6], "C": [7, 8, 9]}


def test_lines_70_to_79_sticky_moves_only_what_d_had() -> None:
    members = [member("A", [0, 1, 2], 7), member("B", [3, 4, 5], 7), member("C", [6, 7], 7)]
    assert chosen(members) == {"A": [0, 1, 2, 9], "B": [3, 4, 5], "C": [6, 7, 8]}
    assert chosen(members[::-1]) == {"C": [6, 7, 8], "B": [3, 4, 5], "A": [0, 1, 2, 9]}


# --- the rules --------------------------------------------------------------------------------------


def test_lines_112_to_116_the_smallest_topic_counts() -> None:
    """A topic grows from 4 to 6 first: 4 and 5 wait for the other; then they are handed out."""
    members = [member("a", [0, 1], 3), member("b", [2, 3], 3)]
    growing = answer(members, {"clicks": 6, "impressions": 4})
    assert growing["assignment"] == {
        "a": [["clicks", 0], ["clicks", 1], ["impressions", 0], ["impressions", 1]],
        "b": [["clicks", 2], ["clicks", 3], ["impressions", 2], ["impressions", 3]],
    }
    assert chosen(members, 6) == {"a": [0, 1, 4], "b": [2, 3, 5]}


def test_line_112_topics_that_do_not_exist_do_not_count() -> None:
    members = [member("a"), member("b") | {"topics": [*JOINED, "typo"]}]
    found = answer(members, {"clicks": 2, "impressions": 2, "typo": 0})
    assert by_topic(found, "clicks") == {"a": [0], "b": [1]}


def test_a_member_without_an_existing_topic_takes_no_share() -> None:
    members = [member("a") | {"topics": ["typo"]}, member("b")]
    found = answer(members, {"clicks": 2, "impressions": 2})
    assert by_topic(found, "clicks") == {"a": [], "b": [0, 1]}


def test_line_121_numbers_that_are_gone_are_not_owned() -> None:
    """Topics created anew with fewer partitions; and what no partition can be."""
    assert chosen([member("a", [9, 3, -1], 3), member("b", [0], 3)], 4) == {"a": [1, 3], "b": [0, 2]}


@pytest.mark.parametrize("order", [1, -1])
def test_line_122_the_higher_epoch_owned_it(order: int) -> None:
    """A zombie comes back with what it had two epochs ago."""
    members = [member("a", [0, 1], 5), member("b", [0, 1], 7), member("c", [2, 3], 7)]
    assert chosen(members[::order], 6) == {"b": [0, 1], "c": [2, 3], "a": [4, 5]}


@pytest.mark.parametrize("epochs", [(5, 5, 6), (6, 5, 5), (5, 6, 5)])
def test_three_claims_do_not_depend_on_who_is_looked_at_first(epochs: tuple[int, ...]) -> None:
    members = [member(name, [2], epoch) for name, epoch in zip("abc", epochs, strict=True)]
    owner = "abc"[epochs.index(6)]
    assert chosen(members, 3)[owner] == [2]


def test_equal_epochs_leave_a_partition_to_nobody() -> None:
    """b would keep 1 for having had it; as it is, a comes first and takes the lowest that is free."""
    assert chosen([member("a", [1, 3], 5), member("b", [1, 2], 5)], 4) == {"a": [0, 3], "b": [1, 2]}
    assert chosen([member("a", [3], 5), member("b", [1, 2], 5)], 4) == {"a": [0, 3], "b": [1, 2]}
    assert chosen([member("a", [1], 5), member("b", [1], 5)], 2) == {"a": [0], "b": [1]}
    assert chosen([member("a", [1], 6), member("b", [1], 5)], 2) == {"a": [1], "b": [0]}


def test_line_128_stealing_begins_with_the_longest_list() -> None:
    """b keeps its three; c takes a's highest numbers."""
    members = [member("a", [0, 1, 2, 3, 4, 5], 2), member("b", [6, 7, 8], 2), member("c")]
    assert chosen(members, 9) == {"a": [0, 1, 2], "b": [6, 7, 8], "c": [3, 4, 5]}


def test_lines_129_to_131_one_member_tries_a_new_topic() -> None:
    """Topic X has 100 partitions; A, alone with it, gets only its own share of X: 89 stay unassigned."""
    members = [member(f"m{n}", list(range(10 * n + 1, 10 * n + 11)), 4) for n in range(1, 9)]
    members.append(member("A", list(range(11)), 4) | {"topics": [*JOINED, "X"]})
    members.append(member("last", list(range(91, 100)), 4))
    found = answer(members, dict.fromkeys([*JOINED, "X"], 100))
    assert by_topic(found, "clicks")["A"] == by_topic(found, "X")["A"]
    assert sum(len(mine) for mine in by_topic(found, "X").values()) == len(by_topic(found, "clicks")["A"])
    assert sum(len(mine) for mine in by_topic(found, "clicks").values()) == 100


def test_line_129_all_are_assigned_again_when_all_have_the_new_topic() -> None:
    before = [member("a", [0, 1], 4) | {"topics": [*JOINED, "X"]}, member("b", [2, 3], 4)]
    counts = dict.fromkeys([*JOINED, "X"], 4)
    assert by_topic(answer(before, counts), "X") == {"a": [0, 1], "b": []}
    after = [one | {"topics": [*JOINED, "X"]} for one in before]
    assert by_topic(answer(after, counts), "X") == {"a": [0, 1], "b": [2, 3]}


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [([None, None], 1), ([3, None], 4), ([3, 8], 9), ([-5, None], 1), ([2**31 - 1, 4], 2**31 - 1)],
)
def test_line_132_the_next_epoch(epochs: list[int | None], expected: int) -> None:
    """The highest and one, from nothing 1; a number that cannot be followed stays."""
    members = [member(f"m{n}", None if epoch is None else [], epoch) for n, epoch in enumerate(epochs)]
    assert answer(members, {"clicks": 2})["epoch"] == expected


# --- user data --------------------------------------------------------------------------------------


@given(st.sets(st.integers(-(2**31), 2**31 - 1), max_size=20), st.integers(-(2**31), 2**31 - 1))
def test_user_data_there_and_back(partitions: set[int], epoch: int) -> None:
    data = encode_join_data(partitions, epoch)
    assert decode_join_data(data) == JoinData(tuple(sorted(partitions)), epoch)
    assert decode_epoch(encode_epoch(epoch)) == epoch


def test_user_data_bytes() -> None:
    assert encode_join_data([1, 0], 3).hex() == "00000002" + "00000000" + "00000001" + "00000003"
    assert encode_epoch(4).hex() == "00000004"


@given(st.binary(max_size=40))
def test_garbage_is_nothing_owned(data: bytes) -> None:
    """Whatever the bytes, all is assigned; a length that lies is not believed."""
    read = decode_join_data(data)
    assert 4 * len(read.partitions) <= max(0, len(data) - 8)
    subscriptions = {"a": Subscription(("t",), data), "b": Subscription(("t",))}
    result = StreamJoinStickyAssignor().assign({"t": TopicMetadata(4)}, subscriptions)
    assert sorted(tp.partition for mine in result.partitions.values() for tp in mine) == [0, 1, 2, 3]


def test_a_length_that_lies() -> None:
    for told in ("7fffffff" + "00000001", "ffffffff" + "00000001", "00000001" + "00000001", "0000"):
        assert decode_join_data(bytes.fromhex(told)) == JoinData((), 0)


# --- members over the wire --------------------------------------------------------------------------


class WireGroup:
    """Members that know nothing but the bytes of their last assignment, and its generation."""

    def __init__(self, *, keep_user_data: bool) -> None:
        self.assignor = registry.get("stream-join-sticky")
        self.keep_user_data = keep_user_data
        self.topics = dict.fromkeys(JOINED, 8)
        self.last: dict[str, tuple[Assignment, int]] = {}
        self.members: list[str] = []
        self.generation = 0

    def subscription(self, name: str) -> bytes:
        last, generation = self.last.get(name, (None, -1))
        if last is not None and not self.keep_user_data:
            last = Assignment(last.partitions)
        user_data = subscription_user_data(self.assignor, last, generation)
        return encode_subscription(Subscription(tuple(JOINED), user_data))

    def step(self, *unreached: str) -> dict[str, list[int]]:
        """A round; those ``unreached`` join, but their assignment gets lost."""
        self.generation += 1
        joining = [(name, None, self.subscription(name)) for name in self.members]
        plan = perform_assignment(self.assignor, self.topics, joining)
        for name, data in plan.items():
            if name not in unreached:
                self.last[name] = (decode_assignment(data), self.generation)
        return {
            m: sorted({tp.partition for tp in decode_assignment(data).partitions}) for m, data in plan.items()
        }


@pytest.mark.parametrize("keep_user_data", [True, False])
def test_a_group_through_growth_a_leave_and_a_zombie(keep_user_data: bool) -> None:
    """The epoch comes back with the user data of the assignment; or, without that, the generation does."""
    group = WireGroup(keep_user_data=keep_user_data)
    group.members = ["a", "b"]
    assert group.step() == {"a": [0, 2, 4, 6], "b": [1, 3, 5, 7]}
    group.members = ["a", "b", "c"]
    assert group.step() == {"a": [0, 2, 4], "b": [1, 3, 5], "c": [6, 7]}
    group.topics = dict.fromkeys(JOINED, 9)
    assert group.step() == {"a": [0, 2, 4], "b": [1, 3, 5], "c": [6, 7, 8]}
    group.members = ["b", "c"]  # a is cut off, and believes in 0, 2 and 4
    assert group.step() == {"b": [0, 1, 3, 4, 5], "c": [2, 6, 7, 8]}
    group.members = ["a", "b", "c"]
    back = {"a": [4, 5, 8], "b": [0, 1, 3], "c": [2, 6, 7]}  # a's older claims take nothing from b and c
    assert group.step("b") == back
    told = {name: decode_join_data(decode_subscription(group.subscription(name)).user_data) for name in "abc"}
    assert [told[name].epoch for name in "abc"] == [5, 4, 5]
    assert told["b"].partitions == (0, 1, 3, 4, 5)
    assert group.step() == back  # b still claims 4 and 5, which a has from a newer epoch


# --- properties -------------------------------------------------------------------------------------


@given(
    lists=st.lists(st.sets(st.sampled_from("tuvw"), max_size=4), min_size=1, max_size=5),
    counts=st.dictionaries(st.sampled_from("tuvw"), st.integers(0, 6)),
)
def test_unequal_subscriptions_keep_numbers_together(lists: list[set[str]], counts: dict[str, int]) -> None:
    """No number of any topic at two members, nothing unsubscribed, nothing that does not exist."""
    subscriptions = {f"m{n}": Subscription(tuple(sorted(topics))) for n, topics in enumerate(lists)}
    topics = {topic: TopicMetadata(count) for topic, count in counts.items()}
    result = StreamJoinStickyAssignor().assign(topics, subscriptions)
    holder: dict[int, str] = {}
    for name, mine in result.partitions.items():
        for tp in mine:
            assert tp.topic in subscriptions[name].topics
            assert tp.partition < counts[tp.topic]
            assert holder.setdefault(tp.partition, name) == name
    existing = [counts[t] for topics_of in lists for t in topics_of if counts.get(t)]
    assert len(holder) == min(existing, default=0)


def test_user_data_of_a_client_that_keeps_none() -> None:
    assignor = StreamJoinStickyAssignor()
    assert assignor.user_data(None, -1) is None
    assert subscription_user_data(assignor, None, -1) is None
    owned = [TopicPartition(topic, n) for topic in JOINED for n in (4, 1)]
    assert decode_join_data(assignor.user_data(owned, 7)) == JoinData((1, 4), 7)
    told = Assignment(tuple(owned), encode_epoch(5))
    assert decode_join_data(subscription_user_data(assignor, told, 7)) == JoinData((1, 4), 5)
    sticky = registry.get("sticky")
    assert subscription_user_data(sticky, told, 7) == sticky.user_data(owned, 7)
