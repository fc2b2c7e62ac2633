"""Share groups: sessions, acknowledgements that Kafka refuses, fields beyond their ranges, offsets.

Cases whose members get records have a partition of the common topic to themselves.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.backends import SHARES
from tests.conformance.raw.openings import group_of_one as classic_group
from tests.conformance.raw.requests import delete_groups
from tests.conformance.raw.share_requests import (
    Ranges,
    acknowledge,
    alter_offsets,
    beat,
    delete_offsets,
    describe_offsets,
    describe_share,
    enter,
    fetch,
    produce,
    unknown_topic,
)
from tests.conformance.raw.steps import OK, Again, Case, Request, Steps, ask

_INT_MAX, _INT_MIN = 2**31 - 1, -(2**31)
_LONG_MAX, _LONG_MIN = 2**63 - 1, -(2**63)
_GAP, _ACCEPT, _RELEASE, _REJECT, _RENEW = range(5)
_LEAVE = -1
_WITH_STATE: dict[str, Any] = {"groups": [{"topics": [{"partitions": [{}, {}, {}]}]}]}


def _case(name: str, about: str, *steps: Any) -> Case:
    return Case(f"share-{name}", about, steps, SHARES)


def _shown(*requests: Request, who: str = "a") -> Steps:
    """Their answers are compared with Kafka's, and nothing else is known of them."""
    return [ask(who, request, {}) for request in requests]


def _ranges(*ranges: tuple[int, int, int]) -> dict[int, Ranges]:
    """Acknowledgements of partition 0, one type each."""
    return {0: [(first, last, (kind,)) for first, last, kind in ranges]}


def _initialised() -> Steps:
    """A member has joined, and all partitions of the topic have their state."""
    return (ask("a", enter(), OK), Again("admin", describe_offsets(), _WITH_STATE))


_MEMBERS = (
    _case(
        "bad-heartbeats",
        "ids, racks and epochs that mean nothing, topics that are missing",
        _shown(
            *(enter(member=""), enter(member=" "), enter(member="m" * 37), enter(group=""), enter(group=" ")),
            *(enter(rack=""), enter(topics=None), enter(topics=()), beat(epoch=-2), beat(epoch=_INT_MIN)),
            *(beat(epoch=1), beat(epoch=_LEAVE), beat(epoch=_INT_MAX), describe_share("", "{group}")),
        ),
    ),
    _case(
        "other-kinds",
        "requests of share groups about a classic group",
        classic_group(),
        _shown(
            *(enter(), describe_share(), describe_offsets(), alter_offsets("{topic}", {0: 0})),
            *(delete_offsets("{topic}"), fetch(0, {2: []}), fetch(_LEAVE)),
            who="x",
        ),
    ),
    _case(
        "life",
        "a member joins, is described and listed, leaves, and its group is deleted",
        _initialised(),
        _shown(delete_groups(), beat(epoch=_LEAVE)),
        _shown(describe_share(), delete_groups(), describe_share()),
    ),
)

_SESSIONS = (
    _case(
        "sessions",
        "sessions have epochs; ShareAcknowledge begins none",
        _initialised(),
        _shown(
            *(acknowledge(0, {1: []}), acknowledge(1, {1: []}), fetch(1), fetch(_LEAVE), fetch(-2)),
            *(fetch(0, {1: []}), fetch(0, {1: [(0, 0, (_ACCEPT,))]}), fetch(2), fetch(1), fetch(1)),
            *(acknowledge(1, {1: []}), acknowledge(2, {1: []}), acknowledge(_LEAVE), fetch(3)),
            *(fetch(0, {1: []}), fetch(0), fetch(1, {1: [], 2: []}), fetch(_INT_MAX), fetch(_LEAVE)),
        ),
    ),
    _case(
        "ids",
        "members and groups without a name, and members that are not in the group",
        _shown(
            *(fetch(0, {1: []}, member=""), fetch(0, {1: []}, member="m" * 36)),
            *(fetch(0, {1: []}, member="m" * 37), fetch(0, {1: []}, member_id=None)),
            *(fetch(0, {1: []}, group_id=None), fetch(0, {1: []}, group_id="")),
            *(acknowledge(1, {1: []}, member=""), acknowledge(1, {1: []}, group_id=None)),
            *(acknowledge(1, {1: []}, member_id=None), acknowledge(1, {1: []}, group_id="")),
        ),
    ),
    _case(
        "unknown-partitions",
        "partitions that are not there, topics with another id",
        _initialised(),
        _shown(
            *(fetch(0, {1: [], 3: [], -1: []}), fetch(1, {_INT_MAX: []}), fetch(2, {}, **unknown_topic())),
            *(fetch(3, {0: []}, **unknown_topic()), fetch(4)),
            fetch(5, {0: [(0, 0, (_ACCEPT,))]}, **unknown_topic()),
            acknowledge(6, {0: [(0, 0, (_ACCEPT,))]}, **unknown_topic()),
            acknowledge(7, {3: [(0, 0, (_ACCEPT,))], -1: []}),
            acknowledge(8, {2: [(0, 0, (_ACCEPT,))]}),
            fetch(9, forgotten_topics_data=[{"topic_id": "{topic_id}", "partitions": [1, 3, 7, -1]}]),
        ),
    ),
    _case(
        "fields",
        "numbers beyond their ranges",
        _initialised(),
        _shown(
            *(fetch(0, {1: []}, max_records=0), fetch(0, {1: []}, max_records=-1)),
            *(fetch(0, {1: []}, max_records=_INT_MIN), fetch(0, {1: []}, max_bytes=0)),
            *(fetch(0, {1: []}, max_bytes=-1), fetch(0, {1: []}, max_bytes=_INT_MIN)),
            *(fetch(0, {1: []}, min_bytes=0), fetch(0, {1: []}, min_bytes=-1)),
            *(fetch(0, {1: []}, batch_size=0), fetch(0, {1: []}, batch_size=-1)),
            *(fetch(0, {1: []}, share_acquire_mode=2), fetch(0, {1: []}, share_acquire_mode=-1)),
            *(fetch(0, {1: []}, max_wait=-1), fetch(0, {1: []}, is_renew_ack=True)),
            fetch(0, {1: []}, is_renew_ack=True, max_wait=0, max_bytes=0, min_bytes=0, max_records=0),
        ),
    ),
)

_ACKNOWLEDGEMENTS = (
    _case(
        "acknowledgements",
        "of records that are held, not held, held by another member, twice, and in ranges that mean nothing",
        _initialised(),
        Again("a", fetch(0, {0: []}), {"responses": [{"partitions": [{"error_code": "NONE"}]}]}),
        ask("admin", produce(0, b"0", b"1", b"2"), {}),
        ask("admin", produce(0, b"3", b"4"), {}),
        ask("a", fetch(1), {}),
        _shown(
            acknowledge(2, _ranges((0, 0, 5))),
            acknowledge(3, _ranges((0, 0, -1))),
            acknowledge(4, _ranges((0, 0, _RENEW))),
            acknowledge(5, _ranges((1, 0, _ACCEPT))),
            acknowledge(6, _ranges((2, 2, _ACCEPT), (0, 0, _ACCEPT))),
            acknowledge(7, {0: [(0, 2, (_ACCEPT, _ACCEPT))]}),
            acknowledge(8, {0: [(0, 0, ())]}),
            acknowledge(9, _ranges((5, 5, _ACCEPT))),
            acknowledge(10, _ranges((4, 5, _ACCEPT))),
            acknowledge(11, _ranges((_LONG_MIN, -1, _ACCEPT))),
            acknowledge(12, _ranges((0, _LONG_MAX, _ACCEPT))),
            acknowledge(13, _ranges((0, 0, _ACCEPT), (9, 9, _ACCEPT))),
            acknowledge(14, {0: [(0, 2, (_ACCEPT, _RELEASE, _REJECT))]}),
            acknowledge(15, _ranges((0, 0, _ACCEPT))),
            acknowledge(16, _ranges((3, 3, _GAP), (3, 3, _ACCEPT))),
            acknowledge(17, _ranges((3, 3, _RENEW)), is_renew_ack=True),
            acknowledge(18, _ranges((3, 3, _ACCEPT)), version=1),
            acknowledge(19, _ranges((4, 4, _RELEASE))),
        ),
        _shown(fetch(0, {0: []}), acknowledge(1, _ranges((4, 4, _ACCEPT))), fetch(_LEAVE), who="b"),
        _shown(fetch(20, max_records=1, share_acquire_mode=1), acknowledge(_LEAVE, {0: []})),
        _shown(describe_offsets()),
    ),
)

_OFFSETS = (
    _case(
        "offsets",
        "start offsets of groups with members, without them, and of groups that are not there",
        _initialised(),
        _shown(
            alter_offsets("{topic}", {2: 0}),
            delete_offsets("{topic}"),
            beat(epoch=_LEAVE),
            alter_offsets("{topic}", {2: 0, 3: 0}),
            alter_offsets("none", {0: 0}),
            alter_offsets("{topic}", {0: 0}, group=""),
            describe_offsets({"{topic}": (2,), "none": (0,)}),
            describe_offsets({"{topic}": (2, -1)}),
            alter_offsets("{topic}", {2: -1}),
            describe_offsets(),
            describe_offsets({}),
            delete_offsets("none"),
            delete_offsets("{topic}", group=""),
            delete_offsets("{topic}"),
            delete_offsets("{topic}"),
            describe_offsets(),
        ),
    ),
    _case(
        "no-group",
        "groups that are not there",
        _shown(
            *(describe_offsets(), describe_offsets(group=""), describe_offsets({"{topic}": (0,)})),
            *(
                delete_offsets("{topic}"),
                alter_offsets("{topic}", {1: 0}),
                describe_offsets(),
                describe_share(),
            ),
        ),
    ),
)

CASES = (*_MEMBERS, *_SESSIONS, *_ACKNOWLEDGEMENTS, *_OFFSETS)
