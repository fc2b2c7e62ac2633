"""The APIs that this broker offers: one file per API key, registered here.

Not offered: transactions (24-28), access control, quotas, replication, configuration, deletion of
topics, groups and offsets, SASL, telemetry, the KIP-848, share and streams groups. A request of an API
that is not here closes the connection, as an unknown key does in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from groupstorm.coordinator.server.apis import (
    key_00_produce,
    key_01_fetch,
    key_02_list_offsets,
    key_03_metadata,
    key_08_offset_commit,
    key_09_offset_fetch,
    key_10_find_coordinator,
    key_11_join_group,
    key_12_heartbeat,
    key_13_leave_group,
    key_14_sync_group,
    key_15_describe_groups,
    key_16_list_groups,
    key_18_api_versions,
    key_19_create_topics,
    key_22_init_producer_id,
)
from groupstorm.coordinator.server.apis.api import Api

_WITHOUT_API_VERSIONS = (
    key_00_produce.API,
    key_01_fetch.API,
    key_02_list_offsets.API,
    key_03_metadata.API,
    key_08_offset_commit.API,
    key_09_offset_fetch.API,
    key_10_find_coordinator.API,
    key_11_join_group.API,
    key_12_heartbeat.API,
    key_13_leave_group.API,
    key_14_sync_group.API,
    key_15_describe_groups.API,
    key_16_list_groups.API,
    key_19_create_topics.API,
    key_22_init_producer_id.API,
)


def _table() -> Mapping[int, Api]:
    table = {api.key: api for api in _WITHOUT_API_VERSIONS}
    table[key_18_api_versions.KEY] = key_18_api_versions.api_versions(table)
    return MappingProxyType(table)


#: By API key.
APIS: Mapping[int, Api] = _table()
