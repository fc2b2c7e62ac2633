"""Requests of many items: those of `asking_all`, whose last list is made long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.broker.apis import APIS
from groupstorm.broker.requests import WORK_PER_TURN
from groupstorm.protocol.codec import request_type
from groupstorm.protocol.codec.schemas import field_names
from tests.broker import wire
from tests.broker.asking_all import all_requests
from tests.broker.driver import Driver

#: Items of a long request: more than a turn's work, whatever the API.
MANY = 3 * WORK_PER_TURN
#: The APIs that answer each item.
LONG = (
    *("Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "FindCoordinator"),
    *("LeaveGroup", "DescribeGroups", "DeleteGroups", "CreateTopics", "DeleteTopics", "DeleteRecords"),
    *("OffsetForLeaderEpoch", "CreatePartitions", "TxnOffsetCommit", "DescribeConfigs", "AlterConfigs"),
    *("IncrementalAlterConfigs", "ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe"),
    *("CreateAcls", "DeleteAcls", "AlterClientQuotas", "DescribeUserScramCredentials"),
    *("AlterUserScramCredentials", "DescribeTopicPartitions", "ElectLeaders", "DescribeProducers"),
    *("AlterPartitionReassignments", "DescribeTransactions", "ShareFetch", "ShareAcknowledge"),
    *("DescribeShareGroupOffsets", "AlterShareGroupOffsets"),
)
_INDEXES = ("partition_index", "index", "partition")
_NAMES = (
    *("name", "topic", "topic_name", "group_id", "member_id", "resource_name", "principal_filter"),
    "entity_name",
)


def send_long(driver: Driver, api: str, version: int | None = None, **more: Any) -> int:
    """Send the long request of this API; give its connection."""
    asked = [one for one in all_requests() if APIS[one.api_key].name == api]
    key = asked[0].api_key
    if key == wire.SHARE_ACKNOWLEDGE:  # the member needs a session
        driver.send(wire.SHARE_FETCH, 2, group_id="sharing", member_id="member", max_wait=0)
    version = APIS[key].max_version if version is None else version
    known = field_names(request_type(key, version))
    for probe in asked:
        lists = [name for name, value in probe.fields.items() if name in known and _has_items(value)]
        if lists:
            long = {lists[-1]: _long(probe.fields[lists[-1]][0])}
            return driver.send(key, version, **{**probe.fields, **long, **more})
    raise AssertionError(f"no request of {api} has a list")


def _has_items(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and isinstance(value[0], (str, Mapping))


def _long(item: Any) -> list[Any]:
    """Many like this one, or one with many partitions."""
    for name, inner in item.items() if isinstance(item, Mapping) else ():
        if _has_items(inner) and {*_INDEXES} & {*inner[0]}:
            return [{**item, name: _long(inner[0])}]
    return [_numbered(item, number) for number in range(MANY)]


def _numbered(item: Any, number: int) -> Any:
    if isinstance(item, str):
        return f"name-{number}"
    for name in _INDEXES:
        if name in item:
            return {**item, name: number}
    for name in _NAMES:
        if isinstance(item.get(name), str):
            return {**item, name: f"name-{number}"}
    (name, *_) = item
    return {**item, name: [_numbered(one, number) for one in item[name]]}
