"""Streams groups: members, their tasks, internal topics, offsets and configurations."""

from __future__ import annotations

from collections.abc import Mapping

from tests.conformance.raw.consumer_openings import at
from tests.conformance.raw.consumer_requests import (
    LEAVE,
    SET,
    alter_configs,
    commit_as,
    describe_configs,
    fetch_as,
)
from tests.conformance.raw.requests import (
    add_offsets,
    commit_from_outside,
    commit_in_transaction,
    delete_groups,
    delete_offsets,
    end_transaction,
    fetch_offsets,
    find_transaction_coordinator,
    init_producer,
    list_groups,
)
from tests.conformance.raw.steps import OK, Again, ask
from tests.conformance.raw.streams_openings import (
    case,
    described,
    given,
    group_of_one,
    group_of_two,
    still,
    unchanged,
)
from tests.conformance.raw.streams_requests import beat, describe_streams, enter, subtopology, topic, topology

_CHANGELOG = "{group}-store-changelog"


def _keeping(replicas: int = 0, configs: Mapping[str, str] | None = None) -> Mapping[str, object]:
    """A topology with a store."""
    return topology(
        subtopology("{topic}", state_changelog_topics=[topic(_CHANGELOG, 0, replicas, configs)]), epoch=1
    )


def _creation_failed(why: str) -> Mapping[str, object]:
    missing = "<group>-store-changelog"
    detail = f"Internal topics are missing: {missing}; Creation failed: {missing} ({why})."
    return {"status": [{"status_code": 3, "status_detail": detail}]}


_MEMBERS = (
    case(
        "life",
        "two members share the tasks; one leaves, and the group is listed, described and deleted",
        group_of_two(),
        ask("admin", list_groups(types=("streams",)), OK),
        ask("admin", list_groups(states=("Empty",)), OK),
        ask("b", beat(epoch=LEAVE), at(LEAVE)),
        ask("a", beat(), given(4, 0, 1, 2)),
        ask("admin", delete_groups(), {"results": [{"error_code": "NON_EMPTY_GROUP"}]}),
        ask("a", beat(epoch=LEAVE), at(LEAVE)),
        ask("admin", describe_streams(), described("Empty", members=[])),
        ask("admin", describe_streams(version=0), described("Empty", members=[])),
        ask("admin", list_groups(states=("Empty",), types=("STREAMS", "classic")), OK),
        ask("admin", delete_groups(), {"results": [{"error_code": "NONE"}]}),
        ask("admin", describe_streams(), {"groups": [{"error_code": "GROUP_ID_NOT_FOUND"}]}),
    ),
    case(
        "version-0",
        "version 0 has the recovery lag in another place, and no word of descriptions",
        ask("a", enter(version=0), given(2, 0, 1, 2)),
        ask("a", beat(version=0), unchanged(2)),
        ask("admin", describe_streams(version=0), described("Stable")),
        ask("a", beat(version=0, epoch=LEAVE), at(LEAVE)),
    ),
    case(
        "everything",
        "whatever a member may say of itself is described",
        ask(
            "a",
            enter(
                instance="i",
                rack="r",
                endpoint=("host", 65_535),
                tags={"zone": "1", "cluster": "2"},
                offsets=(("0", 0, 5), ("9", 7, -1)),
                end_offsets=(("0", 0, 2**63 - 1),),
            ),
            given(2, 0, 1, 2),
        ),
        ask("a", beat(instance="i", endpoint_epoch=0), OK),
        ask("a", beat(instance="i", endpoint_epoch=1), OK),
        ask("admin", describe_streams(description=True), described("Stable")),
        ask("a", beat(instance="i", endpoint=("", 0)), OK),
        ask("a", beat(instance="i", offsets=()), OK),
        ask("a", beat(instance="i", shutdown=True), OK),
        ask("admin", describe_streams(), described("Stable")),
    ),
)

_TOPICS = (
    case(
        "repartition-topic",
        "the broker creates the repartition topic that is missing",
        ask(
            "a",
            enter(
                topology=topology(
                    subtopology("{topic}", repartition_sink_topics=["{group}-rep-repartition"]),
                    subtopology(name="1", repartition_source_topics=[topic("{group}-rep-repartition")]),
                )
            ),
            given(2),
        ),
        Again(
            "a",
            beat(),
            at(
                3,
                active_tasks=[
                    {"subtopology_id": "0", "partitions": [0, 1, 2]},
                    {"subtopology_id": "1", "partitions": [0, 1, 2]},
                ],
            ),
        ),
        ask("admin", describe_streams(), described("Stable", group_epoch=3)),
    ),
    case(
        "changelog",
        "the broker creates the changelog that is missing",
        ask("a", enter(topology=_keeping(-1, {"cleanup.policy": "compact"})), given(2)),
        Again("a", beat(), given(3, 0, 1, 2)),
        ask("admin", describe_streams(), described("Stable", group_epoch=3)),
        ask("admin", alter_configs(("streams.num.standby.replicas", SET, "1")), {}),
        Again("a", beat(), at(4)),
        ask("b", enter(topology=_keeping(-1, {"cleanup.policy": "compact"}), active={}), given(5)),
        ask("admin", describe_streams(), described("Reconciling")),
    ),
    *(
        case(
            f"topic-refused-{name}",
            f"an internal topic that cannot be created: {about}",
            ask("a", enter(topology=made), given(2)),
            Again("a", beat(), _creation_failed(why)),
            ask("admin", describe_streams(), described("NotReady")),
        )
        for name, about, made, why in (
            (
                "replicas",
                "three replicas on one broker",
                _keeping(3),
                "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be "
                "reached because only 1 broker(s) are registered or some brokers have all their log "
                "directories cordoned.",
            ),
            (
                "config",
                "a configuration of no topic",
                _keeping(configs={"no.such": "1"}),
                "Unknown topic config name: no.such",
            ),
            (
                "value",
                "a value that the configuration cannot have",
                _keeping(configs={"retention.ms": "x"}),
                "Invalid value x for configuration retention.ms: Not a number of type LONG",
            ),
        )
    ),
)

_OFFSETS = (
    case(
        "offsets",
        "members commit and fetch at their epochs",
        group_of_two(),
        ask("a", commit_as(5), {}),
        ask("a", commit_as(6, epoch=2, partition=0), {}),
        ask("a", commit_as(6, epoch=2, partition=2), {}),
        ask("a", commit_as(6, epoch=4), {}),
        ask("a", commit_as(6, version=8), {}),
        ask("x", commit_as(7, epoch=3), {}),
        ask("admin", commit_from_outside(), {}),
        ask("a", fetch_as(), {}),
        ask("a", fetch_as(epoch=2), {}),
        ask("a", fetch_as(epoch=4), {}),
        ask("admin", fetch_offsets(), {}),
        ask("admin", delete_offsets(0), {}),
        still("a", "b"),
    ),
    case(
        "offsets-in-a-transaction",
        "a member's transaction commits at its epoch",
        group_of_two(),
        Again("a", find_transaction_coordinator(), {"coordinators": [{"error_code": "NONE"}]}),
        Again("a", init_producer(), OK),
        ask("a", add_offsets(), OK),
        ask("a", commit_in_transaction(9, member="a", generation=3), {}),
        ask("a", commit_in_transaction(9, member="a", generation=4), {}),
        ask("a", commit_in_transaction(9, member="x", generation=3), {}),
        ask("a", end_transaction(commits=True), OK),
        Again("a", fetch_as(), {"groups": [{"topics": [{"partitions": [{"committed_offset": 9}]}]}]}),
    ),
)

_CONFIGS = (
    case(
        "configs",
        "a group's own configurations count at its next heartbeat, and are described",
        group_of_one(),
        ask("admin", alter_configs(("streams.heartbeat.interval.ms", SET, "700")), {}),
        Again("a", beat(), {"heartbeat_interval": 700}),
        ask("admin", alter_configs(("streams.rack.aware.assignment.tags", SET, "zone,rack")), {}),
        Again("a", beat(), {"status": [{"status_code": 6}]}),
        ask("a", beat(version=0), {"status": []}),
        ask("admin", alter_configs(("streams.num.standby.replicas", SET, "3")), {}),
        ask("admin", alter_configs(("streams.session.timeout.ms", SET, "499")), {}),
        ask("admin", alter_configs(("streams.task.offset.interval.ms", SET, "1")), {}),
        ask("admin", alter_configs(("streams.assignor.name", SET, "other")), {}),
        ask(
            "admin",
            describe_configs("streams.heartbeat.interval.ms", "streams.rack.aware.assignment.tags"),
            {},
        ),
    ),
)

CASES = (*_MEMBERS, *_TOPICS, *_OFFSETS, *_CONFIGS)
