"""The APIs that this broker serves: a file for each subject, registered here.

The docstring of an API's handler says what its versions add, and where the API differs from Kafka's.

Not served: replication, telemetry, delegation tokens. A request of an API
that is not here closes the connection, as an unknown key does in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from groupstorm.broker.apis import (
    acls,
    api_versions,
    authentication,
    client_quotas,
    configs,
    coordinators,
    fetch,
    group_offsets,
    groups,
    log_offsets,
    members,
    metadata,
    produce,
    replicas,
    share_offsets,
    share_records,
    streams_groups,
    topics,
    transaction_descriptions,
    transactions,
)
from groupstorm.broker.apis.api import Api
from groupstorm.broker.config import NEWEST

_FILES = (
    acls, api_versions, authentication, client_quotas, configs, coordinators, fetch, group_offsets, groups,
    log_offsets, members, metadata, produce, replicas, share_offsets, share_records, streams_groups,
    topics, transaction_descriptions, transactions,
)  # fmt: skip
#: By key, as Kafka's ApiVersions lists them.
_ALL = sorted((api for file in _FILES for api in file.APIS), key=lambda api: api.key)


def apis_of(release: str) -> Mapping[int, Api]:
    """The APIs by key, in the versions that both this release of Kafka and this broker have."""
    return MappingProxyType({api.key: api for one in _ALL if (api := one.of_release(release)) is not None})


#: All APIs, by key.
APIS: Mapping[int, Api] = apis_of(NEWEST)
