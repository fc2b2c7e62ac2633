"""The versions of Kafka 4.4.0 that kio lacks, whose schemas are 4.3's: dataclasses as kio makes them.

Source: the schemas in kafka-clients-4.4.0.jar. TxnOffsetCommit 6 names topics by id (KIP-1319), DeleteGroups
3 has a sentence about each error, ApiVersions 5 names the broker that the client expects (KIP-1242).
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping
from types import GenericAlias
from typing import Any

from kio.schema.api_versions.v4 import request as api_versions
from kio.schema.api_versions.v4.response import ApiVersionsResponse
from kio.schema.delete_groups.v2 import request as delete_groups
from kio.schema.delete_groups.v2 import response as deleted_groups
from kio.schema.txn_offset_commit.v5 import request as txn_offset_commit
from kio.schema.txn_offset_commit.v5 import response as txn_offset_committed

from groupstorm.protocol.codec.shape import KioType


def like(
    before: KioType, version: int, renamed: str = "", module: str = __name__, /, **fields: tuple[Any, Any]
) -> KioType:
    """The structure of a version: the fields of the version before, and ``fields``, each with its type and
    the schema's facts about it. They take the place of the ``renamed`` one, or of the one of their name.
    ``module``: where the other structures of the message are."""
    in_order: dict[str, tuple[Any, Any]] = {}
    for one in dataclasses.fields(before):
        in_order |= fields if one.name == renamed else {one.name: fields.get(one.name, (one.type, one))}
    names = ("__type__", "__flexible__", "__api_key__", "__header_schema__")
    return dataclasses.make_dataclass(
        before.__name__,
        [(name, kind, copied(of)) for name, (kind, of) in (in_order | fields).items()],
        namespace={
            "__module__": module,
            "__version__": version,
            **{name: getattr(before, name) for name in names},
        },
        frozen=True,
        slots=True,
        kw_only=True,
    )


def copied(of: Any) -> Any:
    """A field may stand in one class only."""
    default = {} if of.default is dataclasses.MISSING else {"default": of.default}
    return dataclasses.field(metadata=of.metadata, **default)


def fact(kafka_type: str, **default: Any) -> Any:
    return dataclasses.field(metadata={"kafka_type": kafka_type}, **default)


def array_of(kind: KioType) -> tuple[Any, Any]:
    return GenericAlias(tuple, (kind, ...)), dataclasses.field()


_ID = {"topic_id": (uuid.UUID | None, fact("uuid"))}

TxnOffsetCommitRequestPartition = txn_offset_commit.TxnOffsetCommitRequestPartition
TxnOffsetCommitRequestTopic = like(txn_offset_commit.TxnOffsetCommitRequestTopic, 6, "name", **_ID)
TxnOffsetCommitRequest = like(
    txn_offset_commit.TxnOffsetCommitRequest,
    6,
    topics=array_of(TxnOffsetCommitRequestTopic),
)
TxnOffsetCommitResponsePartition = txn_offset_committed.TxnOffsetCommitResponsePartition
TxnOffsetCommitResponseTopic = like(txn_offset_committed.TxnOffsetCommitResponseTopic, 6, "name", **_ID)
TxnOffsetCommitResponse = like(
    txn_offset_committed.TxnOffsetCommitResponse,
    6,
    topics=array_of(TxnOffsetCommitResponseTopic),
)
DeleteGroupsRequest = like(delete_groups.DeleteGroupsRequest, 3)
DeletableGroupResult = like(
    deleted_groups.DeletableGroupResult, 3, error_message=(str | None, fact("string", default=None))
)
DeleteGroupsResponse = like(deleted_groups.DeleteGroupsResponse, 3, results=array_of(DeletableGroupResult))
ApiVersionsRequest = like(
    api_versions.ApiVersionsRequest,
    5,
    cluster_id=(str | None, fact("string", default=None)),
    node_id=(int, fact("int32", default=-1)),
)

#: API key and version -> request and response.
NEWER_VERSIONS: Mapping[tuple[int, int], tuple[KioType, KioType]] = {
    (18, 5): (ApiVersionsRequest, ApiVersionsResponse),
    (28, 6): (TxnOffsetCommitRequest, TxnOffsetCommitResponse),
    (42, 3): (DeleteGroupsRequest, DeleteGroupsResponse),
}

#: API key and version of the messages of streams groups, and the module that makes their classes.
STREAMS_VERSIONS = frozenset({(88, 1), (89, 1), (93, 0)})
STREAMS_MODULE = "groupstorm.protocol.codec.streams_versions"
