"""A sentence for every event of the threads of a Kafka Streams application."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from groupstorm.wording import dollars, size

Row = Mapping[str, Any]

_BILLION = 10**9
_MILLION = 10**6
_FOLLOW_UPS = {
    "probing": "to see whether warm-ups have caught up",
    "tasks-change-owner": "as tasks wait for their old owners to let go",
    "version-probing": "as members differ in the versions that they know",
    "watching": "when the standbys that it watches have caught up",
}
_PLACED = {
    "stable": "nothing is left to be moved",
    "probing": "warm-ups are under way",
    "follow-up": "tasks wait for their old owners to let go",
    "imbalanced": "standbys are to be watched",
    "version-probing": "members differ in the versions that they know",
}

_SOURCES = {"nothing": "nothing", "checkpoint": "its host's checkpoint", "standby": "its standby"}


def _on(row: Row) -> str:
    return f"{row['member']:10}"


def _seconds(duration_us: int) -> str:
    return f"{duration_us / _MILLION:,.3f} s"


def _scheduled(row: Row) -> str:
    when = f"in {_seconds(row['duration_us'])} " if row.get("duration_us") else ""
    return f"{_on(row)} will ask for a rebalance {when}{_FOLLOW_UPS.get(row['cause'], row['cause'])}"


def _placed(row: Row) -> str:
    warm_ups = f", {row['count']} warm-ups" if row["count"] else ""
    return f"{_on(row)} has placed the tasks{warm_ups}: {_PLACED.get(row['cause'], row['cause'])}"


def _traffic(row: Row) -> str:
    cost = dollars(row["cross_rack_bytes"] * row["price"] / _BILLION / _MILLION)
    return (
        f"traffic    {row['cause']}: {size(row['bytes'])}, {size(row['cross_rack_bytes'])} of it "
        f"between racks ({cost})"
    )


SENTENCES: Mapping[str, Callable[[Row], str]] = {
    "tasks_created": lambda row: f"scenario   the application has {len(row['tasks'])} tasks",
    "traffic_counted": _traffic,
    "instance_started": lambda row: (
        f"{row['process']:10} starts with {row['count']} threads"
        + (f" in {row['rack']}" if "rack" in row else "")
        + f", SubscriptionInfo {row['version']}"
    ),
    "instance_gone": lambda row: f"{row['process']:10} is gone: {row['cause']}",
    "tasks_placed": _placed,
    "warm_up_placed": lambda row: f"{row['process']:10} is to warm up {row['task']}",
    "task_restoring": lambda row: (
        f"{_on(row)} restores {row['task']} from {_SOURCES[row['cause']]}: {size(row['bytes'])}"
    ),
    "task_restored": lambda row: (
        f"{_on(row)} has restored {row['task']}: {size(row['bytes'])} in {_seconds(row['duration_us'])}"
    ),
    "task_running": lambda row: f"{_on(row)} runs {row['task']}",
    "task_suspended": lambda row: f"{_on(row)} suspends {row['task']}: {row['cause']}",
    "task_closed": lambda row: f"{_on(row)} closes {row['task']} ({row['cause']})",
    "standby_started": lambda row: f"{_on(row)} follows {row['task']}, {row['lag']:,} records behind",
    "standby_caught_up": lambda row: (
        f"{_on(row)} has caught up with {row['task']}: {size(row['bytes'])} in {_seconds(row['duration_us'])}"
    ),
    "follow_up_scheduled": _scheduled,
    "follow_up_due": lambda row: f"{_on(row)} asks for a rebalance: {row['cause']}",
    "subscription_version_changed": lambda row: (
        f"{_on(row)} will speak SubscriptionInfo {row['version']}: {row['cause']}"
    ),
}

#: Those of them that a story of the whole group has.
OVERVIEW = frozenset(
    {
        "tasks_created",
        "traffic_counted",
        "instance_started",
        "instance_gone",
        "tasks_placed",
        "warm_up_placed",
        "task_restoring",
        "task_running",
        "task_suspended",
        "standby_caught_up",
        "follow_up_due",
        "subscription_version_changed",
    }
)
