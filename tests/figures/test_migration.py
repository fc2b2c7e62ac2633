"""Sentences of a comparison on a group's change of protocol, from rows written by hand."""

from __future__ import annotations

import json

import pytest

from groupstorm.figures.reasons import migration_sentences
from groupstorm.history.protocols import Migration, MigrationWatch
from groupstorm.trace.events.member import MemberFailed
from groupstorm.trace.events.scenario import ScenarioStarted

POLICY = "group.consumer.migration.policy"


def _of_policy(detail: object) -> str:
    watch = MigrationWatch()
    watch.started(ScenarioStarted("g", json.dumps(detail), ("t-0",), 0, 0))
    return watch.migration().policy


def test_only_a_consumer_that_the_group_refused_counts() -> None:
    watch = MigrationWatch()
    for error in ("GROUP_ID_NOT_FOUND", "FENCED_INSTANCE_ID", "GROUP_ID_NOT_FOUND", "GROUP_MAX_SIZE_REACHED"):
        watch.failed(0, MemberFailed("g", "a", "a-1", error))
    watch.failed(0, MemberFailed("g", "b", "b-1", "GROUP_ID_NOT_FOUND"))
    assert watch.migration().refused == 3


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_policy_that_forbids_the_upgrade_is_kept(policy: str) -> None:
    assert _of_policy({"settings": {POLICY: policy}}) == policy


@pytest.mark.parametrize(
    "detail",
    [{"settings": {POLICY: "upgrade"}}, {"settings": {POLICY: "bidirectional"}}, {"settings": {}}, {}, []],
)
def test_any_other_scenario_forbids_nothing(detail: object) -> None:
    assert _of_policy(detail) == ""


def test_nothing_is_said_if_no_group_changed() -> None:
    assert migration_sentences({"one": [Migration()], "none": []}) == []


def test_the_changes_of_the_first_run_are_told() -> None:
    runs = [Migration(((2.0, "upgraded", 7), (30.5, "downgraded", 9))), Migration(((1.0, "upgraded", 3),))]
    assert migration_sentences({"roll": runs, "stay": [Migration()]}) == [
        "Group protocol: under roll the group became a consumer group at 2.0 s, generation 7 as its epoch "
        "and became a classic group again at 30.5 s, epoch 9; under stay the group kept its protocol."
    ]


def test_a_refusal_by_policy_asks_for_the_policy_and_any_other_for_the_assignor() -> None:
    by_policy, by_assignor = Migration(refused=2, policy="disabled"), Migration(refused=1)
    assert migration_sentences(
        {"p": [by_policy], "q": [by_assignor], "r": [Migration(policy="disabled")]}
    ) == [
        "Group protocol: under p the group refused 2 consumers of the new protocol (GROUP_ID_NOT_FOUND); "
        "under q the group refused 1 consumers of the new protocol (GROUP_ID_NOT_FOUND); "
        "under r the group kept its protocol.",
        f"Before the roll-out, under p: set {POLICY}=upgrade on the brokers.",
        "Before the roll-out, under q: roll out an assignor whose assignments carry no user data "
        "(range, cooperative-sticky), beside the old one; Kafka does not take user data along.",
    ]
