"""Kafka's own share consumer and kafka-share-groups on every broker: as on Kafka 4.4.0."""

from __future__ import annotations

import pytest

from tests.client_libraries.conftest import checked
from tests.client_libraries.groups import stopping
from tests.client_libraries.members import Member
from tests.client_libraries.producers import produce_with_confluent
from tests.conformance import share_tool
from tests.conformance.backends import Backend
from tests.conformance.members import JavaShareMember
from tests.conformance.programs.building import ProgramUnavailable, share_member
from tests.conformance.tool import read_file
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def test_what_kafka_share_groups_prints(shares: Backend) -> None:
    checked("confluent-kafka")
    try:
        said = share_tool.run(shares)
    except ProgramUnavailable as unavailable:
        pytest.skip(str(unavailable))
    for one, kafkas in zip(said, read_file(share_tool.FILE), strict=True):
        assert one == kafkas


def test_a_record_is_delivered_until_somebody_takes_it(shares: Backend) -> None:
    """One that is always released is delivered five times, a rejected one once."""
    checked("confluent-kafka")
    try:
        share_member()
    except ProgramUnavailable as unavailable:
        pytest.skip(str(unavailable))
    topic, group = shares.topic(1), shares.group("poison")
    two: list[Member] = [JavaShareMember(shares.address, topics=(topic,), group=group) for _ in range(2)]
    with stopping(two) as members:

        def deliveries() -> list[tuple[int, int]]:
            return sorted(
                (offset, count)
                for member in members
                if isinstance(member, JavaShareMember)
                for _, offset, count in member.deliveries
            )

        def begun() -> bool:
            produce_with_confluent(shares.address, [(0, "accept")], topic)
            return bool(deliveries())

        wait_until(begun, "they get what comes")
        produce_with_confluent(shares.address, [(0, "release"), (0, "reject"), (0, "accept")], topic)
        wait_until(lambda: 5 in [count for _, count in deliveries()], "the last delivery")
        first = next(offset for offset, count in deliveries() if count == 5)
        wait_until(lambda: (first + 2, 1) in deliveries(), "the others")
    last = [one for one in deliveries() if one[0] >= first]
    assert last == [*((first, count) for count in range(1, 6)), (first + 1, 1), (first + 2, 1)]
