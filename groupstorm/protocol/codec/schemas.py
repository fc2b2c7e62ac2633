"""kio's classes by API key and version, imported when they are first used, and those that kio lacks.

Importing the schemas of a broker's APIs takes more than a second, and a client uses one version of each.
kio's schemas are those of Kafka 4.3. Of 4.4.0 there are here, as kio would make them (source: the schemas in
kafka-clients-4.4.0.jar): TxnOffsetCommit 6, which names topics by id (KIP-1319), DeleteGroups 3, which has a
sentence about each error, ApiVersions 5, which names the broker that the client expects (KIP-1242).
"""

from __future__ import annotations

import dataclasses
import datetime
import sys
import uuid
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import GenericAlias
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.api_versions.v4 import request as api_versions
from kio.schema.api_versions.v4.response import ApiVersionsResponse
from kio.schema.delete_groups.v2 import request as delete_groups
from kio.schema.delete_groups.v2 import response as deleted_groups
from kio.schema.index import api_key_map, schema_name_map
from kio.schema.txn_offset_commit.v5 import request as txn_offset_commit
from kio.schema.txn_offset_commit.v5 import response as txn_offset_committed

from groupstorm.protocol.codec.shape import KioType

NO_THROTTLE = datetime.timedelta(0)


@cache
def request_type(api_key: int, version: int) -> KioType:
    """kio's class of a request. Raises kio's KioIndexError for a version that Kafka does not have."""
    if (newer := _newer(api_key, version)) is not None:
        return newer[0]
    _import_package(api_key, version)
    return load_request_schema(api_key, version)


@cache
def response_types(api_key: int, version: int) -> ResponseTypes:
    """The classes of one response in one version."""
    if (newer := _newer(api_key, version)) is not None:
        return ResponseTypes(newer[1])
    _import_package(api_key, version)
    return ResponseTypes(load_response_schema(api_key, version))


def _newer(api_key: int, version: int) -> tuple[KioType, KioType] | None:
    """The classes that kio lacks; those of streams groups are made when they are first used."""
    if (api_key, version) in STREAMS_VERSIONS:
        versions: Mapping[tuple[int, int], tuple[KioType, KioType]] = import_module(STREAMS_MODULE).VERSIONS
        return versions[api_key, version]
    return NEWER_VERSIONS.get((api_key, version))


def _import_package(api_key: int, version: int) -> None:
    """Import the package before its modules.

    The package imports both of its modules. If one thread imports the request's module first and another one
    the response's, each waits for a lock that the other one holds, and Python raises an error in one of them.
    """
    name = api_key_map.get(api_key)
    if name is not None and version in schema_name_map[name]:
        import_module(f"kio.schema.{name}.v{version}")


class ResponseTypes:
    """Makes the structures of one response in one version.

    A handler names every field of every version, and the fields that this version lacks are dropped: one
    handler serves all versions. kio has one class per version and structure; structures keep
    their names from version to version.
    """

    def __init__(self, root: KioType) -> None:
        self.root = root
        self._module = sys.modules[root.__module__]
        self._classes: dict[str, tuple[KioType, frozenset[str]]] = {}

    def make(self, structure: str, /, **values: Any) -> Any:
        """One structure by its Kafka name. Raises TypeError if a field without default is not named."""
        if structure not in self._classes:
            structure_type = self.structure(structure)
            self._classes[structure] = structure_type, field_names(structure_type)
        structure_type, known = self._classes[structure]
        return structure_type(**{name: value for name, value in values.items() if name in known})

    def structure(self, name: str, /) -> KioType:
        """The class of a structure by its Kafka name."""
        return getattr(self._module, name)

    def fitting(self, values: Mapping[str, Any], structure: str | None = None) -> dict[str, Any]:
        """The values of a table that serves several structures: those that this one has in this version.
        ``structure``: its Kafka name, by default the response itself."""
        known = field_names(self.root if structure is None else self.structure(structure))
        return {name: value for name, value in values.items() if name in known}

    def response(self, **values: Any) -> Any:
        """The response itself; without ``throttle_time`` it is not throttled."""
        return self.make(self.root.__name__, **{"throttle_time": NO_THROTTLE, **values})


@cache
def field_names(structure_type: KioType) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(structure_type))


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
