"""Real clients with the newer protocol (KIP-848): failing heartbeats, a coordinator that restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import groupstorm
from groupstorm.clients.brokers.jvm import held_ports
from groupstorm.testing import EmulatedBroker, GroupView
from tests.broker.test_serve import serving
from tests.client_libraries.conftest import PARTITIONS
from tests.client_libraries.groups import is_shared_out, records, stopping
from tests.client_libraries.members import CONSUMER, GROUP, TOPIC, Member
from tests.client_libraries.producers import produce_with_confluent
from tests.conformance.members import CONFLUENT, FRANZ_GO, JAVA, LIBRARIES, Library
from tests.waiting import wait_until

SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
}
HEARTBEAT = "ConsumerGroupHeartbeat"


@pytest.fixture(params=[CONFLUENT, JAVA, FRANZ_GO])
def consumers(request: pytest.FixtureRequest) -> Library:
    """Each library that has the protocol in turn."""
    LIBRARIES[CONFLUENT].check()  # the producer
    library = LIBRARIES[request.param]
    library.check()
    return library


@pytest.fixture
def broker() -> Iterator[EmulatedBroker]:
    with groupstorm.broker({TOPIC: PARTITIONS}, SETTINGS) as running:
        yield running


def start(library: Library, address: str) -> Member:
    return library.member(address, protocol=CONSUMER)


@pytest.mark.slow
def test_heartbeats_that_fail_are_repeated(consumers: Library, broker: EmulatedBroker) -> None:
    """Errors that pass, and lost answers: no member loses anything, the group epoch stays."""
    group = broker.group(GROUP)
    address = broker.bootstrap_servers
    with stopping([start(consumers, address), start(consumers, address)]) as members:
        group.wait_stable(2, partitions=PARTITIONS)
        wait_until(lambda: is_shared_out(members), "three partitions each")
        epoch, told = group.generation, [list(member.notes.callbacks) for member in members]
        for error in ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"):
            broker.fail(HEARTBEAT, error, count=2, group=GROUP).wait_used_up()
        broker.disconnect(HEARTBEAT, count=2, group=GROUP).wait_used_up()
        broker.delay(HEARTBEAT, 700, group=GROUP).wait_used_up()
        broker.move_coordinator(GROUP)
        broker.delay(HEARTBEAT, 0, count=4, group=GROUP).wait_used_up()  # they go on
        assert (group.settled, group.generation) == (True, epoch)
        assert [member.notes.callbacks for member in members] == told


@pytest.mark.slow
@pytest.mark.parametrize("error", ["FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"])
def test_a_fenced_member_joins_again(consumers: Library, broker: EmulatedBroker, error: str) -> None:
    group = broker.group(GROUP)
    with stopping([start(consumers, broker.bootstrap_servers)]) as members:
        group.wait_stable(1, partitions=PARTITIONS)
        (member,) = members
        wait_until(lambda: len(member.owned) == PARTITIONS, "it owns everything")
        told = len(member.notes.callbacks)
        broker.fail(HEARTBEAT, error, group=GROUP).wait_used_up()
        wait_until(
            lambda: [what for what, of in member.notes.callbacks[told:] if of] == ["revoked", "assigned"],
            "it loses its partitions and has them again",
        )
        group.wait_stable(1, partitions=PARTITIONS)


@pytest.mark.slow
def test_an_expired_member_joins_again(consumers: Library, broker: EmulatedBroker) -> None:
    """The others take over what it had; then all share again."""
    group = broker.group(GROUP)
    address = broker.bootstrap_servers
    with stopping([start(consumers, address), start(consumers, address)]) as members:
        group.wait_stable(2, partitions=PARTITIONS)
        wait_until(lambda: is_shared_out(members), "three partitions each")
        produce_with_confluent(
            address, records(0, 60), TOPIC
        )  # Java's poll() fails if it still looks offsets up
        wait_until(lambda: sum(len(member.values) for member in members) == 60, "all records read")
        before = group.generation or 0
        broker.expire_member(GROUP, group.members[0].member_id)

        def is_back(view: GroupView) -> bool:
            beyond = (view.generation or 0) >= before + 2  # it went, and it joined
            return beyond and view.state == "Stable" and len(view.members) == 2

        group.wait_until(is_back, "two members again")
        wait_until(lambda: is_shared_out(members), "three partitions each again")


@pytest.mark.slow
def test_members_go_on_when_their_coordinator_is_killed(consumers: Library, tmp_path: Path) -> None:
    """The broker starts again from its data: the group has its members, epochs and partitions."""
    options = ["--data", str(tmp_path / "data")]
    for name, value in SETTINGS.items():
        options += ["--set", f"{name}={value}"]
    members: list[Member] = []
    with held_ports(1) as (port,), stopping(members):
        options += ["--port", str(port)]
        with serving(*options, "--topic", f"{TOPIC}:{PARTITIONS}") as (process, _):
            members += [start(consumers, f"127.0.0.1:{port}") for _ in range(2)]
            wait_until(lambda: is_shared_out(members), "three partitions each")
            owned = [member.owned for member in members]
            process.kill()
        with serving(*options, "--control", "0"):
            members.append(start(consumers, f"127.0.0.1:{port}"))
            wait_until(lambda: is_shared_out(members), "two partitions each")
            for member, before in zip(members, owned, strict=False):
                assert member.owned < before, "it kept two of the three that it had"
            while members:
                members.pop().stop()
