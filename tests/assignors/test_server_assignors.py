"""The broker's assignors: their promises, and their answers to unsound targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.assignors.server import (
    AssignmentRefused,
    MapOrder,
    MemberSpec,
    ServerAssignor,
    Target,
    TopicDescription,
    get,
    names,
)
from groupstorm.problems import InputError

Lists = dict[str, list[int]]


def _id(topic: str) -> UUID:
    return UUID(int=int.from_bytes(topic.encode(), "big"))


def _topics(counts: Mapping[str, int]) -> dict[str, TopicDescription]:
    return {name: TopicDescription(_id(name), count) for name, count in counts.items()}


def _spec(topics: str, target: Mapping[str, Sequence[int]], instance: str | None = None) -> MemberSpec:
    return MemberSpec(topics.split(), {_id(name): list(held) for name, held in target.items()}, instance)


def _assign(
    assignor: ServerAssignor, counts: Mapping[str, int], members: dict[str, MemberSpec]
) -> list[Lists]:
    """The new targets by name, members as they were given."""
    targets = assignor.assign(_topics(counts), members)
    assert list(targets) == list(members)
    by_id = {_id(name): name for name in (*counts, "gone")}
    return [{by_id[topic]: sorted(held) for topic, held in target.items()} for target in targets.values()]


def test_a_target_that_stays_is_the_very_same_object() -> None:
    """The coordinator writes a record for what is not; targets that cannot be make no difference."""
    target: Target = {_id("t"): [1, 0]}
    for others in ([2, 3], [2, 3, 4]):
        members = {"m0": MemberSpec(["t"], target), "m1": MemberSpec(["t"], {_id("t"): others})}
        for name in names():
            assert get(name).assign(_topics({"t": 4}), members)["m0"] is target


# --- targets that cannot be ------------------------------------------------------------------------

_PHANTOM = {"m0": _spec("t", {"t": [0, 1, 5]}), "m1": _spec("t", {"t": [2]})}
_PHANTOM_UNEQUAL = {"m0": _spec("t u", {"t": [0, 1, 5]}), "m1": _spec("t", {"t": [2]})}
_CONTESTED_UNEQUAL = {"m0": _spec("t u", {"t": [0, 1]}), "m1": _spec("t", {"t": [1, 2]})}


@pytest.mark.parametrize(
    ("members", "error"),
    [(_PHANTOM, "PartitionAssignorException"), (_PHANTOM_UNEQUAL, "ArrayIndexOutOfBoundsException")],
)
def test_a_partition_that_does_not_exist(members: dict[str, MemberSpec], error: str) -> None:
    """A topic made anew with fewer partitions than the target says. Kafka's assignor throws."""
    counts = {"t": 4, "u": 0}
    with pytest.raises(AssignmentRefused) as refused:
        get("uniform", bug_compat=True).assign(_topics(counts), members)
    assert refused.value.error == error
    assert _assign(get("uniform"), counts, members) == [{"t": [0, 1]}, {"t": [2, 3]}]


def test_a_partition_of_two_members() -> None:
    """With unequal subscriptions Kafka gives it to both; here the later one keeps it."""
    counts = {"t": 3, "u": 1}
    kafkas = _assign(get("uniform", bug_compat=True), counts, _CONTESTED_UNEQUAL)
    assert sorted(kafkas[0]["t"] + kafkas[1]["t"]) == [0, 1, 1, 2]
    assert _assign(get("uniform"), counts, _CONTESTED_UNEQUAL) == [{"t": [0], "u": [0]}, {"t": [1, 2]}]


def test_an_unknown_name_is_told_with_those_there_are() -> None:
    with pytest.raises(InputError, match="'simple': expected one of uniform, range"):
        get("simple")


# --- any group -------------------------------------------------------------------------------------

_COUNTS = st.dictionaries(st.sampled_from("tuvw"), st.integers(0, 9), min_size=1)
_MEMBERS = st.lists(st.sets(st.sampled_from("tuvwx")), min_size=1, max_size=8)
_HELD = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from("tuvw"), st.integers(-1, 9)), max_size=30, unique=True
)


def _group(
    subscribed: Sequence[set[str]], held: Sequence[tuple[int, str, int]], *, sound: Mapping[str, int] | None
) -> dict[str, MemberSpec]:
    """Members with targets; ``sound``: only what exists in these topics, and each partition once."""
    targets: list[dict[str, list[int]]] = [{} for _ in subscribed]
    seen: set[tuple[str, int]] = set()
    for owner, topic, number in held:
        fits = sound is None or (0 <= number < sound.get(topic, 0) and (topic, number) not in seen)
        if owner < len(subscribed) and fits:
            seen.add((topic, number))
            targets[owner].setdefault(topic, []).append(number)
    return {
        f"m{number}": _spec(" ".join(sorted(topics)), target)
        for number, (topics, target) in enumerate(zip(subscribed, targets, strict=True))
    }


@given(_COUNTS, _MEMBERS, _HELD, st.sampled_from(names()), st.sampled_from(list(MapOrder)))
def test_each_partition_goes_to_one_subscriber_whatever_the_targets_say(
    counts: dict[str, int],
    subscribed: list[set[str]],
    held: list[tuple[int, str, int]],
    name: str,
    order: MapOrder,
) -> None:
    targets = _assign(get(name, order=order), counts, _group(subscribed, held, sound=None))
    given_out = Counter(
        (topic, n) for target in targets for topic, numbers in target.items() for n in numbers
    )
    wanted = {(topic, n) for topic in set().union(*subscribed) for n in range(counts.get(topic, 0))}
    assert given_out == Counter(wanted)
    assert all(target.keys() <= topics for target, topics in zip(targets, subscribed, strict=True))
