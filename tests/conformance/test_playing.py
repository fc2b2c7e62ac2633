"""A case fails where a broker does otherwise: the suite's own machinery, on the emulator."""

from __future__ import annotations

import pytest

from groupstorm.clients.brokers import EMULATOR
from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.wire.cluster import METADATA, ClusterClient
from groupstorm.clients.wire.connection import ClientApi
from groupstorm.coordinator.errors import Error
from tests.conformance.backends import ADDRESS, ADDRESS_VARIABLE, QUICK, Backend, Backends, with_cluster
from tests.conformance.raw.openings import group_of_one, send_join
from tests.conformance.raw.playing import Played
from tests.conformance.raw.requests import heartbeat, join
from tests.conformance.raw.running import play
from tests.conformance.raw.steps import OK, Case, Parked, Send, SendHeartbeats, Steps, ask


def _played(backends: Backends, *steps: Steps) -> Played:
    return play(backends, EMULATOR, [Case("case", "about", steps)])["case"]


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (ask("a", join(member="nobody"), OK), "error_code is 'UNKNOWN_MEMBER_ID', expected 'NONE'"),
        (ask("a", join(version=3), Error.MEMBER_ID_REQUIRED), "error_code is 'NONE', expected"),
        ((group_of_one(), ask("a", heartbeat(), {"other": 1})), "answer has no other"),
        (
            (group_of_one(), Send("a", heartbeat()), SendHeartbeats((), 100), Parked("a")),
            "it was answered: {'who': 'a'",
        ),
        ((send_join("a"), Send("a", heartbeat())), "its last request is not answered yet"),
        (ask("a", heartbeat(version=9), OK), "Heartbeat is needed in one of the versions 9 to 9"),
    ],
)
def test_what_fails_a_case(backends: Backends, steps: Steps, why: str) -> None:
    played = _played(backends, steps)
    assert why in played.failure
    assert played.failure.startswith("step ")


def test_answers_are_plain_and_the_same_in_every_run(backends: Backends) -> None:
    steps = (group_of_one(), ask("a", heartbeat(), OK))
    first, second = _played(backends, steps), _played(backends, steps)
    assert not first.failure
    assert first.answers == second.answers
    joined = first.answers[1]
    assert (joined["who"], joined["member_id"], joined["leader"]) == ("a", "{a}", "{a}")
    assert "<topic>" in joined["members"][0]["metadata"]
    assert first.answers[-1] == {"who": "a", "answer": "HeartbeatResponse", "error_code": "NONE"}


def test_a_broker_with_other_settings_is_refused(backends: Backends, monkeypatch: pytest.MonkeyPatch) -> None:
    other = backends.get(EMULATOR, QUICK._replace(name="other", settings={"group.max.size": "7"}))
    monkeypatch.setenv(ADDRESS_VARIABLE, other.address)
    with pytest.raises(BrokerUnavailable, match=r"needs group.initial.rebalance.delay.ms=0, has 3000"):
        Backends().get(ADDRESS, QUICK)


def test_what_was_made_at_an_address_is_deleted_again(
    backends: Backends, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = backends.get(EMULATOR, QUICK)
    monkeypatch.setenv(ADDRESS_VARIABLE, emulator.address)
    guests = Backends()
    cases = [
        Case("with-member", "", (group_of_one(),)),
        Case("with-pending", "", ask("a", join(session=200), {})),
    ]
    played = play(guests, ADDRESS, cases)
    assert [result.failure for result in played.values()] == ["", ""]
    prefix = guests.get(ADDRESS, QUICK).broker.prefix
    assert prefix
    assert len(_names(emulator, prefix)) == 3, "two groups and a topic"
    guests.close()
    assert _names(emulator, prefix) == []


def _names(backend: Backend, prefix: str) -> list[str]:
    """Return the names of groups and topics that begin so."""

    async def ask_for_names(cluster: ClusterClient) -> list[str]:
        groups = await cluster.ask_any(
            ClientApi(16, "ListGroups", 0, 3), lambda types: types.make(types.root.__name__)
        )
        topics = await cluster.ask_any(
            METADATA,
            lambda types: types.make(
                types.root.__name__,
                topics=None,
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=False,
            ),
        )
        return [*(one.group_id for one in groups.groups), *(one.name for one in topics.topics)]

    names = backend.run(with_cluster(backend.broker, ask_for_names))
    return [name for name in names if name.startswith(prefix)]
