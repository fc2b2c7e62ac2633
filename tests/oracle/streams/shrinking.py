"""The smallest case that still differs: clients, tasks, fields and lists are left out while it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.oracle.running import Case
from tests.oracle.shrinking import Search

_TRIES_MAX = 2_000


def shrink(case: Case, differs: Callable[[Case], bool]) -> Case:
    """A case of the same id, no part of which can be left out without the difference going."""
    parts = (_without_clients, _without_tasks, _without_settings, _without_memory)
    return Search(case, differs, _TRIES_MAX).smallest(*parts)


def _without_clients(case: Case) -> Iterator[Case]:
    for place, client in enumerate(case["clients"]):
        smaller = {**case, "clients": case["clients"][:place] + case["clients"][place + 1 :]}
        if "given" in case:
            smaller["given"] = {name: own for name, own in case["given"].items() if name != client["id"]}
        if smaller["clients"]:
            yield smaller


def _without_tasks(case: Case) -> Iterator[Case]:
    if len(case["tasks"]) > 1:
        for task in case["tasks"]:
            gone = task["id"]
            smaller: Case = _forget({name: value for name, value in case.items() if name != "tasks"}, gone)
            yield {**smaller, "tasks": [one for one in case["tasks"] if one["id"] != gone]}


def _forget(value: Any, task: str) -> Any:
    """The value without mention of a task."""
    if isinstance(value, dict):
        return {name: _forget(own, task) for name, own in value.items() if name != task}
    if isinstance(value, list):
        return [_forget(one, task) for one in value if one != task]
    return value


def _without_settings(case: Case) -> Iterator[Case]:
    for name in case["config"]:
        if name not in {"strategy", "num_standby_replicas", "rack_aware_tags"}:
            yield {**case, "config": {key: own for key, own in case["config"].items() if key != name}}


def _without_memory(case: Case) -> Iterator[Case]:
    """Clients forget tags, and lists of what they had lose single elements."""
    for place, client in enumerate(case["clients"]):
        for name, value in client.items():
            smaller: list[Any] = []
            if name == "tags":
                smaller = [{}]
            elif name in {"prev_active", "prev_standby"}:
                smaller = [value[:at] + value[at + 1 :] for at in range(len(value))]
            for other in smaller:
                clients = list(case["clients"])
                clients[place] = {**client, name: other}
                yield {**case, "clients": clients}
