"""The messages of streams groups that Kafka 4.4.0 has and kio lacks (KIP-1071, KIP-1331).

Source: the schemas in kafka-clients-4.4.0.jar. StreamsGroupHeartbeat 1 has the recovery lag as int64 and asks
for the description of the topology, StreamsGroupDescribe 1 shows it, StreamsGroupTopologyDescriptionUpdate 0
sends it.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping
from types import GenericAlias
from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.schema.streams_group_describe.v0 import request as describe
from kio.schema.streams_group_describe.v0 import response as described
from kio.schema.streams_group_heartbeat.v0 import request as heartbeat
from kio.schema.streams_group_heartbeat.v0 import response as heartbeat_answer
from kio.static.constants import EntityType

from groupstorm.protocol.codec.schemas import array_of, copied, fact, like
from groupstorm.protocol.codec.shape import KioType

_TEXTS = (GenericAlias(tuple, (str, ...)), fact("string", default=()))
_TEXT = (str, fact("string"))


def _new(name: str, kind: EntityType, api_key: int, header: KioType, /, **fields: tuple[Any, Any]) -> KioType:
    """A structure of which kio has no version."""
    return dataclasses.make_dataclass(
        name,
        [(field, of, copied(about)) for field, (of, about) in fields.items()],
        namespace={
            "__module__": __name__,
            "__type__": kind,
            "__version__": 0,
            "__flexible__": True,
            "__api_key__": api_key,
            "__header_schema__": header,
        },
        frozen=True,
        slots=True,
        kw_only=True,
    )


def _nested(name: str, /, **fields: tuple[Any, Any]) -> KioType:
    """A structure of a description; request and response have the same."""
    return _new(name, EntityType.nested, 93, RequestHeader, **fields)


TopologyDescriptionNode = _nested(
    "TopologyDescriptionNode",
    name=_TEXT,
    node_type=(int, fact("int8")),
    source_topics=_TEXTS,
    sink_topic=(str | None, fact("string", default=None)),
    stores=_TEXTS,
    successors=_TEXTS,
)
TopologyDescriptionGlobalStore = _nested(
    "TopologyDescriptionGlobalStore",
    source=(TopologyDescriptionNode, dataclasses.field()),
    processor=(TopologyDescriptionNode, dataclasses.field()),
)
TopologyDescriptionSubtopology = _nested(
    "TopologyDescriptionSubtopology", subtopology_id=_TEXT, nodes=array_of(TopologyDescriptionNode)
)
TopologyDescription = _nested(
    "TopologyDescription",
    subtopologies=array_of(TopologyDescriptionSubtopology),
    global_stores=array_of(TopologyDescriptionGlobalStore),
)

_ANSWER = heartbeat_answer.StreamsGroupHeartbeatResponse
_ANSWER_0 = {field.name: (field.type, field) for field in dataclasses.fields(_ANSWER)}

Status = heartbeat_answer.Status
TopicPartition = heartbeat_answer.TopicPartition
EndpointToPartitions = heartbeat_answer.EndpointToPartitions
StreamsGroupHeartbeatRequest = like(
    heartbeat.StreamsGroupHeartbeatRequest, 1, "", heartbeat.StreamsGroupHeartbeatRequest.__module__
)
StreamsGroupHeartbeatResponse = like(
    like(
        _ANSWER,
        1,
        "acceptable_recovery_lag",
        __name__,
        task_offset_interval=_ANSWER_0["task_offset_interval"],
        acceptable_recovery_lag=(int, fact("int64", default=-1)),
    ),
    1,
    "warmup_tasks",
    __name__,
    warmup_tasks=_ANSWER_0["warmup_tasks"],
    topology_description_required=(bool, fact("bool", default=False)),
)

#: Both messages have endpoints and lists of tasks, and they are alike.
Endpoint = described.Endpoint
TaskIds = described.TaskIds
KeyValue = described.KeyValue
TopicInfo = described.TopicInfo
Subtopology = described.Subtopology
Topology = described.Topology
TaskOffset = described.TaskOffset
Assignment = described.Assignment
Member = described.Member
DescribedGroup = like(
    described.DescribedGroup,
    1,
    "",
    __name__,
    topology_description=(TopologyDescription | None, dataclasses.field(default=None)),
    topology_description_status=(int, fact("int8", default=0)),
    assignor_name=(str | None, fact("string", default=None)),
)
StreamsGroupDescribeRequest = like(
    describe.StreamsGroupDescribeRequest, 1, include_topology_description=(bool, fact("bool"))
)
StreamsGroupDescribeResponse = like(
    described.StreamsGroupDescribeResponse, 1, "", __name__, groups=array_of(DescribedGroup)
)

_UPDATE = "StreamsGroupTopologyDescriptionUpdate"
StreamsGroupTopologyDescriptionUpdateRequest = _new(
    f"{_UPDATE}Request",
    EntityType.request,
    93,
    RequestHeader,
    group_id=_TEXT,
    member_id=_TEXT,
    topology_epoch=(int, fact("int32")),
    topology_description=(TopologyDescription, dataclasses.field()),
)
StreamsGroupTopologyDescriptionUpdateResponse = _new(
    f"{_UPDATE}Response",
    EntityType.response,
    93,
    ResponseHeader,
    throttle_time=(datetime.timedelta, fact("timedelta_i32")),
    error_code=(ErrorCode, fact("error_code")),
    error_message=(str | None, fact("string", default=None)),
)

#: API key and version -> request and response.
VERSIONS: Mapping[tuple[int, int], tuple[KioType, KioType]] = {
    (88, 1): (StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse),
    (89, 1): (StreamsGroupDescribeRequest, StreamsGroupDescribeResponse),
    (93, 0): (StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse),
}
