"""Which version of a request carries which field (KIP-345, KIP-559, KIP-800), version by version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupstorm.clients import requests
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import JoinGroupResponse

ME = Generation(3, "m", "range")
JOINED = JoinGroupResponse(Error.NONE, 3, "m", "m", "consumer", "range")


def config(**versions: int) -> ConsumerConfig:
    plain = ConsumerConfig("g", "c", ("t",), group_instance_id="i")
    return replace(plain, profile=replace(plain.profile, **versions))  # type: ignore[arg-type]


@pytest.mark.parametrize(("version", "instance"), [(2, None), (3, "i"), (4, "i")])
def test_heartbeats_name_the_instance_since_version_3(version: int, instance: str | None) -> None:
    asked = requests.heartbeat(config(heartbeat_version=version), ME)
    assert (asked.group_instance_id, asked.generation, asked.member_id) == (instance, 3, "m")
    assert requests.heartbeat_instance(config(heartbeat_version=version)) == instance


@pytest.mark.parametrize(
    ("version", "instance", "kind", "protocol"),
    [(2, None, None, None), (3, "i", None, None), (4, "i", None, None), (5, "i", "consumer", "range")],
)
def test_sync_group_names_the_instance_since_3_and_the_protocol_since_5(
    version: int, instance: str | None, kind: str | None, protocol: str | None
) -> None:
    asked = requests.sync_group(config(sync_group_version=version), JOINED, ())
    assert (asked.group_instance_id, asked.protocol_type, asked.protocol) == (instance, kind, protocol)


@pytest.mark.parametrize(("version", "instance"), [(6, None), (7, "i"), (8, "i")])
def test_commits_name_the_instance_since_version_7(version: int, instance: str | None) -> None:
    asked = requests.offset_commit(config(offset_commit_version=version), ME, {})
    assert asked.group_instance_id == instance


@pytest.mark.parametrize(("version", "reason"), [(7, ""), (8, "why"), (9, "why")])
def test_join_group_says_why_since_version_8(version: int, reason: str) -> None:
    asked = requests.join_group(config(join_group_version=version), ME, (), "why")
    assert (asked.reason, asked.group_instance_id, asked.rebalance_timeout_ms) == (reason, "i", 300_000)


def test_committed_offsets_are_asked_for_with_stable_ones_required() -> None:
    asked = requests.offset_fetch(config(), {"t": (0, 1)})
    assert (asked.version, asked.require_stable, asked.topics) == (9, True, {"t": (0, 1)})


@pytest.mark.parametrize(
    ("protocol", "epoch", "member_id", "sent_epoch"),
    [
        (GroupProtocol.CONSUMER, 2, "m", 2),
        (GroupProtocol.CONSUMER, 1, "m", 1),
        (GroupProtocol.CONSUMER, 0, None, -1),
        (GroupProtocol.CLASSIC, 2, None, -1),
    ],
)
def test_only_a_member_of_the_consumer_protocol_names_itself_to_ask_for_offsets(
    protocol: GroupProtocol, epoch: int, member_id: str | None, sent_epoch: int
) -> None:
    settings = ConsumerConfig("g", "c", ("t",), group_protocol=protocol)
    asked = requests.offset_fetch(settings, {"t": (0,)}, Generation(epoch, "m"))
    assert (asked.group, asked.member_id, asked.member_epoch) == ("g", member_id, sent_epoch)
