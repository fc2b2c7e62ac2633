"""A line that is no case ends in one line that names the field; input that Kafka answers is answered."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from groupstorm.assignors.streams.cases import answer, read_case
from groupstorm.problems import InputError
from tests.assignors.streams.groups import assign, client, task
from tests.command import groupstorm, refused
from tests.oracle.running import as_line

CASE: dict[str, Any] = {
    "id": 1,
    "assignor": "ha",
    "tasks": [
        {"id": "0_0", "stateful": True, "inputs": [["in", 0, ["r1"]]], "changelogs": [["log", 0, ["r1"]]]}
    ],
    "clients": [{"id": "1", "capacity": 1, "rack": "r1", "lags": {"0_0": 5}}],
    "config": {},
}

WRONG: list[tuple[tuple[Any, ...], Any, str]] = [
    (("assignor",), "best", "field assignor"),
    (("tasks",), [], "field tasks"),
    (("tasks", 0, "id"), "0-0", "field tasks.0.id"),
    (("tasks", 0, "id"), "0_99999999999", "field tasks.0.id"),
    (("tasks", 0, "inputs", 0), ["in"], "field tasks.0.inputs.0"),
    (("tasks", 0, "inputs", 0, 1), -1, "field tasks.0.inputs.0.1"),
    (("clients",), [], "field clients"),
    (("clients", 0, "id"), "x", "field clients.0.id"),
    (("clients", 0, "id"), True, "field clients.0.id"),
    (("clients", 0, "capacity"), 0, "field clients.0.capacity"),
    (("clients", 0, "lags", "0_0"), "much", "field clients.0.lags.0_0"),
    (("clients", 0, "lags", "0_0"), 1 << 70, "field clients.0.lags.0_0"),
    (("clients", 0, "lags", "zero"), 1, "field clients.0.lags.zero"),
    (("config", "num_standby_replicas"), -1, "field config.num_standby_replicas"),
    (("config", "max_warmup_replicas"), 0, "field config.max_warmup_replicas"),
    (("config", "traffic_cost"), -1, "field config.traffic_cost"),
    (("config", "acceptable_recovery_lag"), -1, "field config.acceptable_recovery_lag"),
    (("config", "probing_rebalance_interval_ms"), 59_999, "field config.probing_rebalance_interval_ms"),
    (("config", "strategy"), "cheapest", "field config.strategy"),
    (("config", "must_preserve_active"), "yes", "field config.must_preserve_active"),
    (("must_preserve_active",), "yes", "field must_preserve_active"),
    (("given",), {"9": {}}, "field given.9"),
    (("given",), {"1": {"active": ["7_7"]}}, "field given.1.active.0"),
    (("given",), {"1": {"active": ["0_0"], "standby": ["0_0"]}}, "field given.1"),
]


@pytest.mark.parametrize(("path", "value", "named"), WRONG)
def test_the_field_is_named(path: tuple[Any, ...], value: Any, named: str) -> None:
    case = copy.deepcopy(CASE)
    at: Any = case
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(InputError) as raised:
        read_case(as_line(case).encode(), "line 3")
    message = str(raised.value)
    assert message.startswith("line 3: ")
    assert named in message
    assert "expected" in message
    assert "\n" not in message


def test_twins_are_refused() -> None:
    with pytest.raises(InputError, match=r"clients\.1\.id: 1: expected an id of its own"):
        read_case(
            as_line({**CASE, "clients": [CASE["clients"][0], {"id": 1, "capacity": 1}]}).encode(), "line 1"
        )
    with pytest.raises(InputError, match="another task has this one"):
        read_case(as_line({**CASE, "tasks": CASE["tasks"] * 2}).encode(), "line 1")


def test_a_task_with_two_owners_is_refused() -> None:
    clients = [{"id": number, "capacity": 1} for number in (1, 2)]
    given = {"1": {"active": ["0_0"]}, "2": {"active": ["0_0"]}}
    with pytest.raises(InputError, match="active twice"):
        read_case(as_line({**CASE, "clients": clients, "given": given}).encode(), "line 1")


def test_the_command_ends_with_status_2_and_keeps_what_was_answered() -> None:
    lines = as_line(CASE) + "\n" + as_line({**CASE, "assignor": "?"}) + "\n"
    done = groupstorm("assign", "--mode", "streams", given=lines)
    assert refused(done).startswith("groupstorm: line 2: field assignor")
    assert len(done.stdout.splitlines()) == 1


def test_a_process_with_two_racks_counts_as_one_without() -> None:
    consumers = [{"id": "a", "rack": "r1"}, {"id": "b", "rack": "r2"}]
    case = copy.deepcopy(CASE)
    case["clients"] = [{"id": "1", "rack": "r1", "consumers": consumers}]
    case["end_offset_sums"] = {"0_0": 5}
    assert answer(read_case(as_line(case).encode(), "line 1"))["cost"]["active_stateful"] is None


def test_optimising_without_a_strategy_is_what_kafka_refuses() -> None:
    tasks = [task("0_0", "r1"), task("0_1", "r2")]
    found = assign("optimize-active", tasks, [client(1)], given={"1": {"active": ["0_0", "0_1"]}})
    assert found["error"] == "IllegalArgumentException"


def test_named_topologies_are_for_all_tasks_or_for_none() -> None:
    with pytest.raises(InputError, match="named topologies"):
        read_case(as_line({**CASE, "tasks": [*CASE["tasks"], {"id": "t__0_1"}]}).encode(), "line 1")
