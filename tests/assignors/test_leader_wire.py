"""Partition numbers on the leader's wire: plainly, with numpy, and through names; all the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.assignors import registry
from groupstorm.assignors.consumer.indexed import PartitionIndex
from groupstorm.assignors.contract import TopicMetadata
from groupstorm.assignors.leader import JoinedMember, LeaderMemory, perform_assignment
from groupstorm.assignors.leader import assignment as leader_assignment
from groupstorm.assignors.leader.codec import PartitionCodec
from groupstorm.assignors.userdata import (
    Subscription,
    UserDataError,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from groupstorm.assignors.userdata.wire import read_topic_partitions, topic_partitions
from tests.soaking import one_in

TOPICS = {"a": 1, "bb": 3, "é": 40, "topic": 300}
INDEX = PartitionIndex({topic: TopicMetadata(count) for topic, count in TOPICS.items()})
NUMBERS = st.lists(st.integers(0, INDEX.size - 1), max_size=60, unique=True)


@pytest.fixture(params=["plain", "numpy"])
def codec(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> PartitionCodec:
    """Either codec; the one with numpy uses it for the smallest groups, too."""
    if request.param == "plain":
        return PartitionCodec(INDEX)
    pytest.importorskip("numpy", reason="pip install numpy, or groupstorm[speed]")
    array_codec = pytest.importorskip("groupstorm.assignors.leader.array_codec")
    monkeypatch.setattr(array_codec, "_FEW", 0)
    made: PartitionCodec = array_codec.ArrayCodec(INDEX)
    return made


# one codec serves all the lists: what it remembers of one must not show in the next
@pytest.mark.parametrize("sorting", [sorted, list, lambda numbers: sorted(numbers, key=INDEX.kept_key)])
def test_written_as_by_name(codec: PartitionCodec, sorting: Callable[[list[int]], list[int]]) -> None:
    @given(st.lists(NUMBERS, max_size=5))
    def check(assigned: list[list[int]]) -> None:
        assigned = [sorting(numbers) for numbers in assigned]
        assert codec.write_assignments(assigned) == [encode_assignment(INDEX.names(n)) for n in assigned]

    check()


GROUPS = st.lists(
    st.tuples(st.sampled_from([*TOPICS, "gone"]), st.lists(st.integers(-1, 301), max_size=4)), max_size=5
)


def test_read_as_by_name(codec: PartitionCodec) -> None:
    """Sections that come again, with what does not exist, cut off anywhere, and with bytes around them."""

    @given(st.lists(GROUPS, min_size=1, max_size=3), st.integers(0, 3), st.data())
    def check(sections: list, before: int, data: st.DataObject) -> None:
        for groups in [*sections, *sections, *sections]:
            whole = topic_partitions(groups)
            cut = data.draw(st.just(len(whole)) | st.integers(0, len(whole)))
            section = bytes(before) + whole[:cut] + (b"more" if cut == len(whole) else b"")
            try:
                expected, end = read_topic_partitions(section, before)
            except UserDataError:
                with pytest.raises(UserDataError):
                    codec.read(section, before)
                continue
            owned, position = codec.read(section, before)
            known = [INDEX.ids(topic, partitions) for topic, partitions in expected]
            assert (owned.numbers, position) == ([number for group in known for number in group], end)
            assert owned.listed == sum(len(partitions) for _, partitions in expected)
            assert owned.nonexistent == any(
                topic in TOPICS and len(group) < len(partitions)
                for (topic, partitions), group in zip(expected, known, strict=True)
            )

    check()


def test_a_layout_that_comes_again_is_still_checked(codec: PartitionCodec) -> None:
    """The third time the bytes are recognised; a partition that does not exist is not."""
    for partition in (0, 1, 2):
        assert codec.read(topic_partitions([("bb", [partition]), ("é", [7])]), 0)[0].listed == 2
    for partition in (3, -1, 2**31 - 1):
        owned, _ = codec.read(topic_partitions([("bb", [partition]), ("é", [7])]), 0)
        assert owned == ([*INDEX.ids("é", [7])], 2, True)


@pytest.mark.parametrize("topics", one_in(3, [7, 1, 60]))
@pytest.mark.parametrize(
    "name", ["range", "roundrobin", "sticky", "cooperative-sticky", "optimal-sticky", "two-phase-sticky"]
)
def test_a_large_group_gets_the_same_with_numpy(
    name: str, topics: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numpy", reason="pip install numpy, or groupstorm[speed]")
    known = {f"topic-{number}": 4 + 1200 // topics + number % 3 for number in range(topics)}
    answers = []
    for large in (0, 1 << 62):
        monkeypatch.setattr(leader_assignment, "_LARGE", large)
        answers.append(_rounds(name, known, [30, 31, 25, 25]))
    assert answers[0] == answers[1]


def _rounds(name: str, topics: dict[str, int], sizes: Sequence[int]) -> list[dict[str, bytes]]:
    """The answers of a group whose members are the newest so many, with one memory."""
    assignor, memory = registry.get(name), LeaderMemory()
    answers: list[dict[str, bytes]] = [{}]
    newest = list(accumulate(sizes, max))
    for generation, (size, count) in enumerate(zip(sizes, newest, strict=True)):
        members: list[JoinedMember] = []
        for member in (f"member-{number}" for number in range(count - size, count)):
            data = answers[-1].get(member)
            owned = None if data is None else decode_assignment(data).partitions
            subscription = Subscription(
                tuple(topics),
                assignor.user_data(owned, generation),
                owned if owned is not None and len(assignor.protocols) > 1 else (),
                generation,
            )
            members.append((member, None, encode_subscription(subscription)))
        answers.append(perform_assignment(assignor, topics, members, memory))
    return answers
