"""The alternatives that a workload has, their settings, and what no figure says of them."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.storms.deployments.alternatives import alternatives_to, is_mixed_first, scenarios_of
from groupstorm.storms.deployments.manifests.plan import Plan
from groupstorm.storms.scenario.settings import Settings
from groupstorm.verdicts.alternatives import Alternative
from tests.storms.manifests.manifest_files import plan_of, workload

READY = {"readinessProbe": {"httpGet": {"port": 80}}}
POD_NAME = {"name": "KAFKA_GROUP_INSTANCE_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def of(one: dict[str, Any], **given: Any) -> dict[str, Alternative]:
    plan = plan_of(one, **given)
    return {each.name: each for each in alternatives_to(plan, settings_of(plan))}


def settings_of(plan: Plan) -> Settings:
    return Settings(("", plan.settings))


def static(kind: str, **spec: Any) -> dict[str, Any]:
    return workload(kind, container={**READY, "env": [POD_NAME]}, **spec)


def test_a_deployment_of_dynamic_members() -> None:
    found = of(workload(container=READY))
    assert {name: dict(one.settings) for name, one in found.items()} == {
        "cooperative-sticky": {"partition.assignment.strategy": ["cooperative-sticky"]},
        "static-members": {
            "group.instance.id": "podname",
            "deployment": "statefulset",
            "max_surge": 0,
            "max_unavailable": 1,
        },
        "kip-848": {"group.protocol": "consumer"},
        "more-surge": {"max_surge": "100%", "max_unavailable": 0},
    }
    assert [one.effort for one in found.values()] == [2, 4, 3, 1]
    assert found["more-surge"].price.startswith("room for 4 more pods during the rollout")
    assert found["static-members"].price == (
        "pods are replaced one at a time, without surge; nobody takes the partitions of a dead pod before "
        "session.timeout.ms is over (45.0 s)"
    )


def test_a_deployment_that_surges_by_all_pods_has_no_more() -> None:
    assert "more-surge" not in of(workload(container=READY), max_surge="100%", max_unavailable=0)
    assert "more-surge" in of(workload(container=READY), max_surge="100%", max_unavailable=1)
    assert "more-surge" in of(workload(container=READY), max_surge=3, max_unavailable=0)


def test_static_members_of_a_deployment_may_become_dynamic_or_a_stateful_set() -> None:
    found = of(static("Deployment"))
    assert dict(found["dynamic-members"].settings) == {"group.instance.id": "none"}
    assert found["static-members"].effort == 4


def test_pods_that_share_an_id_get_none_in_a_deployment_and_their_own_in_a_stateful_set() -> None:
    """Ids made of the names of a Deployment's pods leave the partitions of each old pod without an owner."""
    shared = {**READY, "env": [{"name": "KAFKA_GROUP_INSTANCE_ID", "value": "orders-1"}]}
    [dynamic] = of(workload(container=shared)).values()
    assert (dynamic.name, dynamic.effort) == ("dynamic-members", 0)
    assert dict(dynamic.settings) == {"member_settings": [], "group.instance.id": "none"}
    [own] = of(workload("StatefulSet", container=shared)).values()
    assert own.name == "ids-of-their-own"
    assert dict(own.settings) == {"member_settings": [], "group.instance.id": "podname"}
    assert own.price.endswith("before session.timeout.ms is over (45.0 s)")


def test_a_stateful_set_needs_only_the_id() -> None:
    found = of(workload("StatefulSet", container=READY, replicas=8))
    assert dict(found["static-members"].settings) == {"group.instance.id": "podname"}
    assert found["static-members"].effort == 1
    assert found["static-members"].price.startswith("nobody takes the partitions of a dead pod")
    assert dict(found["several-at-once"].settings) == {"max_unavailable": "25%"}
    assert found["several-at-once"].price.startswith("up to 2 pods are missing")


@pytest.mark.parametrize(("replicas", "missing"), [(4, 1), (8, 2), (16, 4)])
def test_a_stateful_set_that_replaces_as_many_at_once_already(replicas: int, missing: int) -> None:
    assert "several-at-once" not in of(
        workload("StatefulSet", container=READY, replicas=replicas), max_unavailable=missing
    )


@pytest.mark.parametrize(
    ("start_ms", "session_ms"),
    [
        (
            {"exactly": 33_000},
            None,
        ),  # 3 s between heartbeats, 33 s away, a quarter more: 45 s, those of the default
        ({"exactly": 33_001}, 50_000),
        ({"p50": 25_000, "p95": 40_000}, 70_000),  # 47.5 s away at the most
        (3_600_000, 1_800_000),  # the broker allows no more
    ],
)
def test_a_session_that_outlasts_a_restart(start_ms: Any, session_ms: int | None) -> None:
    found = of(static("StatefulSet"), start_ms=start_ms)
    wanted = found["longer-session"].settings["session.timeout.ms"] if "longer-session" in found else None
    assert wanted == session_ms


def test_a_session_is_no_longer_than_librdkafka_takes() -> None:
    """rd_kafka_new: max.poll.interval.ms must be >= session.timeout.ms."""
    client: dict[str, Any] = {"client_profile": "librdkafka", "max.poll.interval.ms": 60_000}
    found = of(static("StatefulSet"), start_ms=90_000, **client)
    assert found["longer-session"].settings["session.timeout.ms"] == 60_000


@pytest.mark.parametrize(
    ("start_ms", "in_use_ms", "wanted_ms"),
    [
        (41_000, 45_000, 60_000),
        (60_000, 45_000, 60_000),  # a longer one is refused: group.consumer.max.session.timeout.ms
        (60_000, 70_000, None),  # the broker's bound is not known, but it is no shorter
    ],
)
def test_the_session_of_a_consumer_group_is_the_brokers(
    start_ms: int, in_use_ms: int, wanted_ms: int | None
) -> None:
    session = "group.consumer.session.timeout.ms"
    settings = {"group.protocol": "consumer", session: in_use_ms}
    found = of(workload("StatefulSet", container=READY), start_ms=start_ms, **settings)
    assert list(found) == ["static-members"]
    changed = {} if wanted_ms is None else {session: wanted_ms}
    assert dict(found["static-members"].settings) == {"group.instance.id": "podname", **changed}


def test_alternatives_that_the_client_has_not() -> None:
    assert list(of(workload(container=READY), client_profile="aiokafka")) == ["static-members", "more-surge"]
    franz = of(workload(container=READY), client_profile="franz-go")
    assert list(franz) == ["static-members", "more-surge"], "cooperative already, and no KIP-848"
    assert "kip-848" not in of(workload(container=READY), client_profile=["java", "kafka-python"])


@pytest.mark.parametrize(
    ("given", "mixed", "price"),
    [
        ({}, False, "one deployment to get there"),
        ({"partition.assignment.strategy": ["range"]}, True, "two deployments to get there"),
        # half of the way, on which the group still rebalances eagerly
        (
            {"partition.assignment.strategy": ["cooperative-sticky", "range"]},
            False,
            "one deployment to get there",
        ),
        ({"client_profile": "librdkafka"}, False, "all consumers stop once for it"),
    ],
)
def test_the_way_to_cooperative(given: dict[str, Any], mixed: bool, price: str) -> None:
    plan = plan_of(workload(container=READY), **given)
    assert is_mixed_first(settings_of(plan)) == mixed
    found = of(workload(container=READY), **given)
    assert found["cooperative-sticky"].price.startswith(price)


def test_an_assignor_of_the_users_own_is_not_replaced() -> None:
    own = {"partition.assignment.strategy": ["mine:Assignor"]}
    assert "cooperative-sticky" not in of(workload(container=READY), **own)


def test_pods_without_a_probe_may_get_one() -> None:
    found = of(workload())
    assert dict(found["readiness-probe"].settings) == {
        "ready_when": "polls",
        "ready_ms": {"uniform": [0, 10_000]},
    }


def test_all_alternatives_to_a_recreated_deployment_roll() -> None:
    plan = plan_of(workload(strategy={"type": "Recreate"}))
    found = list(alternatives_to(plan, settings_of(plan)))
    assert [one.name for one in found] == [
        "cooperative-sticky",
        "static-members",
        "kip-848",
        "rolling-update",
        "readiness-probe",
    ]
    scenarios = scenarios_of(plan, found)
    assert {step: list(one["variants"]) for step, one in scenarios.items()} == {
        "recreate": ["as-it-is"],
        "rolling-restart": [one.name for one in found],
    }
    assert all(one["figures_from"] == "warm_up_ms" for one in scenarios.values())
    assert [one["steps"][1]["do"] for one in scenarios.values()] == ["recreate", "rolling-restart"]


def test_alternatives_that_roll_as_the_rollout_does_are_variants_of_it() -> None:
    plan = plan_of(workload(container=READY))
    [scenario] = scenarios_of(plan, list(alternatives_to(plan, settings_of(plan)))).values()
    assert scenario["variants"]["as-it-is"] == {}
    assert scenario["variants"]["kip-848"] == {"group.protocol": "consumer"}


def test_a_share_group_has_no_static_members_and_no_assignor() -> None:
    share = workload(container={**READY, "env": [{"name": "KAFKA_GROUP_PROTOCOL", "value": "share"}]})
    assert [*of(share)] == ["more-surge"]
    assert not any("partition.assignment.strategy" in sentence for sentence in plan_of(share).assumed)
