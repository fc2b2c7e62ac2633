"""``must_preserve_active``: the argument of StickyTaskAssignor's constructor (KIP-924)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from groupstorm.assignors.streams.assignors import TASK_ASSIGNORS
from groupstorm.assignors.streams.cases import answer, read_case
from tests.assignors.streams.groups import active, assign, client, standby, task
from tests.oracle.running import as_line

TASKS = [task(f"0_{number}", inputs="r2", changelogs="r2") for number in range(4)]
#: The first client had everything, and its rack is the wrong one for every task.
CLIENTS = [client(1, rack="r1", had=dict.fromkeys((one["id"] for one in TASKS), -2)), client(2, rack="r2")]
RACK_AWARE: dict[str, Any] = {"strategy": "min_traffic", "traffic_cost": 10, "non_overlap_cost": 1}


def test_every_active_task_stays_with_its_previous_owner() -> None:
    free = active(assign("sticky", TASKS, CLIENTS))
    assert {name: len(tasks) for name, tasks in free.items()} == {"1": 2, "2": 2}
    found = assign("sticky", TASKS, CLIENTS, must_preserve_active=True)
    assert active(found) == {"1": [one["id"] for one in TASKS], "2": []}


def test_it_asks_for_another_rebalance() -> None:
    """Kafka sets a follow-up deadline of 0, at once, on one client."""
    assert assign("sticky", TASKS, CLIENTS)["probing"] is False
    assert assign("sticky", TASKS, CLIENTS, must_preserve_active=True)["probing"] is True


def test_racks_move_neither_active_tasks_nor_standbys() -> None:
    clients = [*CLIENTS, client(3, rack="r1")]
    free = assign("sticky", TASKS, clients, num_standby_replicas=1, **RACK_AWARE)
    kept = assign("sticky", TASKS, clients, num_standby_replicas=1, must_preserve_active=True, **RACK_AWARE)
    without_racks = assign("sticky", TASKS, clients, num_standby_replicas=1, must_preserve_active=True)
    assert active(free) != active(kept)
    assert (active(kept), standby(kept)) == (active(without_racks), standby(without_racks))


def test_the_case_or_its_config_may_set_it() -> None:
    lags = dict.fromkeys((one["id"] for one in TASKS), 0)
    clients = [{**each, "lags": lags} for each in CLIENTS]
    in_case: dict[str, Any] = {"id": 1, "assignor": "sticky", "tasks": TASKS, "clients": clients}
    in_config = copy.deepcopy(in_case)
    in_case["must_preserve_active"] = True
    in_config["config"] = {"must_preserve_active": True}
    found = [answer(read_case(as_line(case).encode(), "case")) for case in (in_case, in_config)]
    assert found[0] == found[1]
    assert found[0]["probing"] is True


@pytest.mark.parametrize("name", sorted(set(TASK_ASSIGNORS) - {"sticky"}))
def test_other_assignors_do_not_read_it(name: str) -> None:
    """As every setting of the config that is another assignor's."""
    assert assign(name, TASKS, CLIENTS, must_preserve_active=True) == assign(name, TASKS, CLIENTS)
