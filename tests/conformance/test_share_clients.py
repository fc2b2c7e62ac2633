"""Real share consumers (KIP-932) of several libraries in one group, beside the project's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from groupstorm.clients.wire.admin import configure_group
from tests.client_libraries.producers import produce_with_confluent
from tests.conformance.backends import Backend, with_cluster
from tests.conformance.share_members import (
    JAVA,
    JAVA_44,
    OURS,
    SHARE_LIBRARIES,
    ShareLibrary,
    ShareMember,
    values,
)
from tests.waiting import wait_until


@pytest.fixture
def backend(shares: Backend) -> Backend:
    pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka (extra `kafka`)")
    return shares


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.slow if name in (JAVA, JAVA_44) else (), id=name)
        for name in SHARE_LIBRARIES
    ]
)
def library(request: pytest.FixtureRequest) -> ShareLibrary:
    """Each library in turn."""
    chosen = SHARE_LIBRARIES[request.param]
    chosen.check()
    return chosen


class ShareGroup:
    """A group and a topic of a test's own; the group begins at the earliest record."""

    def __init__(self, backend: Backend, options: Mapping[str, str] = {}) -> None:
        self._address = backend.address
        self._topic = backend.topic(2)
        self._name = backend.group("workers")
        own = {"share.auto.offset.reset": "earliest", **options}
        backend.run(with_cluster(backend.broker, lambda cluster: configure_group(cluster, self._name, own)))

    @contextmanager
    def member(self, library: ShareLibrary) -> Iterator[ShareMember]:
        running = library.member(self._address, self._topic, self._name)
        try:
            yield running
        finally:
            running.stop()

    def warms_up(self, members: Sequence[ShareMember]) -> bool:
        """Produce into both partitions; whether every member has read something."""
        self.produce(*["warm"] * 10)
        return all(member.delivered for member in members)

    def produce(self, *records: str) -> None:
        numbered = [(number % 2, value) for number, value in enumerate(records)]
        produce_with_confluent(self._address, numbered, self._topic)


def test_two_libraries_share_the_records(backend: Backend, library: ShareLibrary) -> None:
    group, wanted = ShareGroup(backend), [str(number) for number in range(60)]
    with group.member(library) as first, group.member(SHARE_LIBRARIES[OURS]) as second:
        members = (first, second)
        wait_until(lambda: group.warms_up(members), "both have read something")
        group.produce(*wanted)
        wait_until(lambda: set(wanted) <= set(values(members)), "every record read")
    assert Counter(one for one in values(members) if one != "warm") == Counter(wanted)
    assert {one.deliveries for member in members for one in member.delivered} == {1}


def test_each_record_comes_as_often_as_its_acknowledgements_say(
    backend: Backend, library: ShareLibrary
) -> None:
    """One that is always released is delivered twice: as often as the group allows."""
    group = ShareGroup(backend, {"share.delivery.count.limit": "2"})
    with group.member(library) as member:
        group.produce("accept", "release 1", "reject", "release 2")
        wait_until(lambda: len(member.delivered) >= 6, "the released ones again")
        group.produce("last", "last")
        wait_until(lambda: values([member]).count("last") == 2, "the last ones")
    found = Counter((one.value, one.deliveries) for one in member.delivered if one.value != "last")
    again = [(f"release {number}", count) for number in (1, 2) for count in (1, 2)]
    assert found == Counter([("accept", 1), ("reject", 1), *again])


def test_a_members_records_go_to_another_library_when_it_closes(
    backend: Backend, library: ShareLibrary
) -> None:
    """Records that it has acknowledged do not come again, and nothing is lost."""
    group = ShareGroup(backend)
    with group.member(library) as first:
        group.produce(*(f"before-{number}" for number in range(20)))
        wait_until(lambda: len(first.delivered) >= 20, "its records")
    with group.member(SHARE_LIBRARIES[OURS]) as second:
        group.produce("after", "after")
        wait_until(lambda: len(second.delivered) >= 2, "the records behind them")
    assert values([second]) == ["after", "after"]
