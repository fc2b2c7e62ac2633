"""Cases for Kafka Streams' task assignors: `groupstorm assign --mode streams`, JSON lines in and out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from groupstorm.assignors import casefields
from groupstorm.assignors.casefields import Field, read_line
from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, changelogs, inputs
from groupstorm.assignors.streams.draft import watched_standbys
from groupstorm.assignors.streams.leader import ON_A_PLACEMENT, TASK_ASSIGNORS
from groupstorm.assignors.streams.model import (
    HIGH_AVAILABILITY_COSTS,
    STATELESS_COSTS,
    Config,
    Decision,
    Placement,
    StreamsClient,
    StreamsConsumer,
    StreamsGroup,
    Task,
    TaskPartition,
    client_of,
    parse_process_id,
    parse_task_id,
)
from groupstorm.assignors.streams.threads import threads_of
from groupstorm.assignors.userdata.streams import AssignorError, TaskId
from groupstorm.problems import InputError

_LONG_MAX = (1 << 63) - 1
_PROBING_INTERVAL_MIN_MS = 60_000
#: More than any application has, so that a typing error cannot use up the memory.
_TASKS_MAX, _CLIENTS_MAX = 1_000_000, 100_000


@dataclass(frozen=True)
class StreamsCase:
    """One question to one assignor. ``names``: the clients by their names in the case, in its order."""

    id: Any
    assignor: str
    group: StreamsGroup
    config: Config
    given: Placement
    names: Mapping[str, int]


def read_case(line: bytes, place: str) -> StreamsCase:
    """Read one case; ``place`` names the line. `InputError` names the field and the expected value."""
    case = read_line(line, place)
    assignor = case.field("assignor")
    known = [*TASK_ASSIGNORS, *ON_A_PLACEMENT]
    if assignor.value not in known:
        raise assignor.expected(f"one of {', '.join(known)}")
    tasks = _tasks(case.field("tasks"))
    numbers = {task.id: number for number, task in enumerate(tasks)}
    ends = _task_numbers(case.optional("end_offset_sums"), numbers, _offset)
    listed = case.field("clients").items()
    if not 0 < len(listed) <= _CLIENTS_MAX:
        raise case.field("clients").expected(f"one client at least, {_CLIENTS_MAX} at most")
    clients = [_read_client(field, numbers, ends) for field in listed]
    ids: set[UUID] = set()
    for field, (_, client) in zip(listed, clients, strict=True):
        if client.id in ids:
            raise field.field("id").expected("an id of its own, another client has this one")
        ids.add(client.id)
    group = StreamsGroup.of(tasks, [client for _, client in clients], ends)
    names = {name: number for (name, _), number in zip(clients, group.filled, strict=True)}
    config = _config(case.optional("config"))
    if case.flag("must_preserve_active"):
        config = config._replace(must_preserve_active=True)
    given = _given(case.optional("given"), group, numbers)
    return StreamsCase(case.object()["id"], assignor.string(), group, config, given, names)


def _tasks(field: Field) -> list[Task]:
    listed = field.items()
    if not 0 < len(listed) <= _TASKS_MAX:
        raise field.expected(f"one task at least, {_TASKS_MAX} at most")
    tasks: dict[TaskId, Task] = {}
    for entry in listed:
        task = _task(entry)
        if task.id in tasks:
            raise entry.field("id").expected("an id of its own, another task has this one")
        tasks[task.id] = task
    if len({bool(task.topology) for task in tasks}) > 1:
        raise field.expected("named topologies for all tasks or for none")
    return [tasks[task] for task in sorted(tasks)]


def _task(field: Field) -> Task:
    return Task(
        _task_id(field.field("id")),
        field.flag("stateful"),
        tuple(_partition(item) for item in field.listed("inputs")),
        tuple(_partition(item) for item in field.listed("changelogs")),
    )


def _task_id(field: Field) -> TaskId:
    try:
        return parse_task_id(field.string())
    except ValueError:
        raise field.expected("a task id like 0_1, or like name__0_1 in a named topology") from None


def _partition(field: Field) -> TaskPartition:
    items = field.items()
    if len(items) not in {2, 3}:
        raise field.expected("[topic, partition, [racks of its replicas]]")
    racks = None if len(items) == 2 else _racks(items[2])
    return TaskPartition(items[0].string(), items[1].integer(minimum=0), racks)


def _racks(field: Field) -> frozenset[str] | None:
    """None if a replica's node has no rack: rack awareness cannot use the partition then."""
    if field.value is None or any(item.value is None for item in field.items()):
        return None
    return frozenset(item.string() for item in field.items())


def _read_client(
    field: Field, numbers: Mapping[TaskId, int], ends: Mapping[int, int]
) -> tuple[str, StreamsClient]:
    name, process = _process(field.field("id"))
    tags = field.optional("tags")
    own = {} if tags is None else {tag: value.string() for tag, value in tags.entries()}
    consumers = tuple(_consumer(item, numbers) for item in field.listed("consumers"))
    rack = _rack_of_process(field)
    if consumers and field.optional("lags") is None:
        return name, client_of(process, consumers, ends, rack, own)
    return name, StreamsClient(
        process,
        field.field("capacity").integer(minimum=1),
        rack,
        own,
        _task_set(field, "prev_active", numbers),
        _task_set(field, "prev_standby", numbers),
        _task_numbers(field.optional("lags"), numbers, _lag),
    )


def _process(field: Field) -> tuple[str, UUID]:
    number = isinstance(field.value, int) and not isinstance(field.value, bool)
    text = str(field.value) if number else field.string()
    try:
        return text, parse_process_id(text)
    except ValueError:
        raise field.expected("a UUID, or a number from 0 on") from None


def _rack_of_process(field: Field) -> str | None:
    """A process's rack; unknown if its consumers have different ones, as in Kafka."""
    racks = {field.optional_string("rack")}
    for consumer in field.listed("consumers"):
        if "rack" in consumer.object():
            racks.add(consumer.optional_string("rack"))
    return racks.pop() if len(racks) == 1 else None


def _consumer(field: Field, numbers: Mapping[TaskId, int]) -> StreamsConsumer:
    return StreamsConsumer(
        field.field("id").string(),
        _task_set(field, "owned_active", numbers),
        _task_numbers(field.optional("offset_sums"), numbers, _lag),
    )


def _task_set(field: Field, name: str, numbers: Mapping[TaskId, int]) -> frozenset[int]:
    """Tasks that the application no longer has are left out."""
    found = (_task_id(item) for item in field.listed(name))
    return frozenset(numbers[task] for task in found if task in numbers)


def _task_numbers(
    field: Field | None, numbers: Mapping[TaskId, int], read: Callable[[Field], int]
) -> dict[int, int]:
    if field is None:
        return {}
    found: dict[int, int] = {}
    for name, entry in field.entries():
        task = _task_id(Field(entry.place, entry.path, name))
        value = read(entry)
        if task in numbers:
            found[numbers[task]] = value
    return found


def _long(field: Field, minimum: int, what: str) -> int:
    value = field.value
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= _LONG_MAX:
        raise field.expected(what)
    return value


def _offset(field: Field) -> int:
    return _long(field, 0, "a 64 bit integer from 0 on")


def _lag(field: Field) -> int:
    """A lag or an offset sum. Kafka checks neither: a negative value that is no sentinel is a number."""
    return _long(field, -_LONG_MAX - 1, "a 64 bit integer")


def _config(field: Field | None) -> Config:
    default = Config()
    if field is None:
        return default
    lag = field.optional("acceptable_recovery_lag")
    return Config(
        default.acceptable_recovery_lag if lag is None else _offset(lag),
        field.integer_or("max_warmup_replicas", default.max_warmup_replicas, 1),
        field.integer_or("num_standby_replicas", default.num_standby_replicas, 0),
        field.integer_or(
            "probing_rebalance_interval_ms", default.probing_rebalance_interval_ms, _PROBING_INTERVAL_MIN_MS
        ),
        tuple(tag.string() for tag in field.listed("rack_aware_tags")),
        field.choice("strategy", default.strategy),
        field.optional_integer("traffic_cost", 0),
        field.optional_integer("non_overlap_cost", 0),
        field.choice("standby_placement", default.standby_placement),
        field.integer_or("reliable_standbys", default.reliable_standbys, 0),
        field.choice("trade_off", default.trade_off),
        field.choice("tags_or_racks", default.tags_or_racks),
        field.optional_integer("near_zero_gap", 0),
        field.choice("solver", default.solver),
        field.flag("must_preserve_active"),
    )


def _given(field: Field | None, group: StreamsGroup, numbers: Mapping[TaskId, int]) -> Placement:
    placement = Placement(group)
    if field is None:
        return placement
    clients = {client.id: number for number, client in enumerate(group.clients)}
    for name, entry in field.entries():
        try:
            client = clients[parse_process_id(name)]
        except (ValueError, KeyError):
            raise Field(entry.place, entry.path, name).expected("the id of one of the clients") from None
        placement.active[client] |= _known_tasks(entry, "active", numbers)
        placement.standby[client] |= _known_tasks(entry, "standby", numbers)
        if placement.active[client] & placement.standby[client]:
            raise entry.expected("no task both as active and as standby")
    owners: set[int] = set()
    for tasks in placement.active:
        if owners & tasks:
            task = group.tasks[min(owners & tasks)].id
            raise InputError(f"{field.place}: field {field.path}: {task} is active twice: expected one owner")
        owners |= tasks
    return placement


def _known_tasks(field: Field, name: str, numbers: Mapping[TaskId, int]) -> set[int]:
    found = set()
    for item in field.listed(name):
        task = _task_id(item)
        if task not in numbers:
            raise item.expected("one of the tasks")
        found.add(numbers[task])
    return found


def answers(lines: Iterable[bytes]) -> Iterator[str]:
    """See `casefields.answers`."""
    return casefields.answers(lines, lambda line, place: answer(read_case(line, place)))


def answer(case: StreamsCase) -> dict[str, Any]:
    """Run the case's assignor: the answer, or the refusal."""
    try:
        return {"id": case.id, **_found(case)}
    except AssignmentRefused as refusal:
        return casefields.refused(case.id, refusal)


def _found(case: StreamsCase) -> dict[str, Any]:
    group, config = case.group, case.config
    assignor = TASK_ASSIGNORS.get(case.assignor)
    if assignor is None:
        decision = ON_A_PLACEMENT[case.assignor](group, config, case.given)
    else:
        decision = assignor.assign(group, config)
    costs = HIGH_AVAILABILITY_COSTS if assignor is None else assignor.costs
    found: dict[str, Any] = {}
    if decision.probing is not None:
        found["probing"] = decision.probing
    if decision.optimized_cost is not None:
        found["optimized_cost"] = decision.optimized_cost
    if decision.imbalanced is not None:
        found["imbalanced"] = _names(group, decision.imbalanced)
    found["clients"] = {name: _client(case, decision, client) for name, client in case.names.items()}
    found["cost"] = _prices(group, decision.placement, costs.configured(config).traffic)
    return found


def _client(case: StreamsCase, decision: Decision, client: int) -> dict[str, Any]:
    group, placement = case.group, decision.placement
    found: dict[str, Any] = {
        "active": _names(group, placement.active[client]),
        "standby": _names(group, placement.standby[client]),
    }
    if group.clients[client].consumers:
        found["threads"] = {
            consumer: {
                "active": [str(group.tasks[task].id) for task in tasks.active],
                "standby": [str(group.tasks[task].id) for task in tasks.standby],
            }
            for consumer, tasks in threads_of(group, client, decision).items()
        }
    if decision.warmups is not None and decision.standby_warmups is not None:
        found["warmup"] = _names(group, decision.warmups[client])
        found["standby_warmup"] = _names(group, decision.standby_warmups[client])
    if decision.imbalanced is not None:
        watched = watched_standbys(decision, client)
        found["error_code"] = AssignorError.IMBALANCED_ASSIGNMENT if watched else AssignorError.NONE
        found["watch"] = _names(group, watched)
    return found


def _names(group: StreamsGroup, tasks: Iterable[int]) -> list[str]:
    return [str(group.tasks[task].id) for task in sorted(tasks)]


def _prices(group: StreamsGroup, placement: Placement, traffic_cost: int) -> dict[str, int | str | None]:
    """The cost of a placement as Kafka computes it, or the reason why it refuses, in ``*_error``."""
    racks = TaskRacks(group)
    reading, following = CrossRack(racks, inputs), CrossRack(racks, changelogs)
    standbys = sorted(set().union(*placement.standby))
    every = range(len(group.tasks))
    found: dict[str, int | str | None] = {"traffic_cost": traffic_cost}
    for name, weight, cross_rack, held, tasks in (
        ("active_stateful", traffic_cost, reading, placement.active, group.stateful),
        ("active_stateless", STATELESS_COSTS.traffic, reading, placement.active, group.stateless),
        ("active_cross_rack", 1, reading, placement.active, every),
        ("standby", traffic_cost, following, placement.standby, standbys),
        ("standby_cross_rack", 1, following, placement.standby, standbys),
    ):
        try:
            found[name] = weight * cross_rack.total(held, tasks)
        except AssignmentRefused as refusal:
            found[name] = None
            found[f"{name}_error"] = f"{refusal.error}: {refusal.message}"
    return found
