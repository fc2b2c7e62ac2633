"""Streams groups: requests that Kafka refuses, with its message; the group goes on as it was."""

from __future__ import annotations

from typing import Any

from groupstorm.coordinator.errors import Error
from tests.conformance.backends import MAX_SIZE
from tests.conformance.raw import consumer_requests as consumers
from tests.conformance.raw.consumer_openings import refused
from tests.conformance.raw.consumer_requests import LEAVE, LEAVE_FOR_A_WHILE
from tests.conformance.raw.openings import group_of_one as classic_group
from tests.conformance.raw.requests import describe, heartbeat, join, leave, sync
from tests.conformance.raw.steps import OK, Case, Request, ask
from tests.conformance.raw.streams_openings import case, described, group_of_one, group_of_two, still
from tests.conformance.raw.streams_requests import (
    STATELESS,
    beat,
    describe_streams,
    enter,
    owning,
    subtopology,
    topic,
    topology,
    update_description,
)

_INVALID, _TOPOLOGY = Error.INVALID_REQUEST, Error.STREAMS_INVALID_TOPOLOGY
_BROKEN = Error.UNKNOWN_SERVER_ERROR
_INT_MAX, _INT_MIN = 2**31 - 1, -(2**31)


def _bad(name: str, about: str, code: Error, *requests: Request) -> Case:
    """Every request is sent by a stranger, x, to a Stable group of two."""
    return case(
        f"bad-{name}",
        about,
        group_of_two(),
        [ask("x", request, refused(code)) for request in requests],
        still("a", "b"),
        ask("admin", describe_streams(), described("Stable", group_epoch=3, assignment_epoch=3)),
    )


def _bad_topology(name: str, about: str, code: Error, *subtopologies: Any, epoch: int = 0) -> Case:
    """The first member of a group, x, sends it: nobody gets a group."""
    return case(
        f"topology-{name}",
        about,
        ask("x", enter(topology=topology(*subtopologies, epoch=epoch)), refused(code)),
        ask("admin", describe_streams(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
    )


_FIELDS = (
    _bad(
        "ids",
        "ids that are empty or blank",
        _INVALID,
        *(enter(member=""), enter(member=" \t"), beat(member="", epoch=LEAVE), enter(group="")),
        *(beat(group="  ", epoch=LEAVE), enter(instance=""), enter(instance=" "), enter(rack="")),
    ),
    _bad(
        "epoch",
        "epochs below -2 mean nothing; epoch -2 is a static member's",
        _INVALID,
        *(beat(epoch=-3), beat(epoch=_INT_MIN), beat(epoch=LEAVE_FOR_A_WHILE)),
    ),
    _bad(
        "join",
        "a member that joins has a rebalance timeout, a topology, and no tasks",
        _INVALID,
        *(enter(rebalance=-1), enter(topology=None)),
        *(enter(active=None), enter(standby=None), enter(warmup=None)),
        *(enter(active={"0": (0,)}), enter(standby={"0": (0,)}), enter(warmup={"0": (0,)})),
    ),
    _bad(
        "lists",
        "the three lists of tasks come together; a topology only with a join",
        _INVALID,
        *(beat(member="a", epoch=3, active={}), beat(member="a", epoch=3, active={}, standby={})),
        *(beat(member="a", epoch=3, warmup={}), beat(member="a", epoch=3, topology=STATELESS)),
    ),
    _bad(
        "tasks",
        "tasks that the topology does not have",
        _INVALID,
        *(
            beat(member="a", epoch=3, **owning(*tasks))
            for tasks in (
                *([{"1": (0,)}], [{"0": (3,)}], [{"0": (-1,)}], [{"0": (_INT_MAX,)}]),
                [{"0": (0, 1)}, {"": (0,)}],
            )
        ),
    ),
    _bad(
        "offsets",
        "a task's offset is told twice",
        _INVALID,
        beat(member="a", epoch=3, offsets=(("0", 0, 1), ("0", 0, 2))),
        beat(member="a", epoch=3, end_offsets=(("0", 0, 1), ("0", 0, 1))),
    ),
)

_STRANGERS = (
    _bad(
        "unknown-member",
        "a member or an instance that the group does not have",
        Error.UNKNOWN_MEMBER_ID,
        *(beat(epoch=3), beat(epoch=LEAVE), beat(epoch=3, instance="i")),
        beat(epoch=LEAVE_FOR_A_WHILE, instance="i"),
    ),
    case(
        "bad-without-group",
        "a group that does not exist: only a join makes it",
        ask("x", beat(epoch=1), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("x", beat(epoch=LEAVE), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("admin", describe_streams(groups=("{group}", "")), {}),
        ask("admin", update_description(), refused(Error.UNSUPPORTED_VERSION)),
        group_of_one(),
    ),
    case(
        "bad-full-group",
        "group.streams.max.size: one member more is refused, one that is there is not",
        [ask(f"m{number}", enter(), OK) for number in range(MAX_SIZE)],
        ask("x", enter(), refused(Error.GROUP_MAX_SIZE_REACHED)),
        ask("m0", enter(), OK),
    ),
)

_OTHER_TYPES = (
    case(
        "bad-classic-group",
        "a classic group is no streams group",
        classic_group(),
        ask("x", enter(), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("x", beat(member="$a", epoch=1), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("x", beat(member="$a", epoch=LEAVE), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("a", heartbeat(), OK),
        ask("admin", describe_streams(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
    ),
    case(
        "bad-consumer-group",
        "a consumer group is no streams group",
        ask("c", consumers.enter(), OK),
        ask("x", enter(), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("x", beat(epoch=1), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("c", consumers.beat(), OK),
        ask("admin", describe_streams(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
    ),
    case(
        "bad-classic-requests",
        "requests of classic and consumer members to a streams group",
        group_of_one(),
        ask("x", join(), {}),
        ask("x", sync(member="a", generation=2), {}),
        ask("x", heartbeat(member="a", generation=2), {}),
        ask("x", leave(("a", None)), {}),
        ask("x", consumers.enter(), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("x", consumers.beat(member="a", epoch=2), refused(Error.GROUP_ID_NOT_FOUND)),
        ask("admin", describe(), {}),
        ask("admin", consumers.describe_consumers(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
        still("a"),
    ),
)

_CHANGELOG = "{group}-store-changelog"
_REPARTITION = "{group}-rep-repartition"
_TOPOLOGIES = (
    _bad_topology(
        "regex", "regular expressions are not supported", _INVALID, subtopology(source_topic_regex=["a.*"])
    ),
    _bad_topology("internal", "Kafka's own topics", _TOPOLOGY, subtopology("{topic}", "__consumer_offsets")),
    _bad_topology(
        "names",
        "names that no topic has",
        _TOPOLOGY,
        subtopology("{topic}", "a/b", repartition_sink_topics=["", "x" * 250]),
    ),
    _bad_topology(
        "changelog",
        "a changelog's partitions are the coordinator's business",
        _TOPOLOGY,
        subtopology("{topic}", state_changelog_topics=[topic(_CHANGELOG, 3)]),
    ),
    _bad_topology("epoch", "a negative epoch", _BROKEN, subtopology("{topic}"), epoch=-1),
    _bad_topology("twice", "an id twice", _BROKEN, subtopology("{topic}"), subtopology("{topic}")),
    _bad_topology(
        "copartition",
        "an index of a topic that is not there",
        _BROKEN,
        subtopology("{topic}", copartition_groups=[{"source_topics": [1]}]),
    ),
    _bad_topology(
        "copartition-negative",
        "a negative index",
        _BROKEN,
        subtopology("{topic}", copartition_groups=[{"source_topics": [-1]}]),
    ),
    _bad_topology(
        "loop",
        "a repartition topic that is its own source",
        _TOPOLOGY,
        subtopology(repartition_sink_topics=[_REPARTITION], repartition_source_topics=[topic(_REPARTITION)]),
    ),
    _bad_topology(
        "negative",
        "a negative number of partitions",
        _BROKEN,
        subtopology("{topic}", repartition_sink_topics=[_REPARTITION]),
        subtopology(name="1", repartition_source_topics=[topic(_REPARTITION, -5)]),
    ),
    _bad_topology(
        "unwritten",
        "a repartition topic that nobody writes",
        _TOPOLOGY,
        subtopology("{topic}", repartition_source_topics=[topic(_REPARTITION)]),
    ),
    _bad_topology("without-sources", "a subtopology that reads nothing", _TOPOLOGY, subtopology()),
    case(
        "topology-changes",
        "a group keeps its topology: another one of the same or of a newer epoch is refused",
        group_of_one(topology=topology(subtopology("{topic}"), epoch=5)),
        ask("x", enter(topology=topology(subtopology("{topic}", name="1"), epoch=5)), refused(_INVALID)),
        ask("x", enter(topology=topology(subtopology("{topic}"), epoch=6)), refused(_INVALID)),
        ask("x", enter(topology=topology(epoch=_INT_MAX)), refused(_INVALID)),
        still("a"),
        ask("b", enter(topology=topology(subtopology("other"), epoch=4)), OK),
        ask("admin", describe_streams(), described("Reconciling")),
    ),
)

CASES = (*_FIELDS, *_STRANGERS, *_OTHER_TYPES, *_TOPOLOGIES)
