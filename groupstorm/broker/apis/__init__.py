"""The APIs that this broker serves: one file per API key, registered here.

Not served: replication, telemetry, delegation tokens. A request of an API
that is not here closes the connection, as an unknown key does in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from groupstorm.broker.apis import (
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
    key_17_sasl_handshake,
    key_18_api_versions,
    key_19_create_topics,
    key_20_delete_topics,
    key_21_delete_records,
    key_22_init_producer_id,
    key_23_offset_for_leader_epoch,
    key_24_add_partitions_to_txn,
    key_25_add_offsets_to_txn,
    key_26_end_txn,
    key_28_txn_offset_commit,
    key_29_describe_acls,
    key_30_create_acls,
    key_31_delete_acls,
    key_32_describe_configs,
    key_33_alter_configs,
    key_35_describe_log_dirs,
    key_36_sasl_authenticate,
    key_37_create_partitions,
    key_42_delete_groups,
    key_43_elect_leaders,
    key_44_incremental_alter_configs,
    key_45_alter_partition_reassignments,
    key_46_list_partition_reassignments,
    key_47_offset_delete,
    key_48_describe_client_quotas,
    key_49_alter_client_quotas,
    key_50_describe_user_scram_credentials,
    key_51_alter_user_scram_credentials,
    key_55_describe_quorum,
    key_57_update_features,
    key_60_describe_cluster,
    key_61_describe_producers,
    key_65_describe_transactions,
    key_66_list_transactions,
    key_68_consumer_group_heartbeat,
    key_69_consumer_group_describe,
    key_74_list_config_resources,
    key_75_describe_topic_partitions,
    key_76_share_group_heartbeat,
    key_77_share_group_describe,
    key_78_share_fetch,
    key_79_share_acknowledge,
    key_88_streams_group_heartbeat,
    key_89_streams_group_describe,
    key_90_describe_share_group_offsets,
    key_91_alter_share_group_offsets,
    key_92_delete_share_group_offsets,
    key_93_streams_group_topology_description_update,
)
from groupstorm.broker.apis.api import Api
from groupstorm.broker.releases import NEWEST

#: In the order of the table in docs/serve.md.
_ALL = (
    key_00_produce.API, key_01_fetch.API, key_02_list_offsets.API, key_03_metadata.API,
    key_08_offset_commit.API, key_09_offset_fetch.API, key_10_find_coordinator.API, key_11_join_group.API,
    key_12_heartbeat.API, key_13_leave_group.API, key_14_sync_group.API, key_15_describe_groups.API,
    key_16_list_groups.API, key_17_sasl_handshake.API, key_19_create_topics.API, key_20_delete_topics.API,
    key_21_delete_records.API, key_22_init_producer_id.API, key_23_offset_for_leader_epoch.API,
    key_24_add_partitions_to_txn.API, key_25_add_offsets_to_txn.API, key_26_end_txn.API,
    key_28_txn_offset_commit.API, key_29_describe_acls.API, key_30_create_acls.API, key_31_delete_acls.API,
    key_32_describe_configs.API, key_33_alter_configs.API, key_35_describe_log_dirs.API,
    key_36_sasl_authenticate.API, key_37_create_partitions.API, key_42_delete_groups.API,
    key_43_elect_leaders.API, key_44_incremental_alter_configs.API,
    key_45_alter_partition_reassignments.API, key_46_list_partition_reassignments.API,
    key_47_offset_delete.API, key_48_describe_client_quotas.API, key_49_alter_client_quotas.API,
    key_50_describe_user_scram_credentials.API, key_51_alter_user_scram_credentials.API,
    key_55_describe_quorum.API, key_57_update_features.API, key_60_describe_cluster.API,
    key_61_describe_producers.API, key_65_describe_transactions.API, key_66_list_transactions.API,
    key_68_consumer_group_heartbeat.API, key_69_consumer_group_describe.API,
    key_74_list_config_resources.API, key_75_describe_topic_partitions.API,
    key_76_share_group_heartbeat.API, key_77_share_group_describe.API,
    key_78_share_fetch.API, key_79_share_acknowledge.API,
    key_88_streams_group_heartbeat.API, key_89_streams_group_describe.API,
    key_90_describe_share_group_offsets.API, key_91_alter_share_group_offsets.API,
    key_92_delete_share_group_offsets.API, key_93_streams_group_topology_description_update.API,
    key_18_api_versions.API,
)  # fmt: skip


def apis_of(release: str) -> Mapping[int, Api]:
    """The APIs by key, in the versions that both this release of Kafka and this broker have."""
    return MappingProxyType({api.key: api for one in _ALL if (api := one.of_release(release)) is not None})


#: All APIs, by key.
APIS: Mapping[int, Api] = apis_of(NEWEST)
