"""Columns of Parquet -> typed events, kind by kind: with a mapping for every row it takes twice as long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate, islice, pairwise, repeat
from operator import ge
from typing import TYPE_CHECKING, Any

from groupstorm.trace.rows import COLUMN_NAMES, SOURCES, Reading, TracedEvent, TypedRow, readings

if TYPE_CHECKING:
    import pyarrow

#: Columns that every row has a value of.
_OF_ALL = COLUMN_NAMES[:5]


def typed_rows(batch: pyarrow.RecordBatch, now_us: int, next_seq: int) -> list[TypedRow] | None:
    """The rows of a batch; none is before ``now_us`` or ``next_seq``.

    None if they have to be read one by one: an import has made them, or one does not fit the schema.
    """
    from pyarrow.compute import sort_indices

    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if any(name not in columns or columns[name].null_count for name in _OF_ALL):
        return None
    columns = {name: column for name, column in columns.items() if column.null_count < len(batch)}
    if not columns or "provenance" in columns:
        return None
    seqs, times, sources, groups = (_values(columns[name]) for name in ("seq", "time_us", "source", "group"))
    if times[0] < now_us or times != sorted(times) or not {*sources} <= SOURCES.keys():
        return None
    if seqs[0] < next_seq or any(map(ge, seqs, islice(seqs, 1, None))):
        return None
    names = columns["event"].dictionary_encode()
    by_kind = sort_indices(names.indices)  # stable: events of one kind stay in their order
    columns = {name: column.take(by_kind) for name, column in columns.items() if name not in _OF_ALL[:4]}
    kinds = _values(names.indices)
    counts = Counter(kinds)
    events: list[Iterator[TracedEvent | None]] = []
    begin = 0
    for kind, name in enumerate(names.dictionary.to_pylist()):
        of_kind = {name: column.slice(begin, counts[kind]) for name, column in columns.items()}
        found = _events(readings().get(name), of_kind, counts[kind])
        if found is None:
            return None
        events.append(found)
        begin += counts[kind]
    in_order = [next(events[kind]) for kind in kinds]
    entries = [
        None if event is None else (time_us, SOURCES[source], event)
        for time_us, source, event in zip(times, sources, in_order, strict=True)
    ]
    return [*zip(seqs, groups, times, entries, in_order, strict=True)]


def _events(
    reading: Reading | None, columns: Mapping[str, pyarrow.Array], count: int
) -> Iterator[TracedEvent | None] | None:
    """The events of one kind; None if a row lacks a value that the kind has to have."""
    from pyarrow.compute import list_value_length

    if reading is None:
        return repeat(None, count)
    optional_lists = {at for at, optional in reading.lists if optional}
    needed = {*reading.required, *(at for at, _ in reading.lists)} - optional_lists
    values = []
    for at, name in enumerate(reading.columns):
        column = columns.get(name)
        if at in needed and (column is None or column.null_count):
            return None
        values.append(repeat(None, count) if column is None else _values(column))
    if "positions" in reading.columns:
        partitions, positions = (list_value_length(columns[name]) for name in ("partitions", "positions"))
        if not partitions.equals(positions):
            return None
    return map(tuple.__new__, repeat(reading.kind), zip(*values, strict=True))


def _values(column: pyarrow.Array) -> list[Any]:
    """The values of a column as Python has them, lists as tuples: several times as fast as `to_pylist`."""
    from pyarrow import types
    from pyarrow.compute import list_value_length

    if types.is_list(column.type):
        flat = tuple(_values(column.flatten()))
        ends = accumulate(_values(list_value_length(column).fill_null(0)), initial=0)
        lists = [flat[begin:end] for begin, end in pairwise(ends)]
        if not column.null_count:
            return lists
        there = column.is_valid().to_pylist()
        return [one if valid else None for one, valid in zip(lists, there, strict=True)]
    if types.is_string(column.type):
        encoded = column.dictionary_encode()
        texts = [*encoded.dictionary.to_pylist(), None]
        return [texts[at] for at in _values(encoded.indices.fill_null(len(texts) - 1))]
    if column.null_count or not len(column):
        return list(column.to_pylist())
    numbers = memoryview(column.buffers()[1]).cast("i" if types.is_int32(column.type) else "q")
    return numbers[column.offset : column.offset + len(column)].tolist()
