"""Columns of Parquet -> typed events, kind by kind: with a mapping for every row it takes twice as long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate, islice, pairwise, repeat
from operator import ge
from typing import TYPE_CHECKING, Any

from groupstorm.trace.rows import COLUMN_NAMES, SOURCES, Reading, TypedRow, readings

if TYPE_CHECKING:
    import pyarrow

#: Columns that every row has a value of: seq, time_us, source, event, group.
_OF_ALL = COLUMN_NAMES[:5]


def typed_rows(batch: pyarrow.RecordBatch, now_us: int, next_seq: int) -> list[TypedRow] | None:
    """The rows of a batch; none is before ``now_us`` or ``next_seq``.

    None if they have to be read one by one: a row lacks a value, as imports may, or does not fit the schema.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = {name: column for name, column in columns.items() if column.null_count < len(batch)}
    if any(name not in columns or columns[name].null_count for name in _OF_ALL):
        return None
    seqs, times, sources, names, groups = (_values(columns[name]) for name in _OF_ALL)
    if times[0] < now_us or times != sorted(times) or not {*sources} <= SOURCES.keys():
        return None
    if seqs[0] < next_seq or any(map(ge, seqs, islice(seqs, 1, None))):
        return None
    places_of: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        places_of[name].append(place)
    events: list[Any] = [None] * len(batch)
    for name, places in places_of.items():
        reading = readings().get(name)
        found = () if reading is None else _events(reading, columns, places)
        if found is None:
            return None
        for place, event in zip(places, found, strict=False):
            events[place] = event
    entries = [
        None if event is None else (time_us, SOURCES[source], event)
        for time_us, source, event in zip(times, sources, events, strict=True)
    ]
    return [*zip(seqs, groups, times, entries, events, strict=True)]


def _events(
    reading: Reading, columns: Mapping[str, pyarrow.Array], places: list[int]
) -> Iterable[object] | None:
    """The events of one kind; None if a row lacks a value that the kind has to have."""
    import pyarrow
    from pyarrow.compute import list_value_length

    at_places = pyarrow.array(places)
    taken = {name: columns[name].take(at_places) for name in reading.columns if name in columns}
    needed = {*reading.required, *(at for at, optional in reading.lists if not optional)}
    if any(name not in taken or taken[name].null_count for name in map(reading.columns.__getitem__, needed)):
        return None
    if "positions" in taken:
        lengths = [list_value_length(taken[name]) for name in ("partitions", "positions")]
        if not lengths[0].equals(lengths[1]):
            return None
    values = [_values(taken[name]) if name in taken else [None] * len(places) for name in reading.columns]
    return map(tuple.__new__, repeat(reading.kind), zip(*values, strict=True))


def _values(column: pyarrow.Array) -> list[Any]:
    """The values of a column as Python has them, lists as tuples: several times as fast as `to_pylist`."""
    from pyarrow import types
    from pyarrow.compute import list_value_length

    if types.is_string(column.type):
        encoded = column.dictionary_encode()
        texts = [*encoded.dictionary.to_pylist(), None]
        return [*map(texts.__getitem__, _values(encoded.indices.fill_null(len(texts) - 1)))]
    if column.null_count or not len(column):
        return [tuple(one) if isinstance(one, list) else one for one in column.to_pylist()]
    if types.is_list(column.type):
        flat = tuple(_values(column.flatten()))
        ends = accumulate(_values(list_value_length(column)), initial=0)
        return [flat[begin:end] for begin, end in pairwise(ends)]
    numbers = memoryview(column.buffers()[1]).cast("i" if types.is_int32(column.type) else "q")
    return numbers[column.offset : column.offset + len(column)].tolist()
