"""Requests of administrators about ACLs: rules that Kafka refuses, and filters."""

from __future__ import annotations

from typing import Any

from tests.broker import wire
from tests.broker.asking import acl
from tests.broker.authorization.playing import ADMIN, Probe
from tests.broker.authorization.probes import ANY_ACL


def _acl(**more: Any) -> dict[str, Any]:
    return acl(**{"resource_name": "x", "principal": "User:eve", **more})


_BAD_ACLS: list[dict[str, Any]] = [
    {"resource_type": 1},
    {"resource_type": 4},
    {"resource_name": ""},
    {"resource_type": 4, "resource_name": ""},
    {"resource_pattern_type": 1},
    {"resource_pattern_type": 2},
    {"operation": 1},
    {"permission_type": 1},
    {"principal": "eve"},
    {"principal": ""},
    {"principal": "Group:all"},
    {"host": ""},
    {"operation": 15},
    {"resource_type": 6},
    {"resource_type": 4, "resource_name": "kafka-cluster", "resource_pattern_type": 4},
]
_UNKNOWN_CODES: list[dict[str, Any]] = [
    {"resource_type": 0},
    {"resource_type": 99},
    {"resource_pattern_type": 0},
    {"resource_pattern_type": -3},
    {"operation": 0},
    {"operation": 77},
    {"permission_type": 9},
]
_FILTERS: list[dict[str, Any]] = [
    {},
    {"principal_filter": None},
    {"principal_filter": None, "resource_type_filter": 2, "resource_name_filter": "orders",
     "pattern_type_filter": 2},
    {"principal_filter": None, "resource_type_filter": 2, "resource_name_filter": "orders",
     "pattern_type_filter": 1},
    {"principal_filter": None, "resource_type_filter": 2, "resource_name_filter": "ord",
     "pattern_type_filter": 4},
    {"principal_filter": None, "resource_type_filter": 2, "resource_name_filter": "*",
     "pattern_type_filter": 3},
    {"principal_filter": None, "resource_name_filter": "orders", "pattern_type_filter": 3},
    {"principal_filter": "User:alice", "host_filter": "*", "operation": 3},
    {"principal_filter": None, "host_filter": "10.0.0.1"},
    {"principal_filter": None, "permission_type": 2},
    {"principal_filter": None, "resource_name_filter": ""},
]  # fmt: skip
_SOME_ACLS = (
    "READ TOPIC orders",
    "READ TOPIC ord*",
    "WRITE TOPIC ord*",
    "READ TOPIC *",
    "-WRITE TOPIC other",
    "READ GROUP orders",
    "ALTER CLUSTER",
)

#: What administrators ask for: rules that Kafka refuses, and filters.
PROBES = [
    *(
        Probe(
            f"create an ACL with {one}",
            wire.CREATE_ACLS,
            (3,),
            {"creations": [_acl(**one), _acl()]},
            user=ADMIN,
        )
        for one in (*_BAD_ACLS, *_UNKNOWN_CODES)
    ),
    *(
        Probe(f"find ACLs by {one}", wire.DESCRIBE_ACLS, (1, 3), ANY_ACL | one, [_SOME_ACLS], ADMIN)
        for one in _FILTERS
    ),
    *(
        Probe(f"find ACLs by {one}", wire.DESCRIBE_ACLS, (3,), ANY_ACL | one, user=ADMIN)
        for one in (
            {"resource_type_filter": 0},
            {"resource_type_filter": 88},
            {"pattern_type_filter": 0},
            {"operation": 0},
            {"permission_type": 0},
        )
    ),
    Probe(
        "delete ACLs by several filters",
        wire.DELETE_ACLS,
        (1, 3),
        {"filters": [ANY_ACL | one for one in _FILTERS]},
        [_SOME_ACLS],
        ADMIN,
    ),
    *(
        Probe(
            f"delete ACLs by {one}", wire.DELETE_ACLS, (3,), {"filters": [ANY_ACL | one, ANY_ACL]}, user=ADMIN
        )
        for one in (
            {"operation": 0},
            {"operation": 77},
            {"resource_type_filter": 88},
            {"pattern_type_filter": -3},
        )
    ),
]
