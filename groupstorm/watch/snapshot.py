"""A `WatchedGroup` as plain JSON data, and back: a copy of it, and what a checkpoint keeps.

The data name no class or function. The reader makes a new group and sets all its attributes, each to a value
of the type that it has by its annotation, its first value or `PARTS`.
"""

from __future__ import annotations

import reprlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

from groupstorm.explain.epochs import Epochs
from groupstorm.explain.history import Settings
from groupstorm.explain.incidents import Refusal, Refusals
from groupstorm.explain.recorder import Recorder
from groupstorm.explain.stuck_records import StuckRecord, StuckRecords
from groupstorm.explain.work import Uneven, Work, WorkGap
from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.history.causes import Origin, Origins
from groupstorm.history.coordinator_view import CoordinatorView
from groupstorm.history.frontier import Frontier
from groupstorm.history.gaps import ClosedGap, GapSums, Partition
from groupstorm.history.group_sums import Existence, GroupSums
from groupstorm.history.lag import LagCurve
from groupstorm.history.ownership import Ownership
from groupstorm.history.rebalances import Absence, Change, Memberships, Round
from groupstorm.history.records import Line, Owner, RecordModel, RecordSums, _Covered
from groupstorm.history.rounds import Progress, Rounds
from groupstorm.history.row_rules import RowRules
from groupstorm.history.settling import Moves, Settling
from groupstorm.history.shares import RunningConsumer, SharedPartition, ShareFigures
from groupstorm.history.tasks import TaskFigures
from groupstorm.history.unknown import Unknown
from groupstorm.trace.reader import Row
from groupstorm.trace.rows import read_row
from groupstorm.watch.group import WatchedGroup

_Time = int | None
_Texts = dict[str, str]
_Partitions = dict[str, tuple[str, ...]]
_Rows = dict[str, Row]
_Stuck = dict[str, StuckRecord]

#: The classes of a group's state, and the types of those of their attributes that are None or empty at first.
PARTS: Final[Mapping[type, Mapping[str, Any]]] = {
    WatchedGroup: {"_shared": set[str], "_newest": _Texts},
    Recorder: {
        "_revoking": _Rows, "_round": Round | None,
        "_absences": dict[tuple[str, int], Absence], "_last_removed": Row | None, "_left": Row | None,
        "_given_us": dict[str, int], "_generation": _Time,
    },
    Memberships: {"_names": _Texts, "_clients": _Texts, "_ids": _Texts, "_alive": _Rows},
    Epochs: {
        "_round": Round | None, "_step": Row | None, "_changes": list[Change],
        "_updated": tuple[Row, str] | None,
    },
    Refusals: {"found": list[Refusal], "_open": dict[str, dict[tuple[str, bool], Refusal]]},
    StuckRecords: {
        "_begun": _Stuck, "_standing": _Stuck, "_worst": _Stuck, "_longest": _Stuck,
    },
    Work: {
        "gaps": list[WorkGap], "delays": list[Row], "_of": dict[str, frozenset[str]],
        "_idle": dict[str, tuple[int, str]], "_gone": set[str],
        "uneven": Uneven | None, "_told_us": dict[str, int],
        "_uneven_us": _Time, "_loads": dict[str, int],
    },
    FiguresAccumulator: {"_from_us": _Time, "_first_us": _Time},
    GroupSums: {
        "requests": list[tuple[str, str | None, int]], "failed": dict[str, int], "invariants": _Texts,
        "first_change_us": _Time,
    },
    RowRules: {},
    Rounds: {
        "latency_max_us": _Time, "_prepared_us": _Time, "_generation": _Time, "_last_answer_us": _Time,
        "_answered": set[str],
    },
    Settling: {
        "rejoining": set[str], "awaited": dict[str, int], "given": _Partitions,
        "_running": dict[str, frozenset[str]], "_in_group": _Texts, "revoked_ids": set[str],
        "view": CoordinatorView | None,
    },
    Ownership: {
        "partitions": dict[str, Partition], "begun_us": _Time, "last_change_us": _Time,
        "touched": set[Partition], "records": RecordSums | None, "lag": LagCurve | None,
        "_nobody_from_us": _Time, "_gone": dict[str, Partition], "_deleted_us": _Time,
    },
    Existence: {"_absences": list[tuple[int, int]]},
    Moves: {
        "moves": _Time, "lower_bound": _Time, "imbalance_max": _Time, "imbalance_rate_max": _Time,
        "idle_members_max": _Time, "_last": tuple[_Time, _Time, int], "_owners": _Texts,
        "_loads": Counter[str], "_rates": Counter[str],
    },
    Origins: {
        "_announced": Counter[str], "_stopping": set[str], "_ended": dict[str, Origin],
        "_ids": dict[str, dict[str, None]], "_ended_ids": dict[str, Origin],
        "_crashes": dict[int, set[str]], "_left": dict[str, int],
    },
    Progress: {"_generation": _Time},
    TaskFigures: {
        "_down_since_us": dict[str, _Time], "_runners": dict[str, _Texts], "_complete_us": _Time,
        "_live": dict[str, None], "_cold": dict[str, None], "_placed": tuple[int, str] | None,
        "_crossing": list[tuple[int, int]],
    },
    ShareFigures: {
        "_partitions": dict[str, SharedPartition], "_consumers": dict[str, RunningConsumer],
        "_started_us": _Time, "_first_record_us": _Time, "_working_from_us": _Time,
        "_deliveries": Counter[int], "_redelivered": Counter[str], "_done_in": Counter[int],
    },
    Unknown: {"sentences": _Texts, "_now": _Texts},
    CoordinatorView: {"_names": _Texts, "_assigned": _Partitions},
    GapSums: {},
    RecordModel: {"_logs": dict[str, Line]},
    RecordSums: {"_covered": dict[str, _Covered], "_before": dict[str, _Covered]},
    LagCurve: {
        "frontiers": dict[str, Frontier], "_changing": list[Frontier], "_oldest_before": dict[str, int],
        "_bends": list[tuple[int, int, list[Frontier]]], "_peak": _Time, "_marked_us": _Time,
        "_ages_from_us": _Time,
    },
}  # fmt: skip
#: The fields of plain classes, and of dataclasses and named tuples that mypyc compiles, which keeps no
#: annotations, or with `Any`.
FIELDS: Final[Mapping[type, Mapping[str, Any]]] = {
    Settings: {
        "of_group": dict[str, Any], "of_member": dict[str, _Texts], "libraries": _Texts, "logs": _Texts,
    },
    ClosedGap: {
        "partition": str, "from_us": int, "to_us": int, "gap_us": int, "old_owner": str | None,
        "new_owner": str | None, "is_first": bool, "since_us": int,
    },
    Line: {"position": int, "from_us": int, "rate": int},
    _Covered: {"first": int, "furthest": int, "behind_start": int, "starts": list[int], "ends": list[int]},
    Owner: {
        "member": str, "first_position": int, "position": int, "from_us": int, "rate": int, "paused": bool,
        "counted_from": _Time,
    },
    Partition: {
        "name": str, "accounted_us": int, "frontier": Frontier | None, "has_records": bool,
        "owners": list[Owner], "processing": int, "gap_from_us": _Time, "gap_since_us": int,
        "gap_member": str | None, "gap_callback_us": int, "gap_origin": Origin, "longest_gap_us": int,
        "revoked_from": list[str],
    },
    Frontier: {
        "created_us": int, "furthest": int, "begun": int, "known_from": int, "logs": list[Line],
        "log_base": int, "log_rate": int, "owners": list[Owner], "slope": int,
        "bends": tuple[tuple[int, int], ...], "since_us": int, "begin_lag": int,
        "pace": _Time, "turn": int, "oldest_us": int,
    },
}  # fmt: skip
#: Attributes that hold methods of the parts: a new part has its own.
OF_CONSTRUCTOR: Final = frozenset({"_handlers", "handlers", "_of_listener", "_listener", "_listeners"})
#: No state has larger numbers: an age, or a position times a rate, needs half the bits. A float holds them.
_INT_LIMIT: Final = 2**256


class _Pass:
    """One way through a value. Rows and dataclasses are numbered: the first reference to one has its data."""

    def __init__(self, checks_rows: bool = False) -> None:
        self.checks_rows = checks_rows
        self.numbers: dict[int, int] = {}  # by `id`, of those that were written
        self.numbered: list[Any] = []  # those that were read
        self.parts: set[int] = set()  # by `id`


class _Codec(NamedTuple):
    """A codec by which values of one type become data and back. ``is_plain``: they are the same."""

    write: Callable[[Any, _Pass], Any]
    read: Callable[[Any, _Pass], Any]
    is_plain: bool = False


def write(kind: Any, value: Any) -> Any:
    """A value of this type as JSON data, which share the value's rows."""
    return _codec(kind).write(value, _Pass())


def read(kind: Any, data: Any, checks_rows: bool = False) -> Any:
    """The value that `write` made ``data`` of. Raises ValueError if they are those of no value of this type.

    ``checks_rows``: check also the rows in it, by the trace's schema.
    """
    return _codec(kind).read(data, _Pass(checks_rows))


@cache
def _codec(hint: Any) -> _Codec:
    kind: Any = get_origin(hint) or hint or NoneType
    arguments = get_args(hint)
    codec: _Codec
    if hint is Any:
        codec = _Codec(lambda value, _: value, lambda data, _: data, is_plain=True)
    elif hint == Row:
        codec = _numbered(dict, _Codec(lambda row, _: row, _read_row))
    elif kind in (Union, UnionType):
        codec = _optional(_codec(next(one for one in arguments if one is not NoneType)))
    elif kind in PARTS:
        codec = _Codec(_write_part, lambda data, state: _read_part(kind(), data, state))
    elif issubclass(kind, Mapping):
        value = arguments[1] if arguments[1:] else int  # a Counter names its keys alone
        codec = _mapping(kind if issubclass(kind, dict) else dict, arguments[0], value)
    elif hasattr(kind, "__dataclass_fields__") or kind in (Line, Owner):
        hints = FIELDS.get(kind) or get_type_hints(kind)
        codec = _numbered(kind, _record(kind, attrgetter(*hints), hints.values()))
    elif issubclass(kind, tuple) and not arguments:
        codec = _record(kind, iter, (FIELDS.get(kind) or get_type_hints(kind)).values())
    elif kind is tuple and arguments[1:] != (...,):
        codec = _record(lambda *values: values, iter, arguments)
    elif arguments or kind is array:
        codec = _collection(kind, _codec(arguments[0] if arguments else int))
    elif kind in (bool, int, float, str, NoneType) or issubclass(kind, Enum):
        codec = _scalar(kind)
    else:
        raise TypeError(f"{kind.__name__}: add it to PARTS in {__name__}")
    return codec


def _scalar(kind: Any) -> _Codec:
    values = {one.value: one for one in kind} if issubclass(kind, Enum) else {}

    def read(data: Any, _: _Pass) -> Any:
        if type(data) is kind and (kind not in (int, float) or -_INT_LIMIT < data < _INT_LIMIT):
            return data
        if isinstance(data, str) and (kind is str or data in values):
            return values.get(data, data)
        raise _mismatch(kind.__name__, data)

    return _Codec(lambda value, _: value, read, is_plain=True)


def _optional(inner: _Codec) -> _Codec:
    return _Codec(
        lambda value, state: None if value is None else inner.write(value, state),
        lambda data, state: None if data is None else inner.read(data, state),
        inner.is_plain,
    )


def _collection(kind: Any, one: _Codec) -> _Codec:
    def write(values: Any, state: _Pass) -> list[Any]:
        return list(values) if one.is_plain else [one.write(value, state) for value in values]

    def read(data: Any, state: _Pass) -> Any:
        values = [one.read(value, state) for value in _checked(list, data)]
        try:
            return array("q", values) if kind is array else kind(values)
        except OverflowError as problem:
            raise _mismatch("numbers of 64 bits", data) from problem

    return _Codec(write, read)


def _mapping(kind: Any, key: Any, hint: Any) -> _Codec:
    if key is not str:  # JSON's keys are texts
        pairs = _collection(dict, _codec(tuple[key, hint]))
        return _Codec(
            lambda values, state: pairs.write(values.items(), state),
            lambda data, state: kind(pairs.read(data, state)),  # a Counter of pairs would count them
        )
    one = _codec(hint)

    def write(values: Any, state: _Pass) -> dict[str, Any]:
        return dict(values) if one.is_plain else {name: one.write(v, state) for name, v in values.items()}

    return _Codec(
        write,
        lambda data, state: kind({name: one.read(v, state) for name, v in _checked(dict, data).items()}),
    )


def _record(make: Callable[..., Any], values_of: Callable[[Any], Any], hints: Iterable[Any]) -> _Codec:
    """A fixed number of values, each of its own type."""
    codecs = [_codec(hint) for hint in hints]
    writes, reads = [one.write for one in codecs], [one.read for one in codecs]

    def read(data: Any, state: _Pass) -> Any:
        if len(_checked(list, data)) != len(reads):
            raise _mismatch(f"{len(reads)} values", data)
        return make(*[read(value, state) for read, value in zip(reads, data, strict=True)])

    return _Codec(
        lambda value, state: [write(one, state) for write, one in zip(writes, values_of(value), strict=True)],
        read,
    )


def _numbered(kind: Any, inner: _Codec) -> _Codec:
    def write(value: Any, state: _Pass) -> Any:
        number = state.numbers.get(id(value))
        if number is not None:
            return number
        data = inner.write(value, state)
        state.numbers[id(value)] = len(state.numbers)
        return data

    def read(data: Any, state: _Pass) -> Any:
        if type(data) is not int:
            value = inner.read(data, state)
            state.numbered.append(value)
        elif not 0 <= data < len(state.numbered) or type(value := state.numbered[data]) is not kind:
            raise _mismatch(f"the number of a {kind.__name__}", data)
        return value

    return _Codec(write, read)


def _read_row(data: Any, state: _Pass) -> Row:
    if state.checks_rows and read_row(_checked(dict, data)) is None:
        raise _mismatch("a row of a trace", data)
    return data  # type: ignore[no-any-return]


def _write_part(part: Any, state: _Pass) -> dict[str, Any]:
    state.parts.add(id(part))
    data = {}
    for name in _attributes(part):
        value = getattr(part, name)
        if type(value) not in PARTS:
            data[name] = _codec_of(part, name, value).write(value, state)
        elif id(value) not in state.parts:
            data[name] = _write_part(value, state)
    return data


def _read_part(part: Any, data: Any, state: _Pass) -> Any:
    """Set the attributes of a new part, and of the parts that it has already."""
    state.parts.add(id(part))
    left = dict(_checked(dict, data))
    if isinstance(part, RowRules) and _checked(dict, left.get("_settling")).get("view") is not None:
        part.read_coordinator_rows_as_ownership()  # which makes the view, and other handlers
    for name in _attributes(part):
        value = getattr(part, name)
        if type(value) in PARTS and id(value) in state.parts:
            continue
        if name not in left:
            raise _mismatch(f"{type(part).__name__}.{name}", data)
        if type(value) in PARTS:
            _read_part(value, left.pop(name), state)
        else:
            setattr(part, name, _codec_of(part, name, value).read(left.pop(name), state))
    if left:
        raise _mismatch(f"no {min(left)}", data)
    return part


def _attributes(part: Any) -> list[str]:
    """The names of a part's attributes, in the same order whether mypyc has compiled its class or not."""
    names = getattr(part, "__mypyc_attrs__", None) or vars(part)
    return sorted(name for name in names if name not in OF_CONSTRUCTOR)


def _codec_of(part: Any, name: str, first: Any) -> _Codec:
    kind = PARTS[type(part)].get(name, type(first))
    if kind in (NoneType, dict, list, set, frozenset, tuple):
        raise TypeError(f"{type(part).__name__}.{name}: add its type to PARTS in {__name__}")
    return _codec(kind)


def _checked(kind: type, data: Any) -> Any:
    if type(data) is not kind:
        raise _mismatch(f"a {kind.__name__}", data)
    return data


def _mismatch(expected: str, data: Any) -> ValueError:
    return ValueError(f"{reprlib.repr(data)}: expected {expected}")
