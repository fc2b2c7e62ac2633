"""Fields of heartbeats of streams groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.broker import wire

_NOTHING_NEW = dict.fromkeys(
    ("active_tasks", "standby_tasks", "warmup_tasks", "client_tags", "task_offsets", "task_end_offsets")
)
TIMEOUT_MS = 30_000


def streams_beat(group: str, member: str, epoch: int, **values: Any) -> dict[str, Any]:
    """A heartbeat that says nothing but what ``values`` say."""
    who = {"group_id": group, "member_id": member, "member_epoch": epoch, "endpoint_information_epoch": -1}
    return {**_NOTHING_NEW, **who, **values}


def streams_join(group: str, *sources: str, member: str = "m", **values: Any) -> dict[str, Any]:
    """A first heartbeat; the topology reads ``sources`` and keeps a store."""
    topics = (topic(f"{group}-store-changelog", configs={"cleanup.policy": "compact"}),)
    fields = {
        "rebalance_timeout": wire.milliseconds(TIMEOUT_MS),
        "topology": topology(subtopology(*sources, state_changelog_topics=topics)),
        "process_id": member,
        **dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"), ()),
    }
    return streams_beat(group, member, 0, **(fields | values))


def topology(*subtopologies: Any, epoch: int = 0) -> Any:
    return {"epoch": epoch, "subtopologies": subtopologies}


def subtopology(*sources: str, name: str = "0", **values: Any) -> Any:
    return {"subtopology_id": name, "source_topics": sources, **values}


def topic(name: str, partitions: int = 0, replicas: int = 0, configs: Mapping[str, str] | None = None) -> Any:
    """An internal topic."""
    pairs = tuple({"key": key, "value": value} for key, value in (configs or {}).items())
    return {"name": name, "partitions": partitions, "replication_factor": replicas, "topic_configs": pairs}
