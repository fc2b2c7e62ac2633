"""Cases for Kafka Streams' task assignors: `groupstorm assign --mode streams`, JSON lines in and out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from groupstorm.assignors import casefields
from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.assignors import ON_A_PLACEMENT, TASK_ASSIGNORS
from groupstorm.assignors.streams.costs import CrossRack, TaskRacks, changelogs, inputs
from groupstorm.assignors.streams.draft import watched_standbys
from groupstorm.assignors.streams.model import (
    HIGH_AVAILABILITY_COSTS,
    STATELESS_COSTS,
    Decision,
    Placement,
    StreamsGroup,
)
from groupstorm.assignors.streams.reading import StreamsCase, read_case
from groupstorm.assignors.streams.threads import threads_of
from groupstorm.assignors.userdata.streams import AssignorError


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
