"""The iteration order of Java's hash tables, for the decisions of Kafka that depend on it.

Kafka takes whatever ``java.util.HashMap`` yields first for several decisions: the next leader after the
leader has gone, ties of the protocol vote, the member that keeps a partition more. The rules here are those
of JDK 17 (a copy constructor of JDK 19 and later sizes its table differently) and of Kafka's own
``TimelineHashMap``.

Buckets that Java turns into trees (more than 8 keys of one bucket in a table of 64 or more) keep insertion
order here; Java's order differs there, and for keys that are not ``Comparable`` it differs from run to run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Generic, TypeVar
from uuid import UUID

K = TypeVar("K")
V = TypeVar("V")

_MASK_32 = 0xFFFFFFFF
_MASK_64 = 0xFFFFFFFFFFFFFFFF
_UNITS_AT_ONCE = 64
_DEFAULT_CAPACITY = 16
_TREEIFY_THRESHOLD = 8
_MIN_TREEIFY_CAPACITY = 64
#: 2**64 divided by the golden ratio, as a signed long (BaseHashTable.baseElementIndex).
_FIBONACCI = -7046029254386353131


@lru_cache(maxsize=1 << 17)
def string_hash(text: str) -> int:
    """``String.hashCode`` as an unsigned 32 bit number: s[0]*31^(n-1)+... over UTF-16 code units."""
    result = 0
    if text.isascii():
        data = text.encode("ascii")
        for first in range(
            0, len(data), _UNITS_AT_ONCE
        ):  # one number for all would be thousands of bits long
            for unit in data[first : first + _UNITS_AT_ONCE]:
                result = 31 * result + unit
            result &= _MASK_32
        return result
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) & _MASK_32
    return result


def topic_partition_hash(topic_partition: tuple[str, int]) -> int:
    """``TopicPartition.hashCode`` of (topic, partition), unsigned."""
    topic, partition = topic_partition
    return (31 * (31 + partition) + string_hash(topic)) & _MASK_32


def integer_hash(number: int) -> int:
    """``Integer.hashCode``, unsigned."""
    return number & _MASK_32


def uuid_hash(identifier: UUID) -> int:
    """``hashCode`` of Kafka's ``Uuid`` and of ``java.util.UUID``, unsigned: the four words, xored."""
    number = identifier.int
    folded = (number >> 64) ^ number
    return (folded >> 32 ^ folded) & _MASK_32


def signed(number: int) -> int:
    """An unsigned 32 bit number as Java's ``int``."""
    return number - (1 << 32) if number & 0x80000000 else number


def partition_for(key: str, partitions: int) -> int:
    """The partition of an internal topic that holds the state of a group or of a transactional id
    (GroupCoordinatorService.partitionFor, Utils.abs)."""
    number = signed(string_hash(key))
    return (0 if number == -(1 << 31) else abs(number)) % partitions


def _spread(unsigned_hash: int) -> int:
    """``HashMap.hash``: the upper half takes part in choosing the bucket."""
    return unsigned_hash ^ (unsigned_hash >> 16)


def _table_size_for(capacity: int) -> int:
    """``HashMap.tableSizeFor``: the next power of two."""
    return 1 if capacity <= 1 else 1 << (capacity - 1).bit_length()


class _HashMap(ABC, Generic[K, V]):
    """A map in the order of `keys`. ``hash_of`` gives a key's ``hashCode`` (unsigned or signed)."""

    __slots__ = ("_hash_of", "_values", "get")

    #: The value of a key, or None: the dict's own method, because storms call it millions of times.
    get: Callable[[K], V | None]

    def __init__(self, hash_of: Callable[[K], int] | None) -> None:
        self._hash_of: Callable[[K], int] = hash_of or string_hash
        self._values: dict[K, V] = {}
        self.get = self._values.get

    @abstractmethod
    def keys(self) -> list[K]:
        """The keys in their order, a list of the caller's own."""

    def items(self) -> Iterator[tuple[K, V]]:
        """Key and value in their order; later changes of the map do not show."""
        values = self._values
        return iter([(key, values[key]) for key in self.keys()])

    def values(self) -> list[V]:
        """The values in the order of the keys, a list of the caller's own."""
        values = self._values
        return [values[key] for key in self.keys()]

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class JavaHashMap(_HashMap[K, V]):
    """A map that iterates as ``java.util.HashMap`` of JDK 17 with the same history would.

    A bucket keeps the order of insertion, and a growing table keeps the order within its buckets. So the
    whole order is the order of insertion, stably sorted by bucket, and a dict and the table's size are
    enough state. The table never shrinks, so the order depends on every key that was ever in the map.
    """

    __slots__ = (
        "_capacity",
        "_fronts",
        "_head",
        "_order",
        "_spreads",
        "_threshold",
    )

    def __init__(
        self, hash_of: Callable[[K], int] | None = None, *, initial_capacity: int | None = None
    ) -> None:
        """``new HashMap<>()``, or ``new HashMap<>(initial_capacity)``."""
        super().__init__(hash_of)
        self._spreads: dict[K, int] = {}
        #: Keys inserted at the front of their bucket, each before those with a smaller number; usually none.
        self._fronts: dict[K, int] | None = None
        wanted = _DEFAULT_CAPACITY if initial_capacity is None else initial_capacity
        self._capacity = _table_size_for(wanted)
        self._threshold = int(self._capacity * 0.75)
        self._order: list[K] | None = None
        self._head = 0

    @classmethod
    def copy_of(cls, source: Mapping[K, V]) -> JavaHashMap[K, V]:
        """``new HashMap<>(map)`` of JDK 17: sized for the source, filled in the source's order."""
        copy = cls(initial_capacity=int(len(source) / 0.75 + 1.0))
        for key, value in source.items():
            copy.put(key, value)
        return copy

    @classmethod
    def set_of(cls, keys: Iterable[K], hash_of: Callable[[K], int] | None = None) -> JavaHashMap[K, None]:
        """``new HashSet<>(collection)`` of JDK 17, as a map to None; duplicates count for its size."""
        listed = list(keys)
        table: JavaHashMap[K, None] = JavaHashMap(
            hash_of, initial_capacity=max(int(len(listed) / 0.75) + 1, _DEFAULT_CAPACITY)
        )
        for key in listed:
            table.put(key, None)
        return table

    def put(self, key: K, value: V) -> None:
        """``put``: a key that is present keeps its place."""
        if key in self._values:
            self._values[key] = value
            return
        self._insert(key, value, _TREEIFY_THRESHOLD)
        if len(self._values) > self._threshold:
            self._double()

    def compute_if_absent(self, key: K, make: Callable[[], V]) -> V:
        """``computeIfAbsent``: the value of the key, or a new one.

        Unlike ``put`` it inserts a key at the front of its bucket. It grows a table that is too full before
        it looks the key up, even if the key is present, and not after it has inserted one.
        """
        if len(self._values) > self._threshold:
            self._double()
        if key not in self._values:
            self._fronts = self._fronts or {}
            self._fronts[key] = 1 + next(reversed(self._fronts.values()), 0)  # the latest is the highest
            self._insert(key, make(), _TREEIFY_THRESHOLD - 1)
        return self._values[key]

    def _insert(self, key: K, value: V, bucket_max: int) -> None:
        spread = _spread(self._hash_of(key) & _MASK_32)
        self._values[key] = value
        self._spreads[key] = spread
        self._order = None
        if self._capacity < _MIN_TREEIFY_CAPACITY and len(self._spreads) > bucket_max:
            mask = self._capacity - 1
            bucket = spread & mask
            if sum(other & mask == bucket for other in self._spreads.values()) > bucket_max:
                self._double()  # HashMap.treeifyBin grows a small table instead

    def _double(self) -> None:
        self._order = None
        self._capacity *= 2
        self._threshold = int(self._capacity * 0.75)

    def remove(self, key: K) -> V | None:
        """``remove``: the value of the key, or None."""
        if key not in self._values:
            return None
        del self._spreads[key]
        if self._fronts:
            self._fronts.pop(key, None)
        return self._values.pop(key)

    def first(self) -> K:
        """The key that iteration yields first; KeyError if there is none.

        A second call after a removal does not walk the table again.
        """
        order = self._ordered()
        while self._head < len(order):
            if order[self._head] in self._values:
                return order[self._head]
            self._head += 1
        raise KeyError("the map is empty")

    def _ordered(self) -> list[K]:
        """Keys in order, perhaps with removed ones among them; an inserted key invalidates the list."""
        if self._order is None and len(self._spreads) < 2:
            self._order, self._head = list(self._spreads), 0  # most topics have one partition at a member
        if self._order is None:
            mask = self._capacity - 1
            spreads, fronts = self._spreads, self._fronts
            in_bucket = sorted(spreads, key=lambda key: -fronts.get(key, 0)) if fronts else spreads
            self._order = sorted(in_bucket, key=lambda key: spreads[key] & mask)
            self._head = 0
        return self._order

    def keys(self) -> list[K]:
        """The keys in Java's order, a list of the caller's own."""
        order = self._ordered()
        if len(order) != len(self._values):
            self._order = order = [key for key in order if key in self._values]
            self._head = 0
        return order.copy()

    def unordered_items(self) -> ItemsView[K, V]:
        """Key and value in no particular order, without the cost of ordering."""
        return self._values.items()

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __repr__(self) -> str:
        return f"JavaHashMap({{{', '.join(f'{key!r}: {value!r}' for key, value in self.items())}}})"


def hash_order(
    keys: Iterable[K], hash_of: Callable[[K], int] | None = None, *, initial_capacity: int | None = None
) -> list[K]:
    """The order of a ``HashMap`` or ``HashSet`` that grew from empty by ``keys`` in their order."""
    distinct = list(dict.fromkeys(keys))
    if len(distinct) < 2:
        return distinct  # most sets of a topology have one topic
    hash_one: Callable[[K], int] = hash_of or string_hash
    spreads = [(number := hash_one(key) & _MASK_32) ^ number >> 16 for key in distinct]
    if len(distinct) * 4 <= _MIN_TREEIFY_CAPACITY * 3:
        buckets = [spread & _DEFAULT_CAPACITY - 1 for spread in spreads]
        if len(buckets) > _TREEIFY_THRESHOLD and max(map(buckets.count, buckets)) > _TREEIFY_THRESHOLD:
            table: JavaHashMap[K, None] = JavaHashMap(hash_of, initial_capacity=initial_capacity)
            for key in distinct:
                table.put(key, None)  # a full bucket may double the table (treeifyBin)
            return table.keys()
    # else the size of the table does not depend on how its buckets filled, only on how many keys there are
    wanted = _DEFAULT_CAPACITY if initial_capacity is None else initial_capacity
    mask = max(_table_size_for(-(-len(distinct) * 4 // 3)), _table_size_for(wanted)) - 1
    slots = [spread & mask for spread in spreads]
    return [distinct[place] for place in sorted(range(len(distinct)), key=slots.__getitem__)]


class TimelineHashMap(_HashMap[K, V]):
    """A map that iterates as Kafka's ``TimelineHashMap`` does at its latest epoch.

    Fibonacci hashing, at least two slots, doubled when more than 4/3 keys a slot would be in it, and each
    slot's keys last first (server-common: BaseHashTable, SnapshottableHashTable). Old epochs are not kept:
    a caller that reverts has kept the old values itself, and removes what has changed before it puts the old
    value back, which is the last of its slot then (SnapshottableHashTable.executeRevert).
    """

    __slots__ = ("_hashes", "_slots")

    def __init__(self, hash_of: Callable[[K], int] | None = None) -> None:
        super().__init__(hash_of)
        self._hashes: dict[K, int] = {}
        self._slots = 2

    def put(self, key: K, value: V) -> None:
        """``put``: a key that is present keeps its place, but may make the table grow all the same."""
        if (len(self._values) + 1) * 0.75 > self._slots:
            self._slots *= 2
        if key not in self._values:
            self._hashes[key] = signed(self._hash_of(key) & _MASK_32) * _FIBONACCI & _MASK_64
        self._values[key] = value

    def remove(self, key: K) -> V | None:
        """``remove``: the value of the key, or None."""
        if key not in self._values:
            return None
        del self._hashes[key]
        return self._values.pop(key)

    def with_entry(self, key: K, value: V) -> TimelineHashMap[K, V]:
        """A copy after ``put``."""
        copy: TimelineHashMap[K, V] = TimelineHashMap(self._hash_of)
        copy._values.update(self._values)
        copy._hashes.update(self._hashes)
        copy._slots = self._slots
        copy.put(key, value)
        return copy

    def keys(self) -> list[K]:
        """The keys in Kafka's order, a list of the caller's own."""
        shift = 65 - self._slots.bit_length()
        hashes = self._hashes
        last_first = list(self._values)
        last_first.reverse()
        return sorted(last_first, key=lambda key: hashes[key] >> shift)

    def items_with(self, more: Mapping[K, V]) -> list[tuple[K, V]]:
        """Key and value as an older epoch is iterated: a slot's own, then those of ``more`` (keys of this
        map too: a snapshot's delta) that belong in it, last first (HistoricalIterator)."""
        shift = 65 - self._slots.bit_length()
        last_first = [*self._values.items(), *more.items()]
        last_first.reverse()
        return sorted(last_first, key=lambda item: self._hashes[item[0]] >> shift)
