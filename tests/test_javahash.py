"""Hash order against Java's own: digests of the orders that JDK 17.0.15 and Kafka 4.3.1 gave.

The key sets are made by rule (`_keys`), so that only the digests stand here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.javahash import (
    JavaHashMap,
    TimelineHashMap,
    hash_order,
    integer_hash,
    partition_for,
    signed,
    string_hash,
    topic_partition_hash,
)


def _keys(kind: str, count: int) -> list[str]:
    keys, state = [], 42
    for number in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        texts = {
            "numbered": f"topic-{number}",
            "ids": f"client-{state:x}",
            "unicode": f"ключ😀{state >> 40:x}é{number}",
        }
        keys.append(texts[kind])
    return keys


def _digest(keys: Iterable[object]) -> str:
    return hashlib.md5("".join(f"{key}\n" for key in keys).encode(), usedforsecurity=False).hexdigest()[:8]


# kind, count, then digests of: HashMap grown key by key; new HashMap<>(map); new HashSet<>(list);
# HashMap after removals and returns; TimelineHashMap; the same after removals, returns and overwriting;
# TimelineHashMap of Integer; HashSet of TopicPartition (-: buckets became trees)
_TREES = "-"
_JAVA = """
numbered 1 b6cf32f1 b6cf32f1 b6cf32f1 b6cf32f1 b6cf32f1 b6cf32f1 89731692 7d2a3734
numbered 5 fb7a75f0 fb7a75f0 fb7a75f0 990df947 719a8be7 f526dfd7 1f6941cf 58ec7d85
numbered 12 30ea6a3f 30ea6a3f 30ea6a3f 8ffecf80 f23d6606 c2166712 32d57d17 29362646
numbered 13 e0bb1324 e0bb1324 e0bb1324 ef22ccd5 ac0d55d1 534c081d 9785efe2 74fbd3b6
numbered 24 6f977c5c cb1328d3 cb1328d3 17be3aa2 08d274fe 82628cf8 1ad71da7 9803235f
numbered 48 8a95def7 9ac39e59 9ac39e59 a44e03a2 d5334a3a a5c66575 1cd5e861 -
numbered 49 56387eea 56387eea 56387eea 1b039d55 11b39c15 14b1b091 efd37325 -
numbered 100 b407bcb8 b407bcb8 b407bcb8 a139a812 2de7c952 68cdb7c5 156c6a74 9529ff3b
numbered 1000 a92fd0f3 a92fd0f3 a92fd0f3 4b8e430d bcaedefe 845e0e7f b9906bc1 92e75291
ids 1 dc12856e dc12856e dc12856e dc12856e dc12856e dc12856e 89731692 b23e978e
ids 5 6a6bb46e be589d96 6a6bb46e ba68ff76 2ac1569c 372aa36b 1f6941cf 1537a087
ids 12 3627af36 8b26263f 8b26263f 30a1de8c 8bd64dab 80c977de 32d57d17 90062671
ids 13 d5328525 d5328525 d5328525 bf2f5d30 1b5c2b60 1abebc5c 9785efe2 ebb73874
ids 24 25b2aa15 015be579 015be579 c068c4c6 707725a9 67c1044f 1ad71da7 b2b338d4
ids 48 10cbe421 5eff3736 5eff3736 0966fdae 4e4a8999 bc563e50 1cd5e861 4dc00201
ids 49 441b1f21 441b1f21 441b1f21 6cbbe286 92612dd8 213ddcda efd37325 7b9dc5ea
ids 100 ae476757 ae476757 ae476757 9a0793af fb0d5ab1 756c663c 156c6a74 26c7b4b4
ids 1000 7a3ce21c 7a3ce21c 7a3ce21c 258c627a 6c4a29af 4b96045a b9906bc1 4e357dd6
unicode 1 8b85794f 8b85794f 8b85794f 8b85794f 8b85794f 8b85794f 89731692 ff62ec9a
unicode 5 2f0e7ea0 ce2dd75e 2f0e7ea0 f3a14953 559ab297 16e02001 1f6941cf 0a26f3cf
unicode 12 979895b7 c12bf664 c12bf664 5b4f0b8d 04c2ff85 6e3eee4c 32d57d17 c6234ae5
unicode 13 208783ee 208783ee 208783ee e921a4e4 655537ec 3a85571a 9785efe2 523317bc
unicode 24 8c3d8680 7f13e19a 7f13e19a 0f865223 7ebad46b 3d9db10b 1ad71da7 07f256fe
unicode 48 fee3ae22 72e698d8 72e698d8 e5c4efe0 e11afe07 30c50751 1cd5e861 a69edc67
unicode 49 c6a38366 c6a38366 c6a38366 c6bc41bb a9d11b50 c044f64f efd37325 15d8a77c
unicode 100 237d4c79 237d4c79 237d4c79 0af14768 89abc284 3056f446 156c6a74 0a8f5dee
unicode 1000 26f6736b 26f6736b 26f6736b fba125cd fee7ab5e 6c4859e9 b9906bc1 45129458
"""


@pytest.mark.parametrize("row", _JAVA.strip().splitlines())
def test_orders_are_javas(row: str) -> None:
    kind, size, grown, copied, as_set, churned, timeline, timeline_churned, integers, partitions = row.split()
    count = int(size)
    keys = _keys(kind, count)
    assert _digest(hash_order(keys)) == grown
    assert _digest(JavaHashMap.copy_of(dict.fromkeys(keys, 1))) == copied
    assert _digest(JavaHashMap.set_of(keys)) == as_set

    table: JavaHashMap[str, int] = JavaHashMap()
    of_kafka: TimelineHashMap[str, int] = TimelineHashMap()
    for key in keys:
        table.put(key, 1)
        of_kafka.put(key, 1)
    assert _digest(of_kafka) == timeline
    for key in keys[::2]:
        table.remove(key)
        of_kafka.remove(key)
    for key in keys[::4]:
        table.put(key, 1)
        of_kafka.put(key, 1)
    for key in keys:
        if key in of_kafka:
            of_kafka.put(key, 2)
    assert _digest(table) == churned
    assert _digest(of_kafka) == timeline_churned

    numbers: TimelineHashMap[int, int] = TimelineHashMap(integer_hash)
    for number in range(count):
        numbers.put(number * 7, 1)
    assert _digest(numbers) == integers

    if partitions == _TREES:
        return
    owned = [(keys[number % max(1, count // 3)], number) for number in range(count)]
    ordered = hash_order(owned, topic_partition_hash)
    assert _digest(f"{topic}-{partition}" for topic, partition in ordered) == partitions


def test_a_crowded_bucket_makes_a_small_table_grow() -> None:
    """Eleven keys of one bucket of sixteen: HashMap.treeifyBin doubles the table instead (JDK 17.0.15)."""
    put = (18, 29, 90, 140, 151, 162, 173, 184, 195, 250, 261)
    yielded = (90, 18, 140, 162, 184, 261, 29, 151, 173, 195, 250)
    assert hash_order(f"k{number}" for number in put) == [f"k{number}" for number in yielded]


@given(
    st.lists(st.integers(0, 200), unique=True, max_size=50),
    st.sampled_from((None, 0, 2, 16, 64)),
    st.booleans(),
)
def test_few_keys_come_in_the_order_of_a_table(keys: list[int], capacity: int | None, crowded: bool) -> None:
    hash_of = (lambda key: key * 8) if crowded else integer_hash
    table: JavaHashMap[int, None] = JavaHashMap(hash_of, initial_capacity=capacity)
    for key in keys:
        table.put(key, None)
    assert hash_order(keys, hash_of, initial_capacity=capacity) == table.keys()


@pytest.mark.parametrize(
    ("capacity", "grown"),
    [
        (0, [[7], [5, 7], [1, 5, 7], [9, 1, 5, 7], [9, 1, 13, 5, 7]]),
        (2, [[7], [5, 7], [1, 5, 7], [9, 1, 5, 7], [9, 1, 13, 5, 7]]),
        (16, [[7], [5, 7], [1, 5, 7], [1, 5, 7, 9], [1, 5, 7, 9, 13]]),
    ],
)
def test_compute_if_absent_puts_a_key_in_front_of_its_bucket(capacity: int, grown: list[list[int]]) -> None:
    table: JavaHashMap[int, str] = JavaHashMap(integer_hash, initial_capacity=capacity)
    for key, after in zip((7, 5, 1, 9, 13), grown, strict=True):
        assert table.compute_if_absent(key, lambda: "new") == "new"
        assert table.keys() == after
    assert table.compute_if_absent(9, lambda: "other") == "new"


def test_asking_for_a_key_that_is_there_can_make_the_table_grow() -> None:
    """5 and 7 share a bucket of two and not one of four; put would have grown the table at once."""
    table: JavaHashMap[int, None] = JavaHashMap(integer_hash, initial_capacity=0)
    for key in (5, 7):
        table.compute_if_absent(key, lambda: None)
    assert table.keys() == [7, 5]
    table.compute_if_absent(5, lambda: None)
    assert table.keys() == [5, 7]


def _mixed_history(seed: int) -> list[int]:
    """Sixty calls on a table that starts small, in every third history with few buckets among the keys."""
    table: JavaHashMap[int, int] = JavaHashMap(integer_hash, initial_capacity=seed % 7)
    state = seed
    for _ in range(60):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        key = (state >> 8) % 8 * 16 + (state >> 12) % 4 if seed % 3 == 0 else (state >> 8) % 40
        call = (state >> 20) % 5
        if call < 3:
            table.compute_if_absent(key, int)
        elif call == 3:
            table.put(key, 0)
        else:
            table.remove(key)
    return table.keys()


def test_mixed_histories_are_ordered_as_in_java() -> None:
    """Three hundred histories of put, computeIfAbsent and remove; the digest is JDK 17.0.15's."""
    assert _digest(map(_mixed_history, range(1, 301))) == "7f84ae6a"


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("Aa", 2112), ("BB", 2112), ("topic-0", -1139260654), ("😀", 1772899)],
)
def test_string_hash(text: str, value: int) -> None:
    assert signed(string_hash(text)) == value


@pytest.mark.parametrize(
    ("group", "partition"),
    [("pay", 10), ("console-consumer-40652", 48), ("", 0), ("polygenelubricants", 0)],
)
def test_the_partition_that_holds_a_group(group: str, partition: int) -> None:
    """Math.abs(group.hashCode()) % 50, by hand; of the last one the hash is Integer.MIN_VALUE."""
    assert partition_for(group, 50) == partition


def test_first_after_removals() -> None:
    table: JavaHashMap[str, int] = JavaHashMap()
    for number in range(40):
        table.put(f"k{number}", number)
    while table:
        assert table.first() == next(iter(table))
        table.remove(table.first())
    with pytest.raises(KeyError):
        table.first()


def test_an_emptied_table_keeps_its_size() -> None:
    keys = _keys("ids", 100)
    grown = JavaHashMap.set_of(keys)
    for key in keys:
        grown.remove(key)
    small: JavaHashMap[str, None] = JavaHashMap()
    for key in keys[:10]:
        grown.put(key, None)
        small.put(key, None)
    assert sorted(grown) == sorted(small)
    assert list(grown) != list(small)


@given(st.lists(st.tuples(st.booleans(), st.text("abcde", max_size=3), st.integers())))
def test_it_is_a_map(steps: list[tuple[bool, str, int]]) -> None:
    table: JavaHashMap[str, int] = JavaHashMap()
    of_kafka: TimelineHashMap[str, int] = TimelineHashMap()
    model: dict[str, int] = {}
    for add, key, value in steps:
        if add:
            table.put(key, value)
            of_kafka.put(key, value)
            model[key] = value
        else:
            assert table.remove(key) == of_kafka.remove(key) == model.pop(key, None)
        assert table.get(key) == of_kafka.get(key) == model.get(key)
        assert (key in table) == (key in of_kafka) == (key in model)
    assert len(table) == len(of_kafka) == len(model)
    assert dict(table.items()) == dict(of_kafka.items()) == dict(table.unordered_items()) == model
    assert table.values() == [model[key] for key in table]
