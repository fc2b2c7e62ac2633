"""The choice of the protocol, refused members, and the two rounds of cooperative members (KIP-429)."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.openings import group_of_one, request_member_id, second_round, send_join
from tests.conformance.raw.requests import Protocols, Subscribed, heartbeat, join, sync
from tests.conformance.raw.steps import OK, Case, Receive, Send, SendHeartbeats, Until, ask


def supports(*names: str) -> Protocols:
    return tuple((name, Subscribed()) for name in names)


_COOPERATIVE = "cooperative-sticky"


def _owning(*partitions: int) -> Protocols:
    return ((_COOPERATIVE, Subscribed(owned=partitions)),)


def _vote(name: str, about: str, votes: dict[str, tuple[str, ...]], elected: str) -> Case:
    """The first voter is there already; the others come in one round."""
    first, *others = votes
    return Case(
        name,
        about,
        (
            group_of_one(first, protocols=supports(*votes[first])),
            [send_join(who, protocols=supports(*votes[who])) for who in others],
            Until("PreparingRebalance", len(votes)),
            Send(first, join(protocols=supports(*votes[first]))),
            [Receive(who, {"error_code": "NONE", "protocol_name": elected}) for who in votes],
        ),
    )


VOTES = (
    _vote(
        "vote-of-the-majority",
        "each member votes for the first of its protocols that all support",
        {"a": ("range", "sticky"), "b": ("sticky", "range"), "c": ("sticky", "range")},
        "sticky",
    ),
    _vote(
        "vote-among-those-that-all-support",
        "a protocol that a member lacks is not a candidate, even if others prefer it",
        {"a": ("sticky", "range"), "b": ("sticky", "range"), "c": ("range",)},
        "range",
    ),
    _vote(
        "vote-of-equals-range-sticky",
        "the order of a Java hash table of the names decides",
        {"a": ("range", "sticky"), "b": ("sticky", "range")},
        "sticky",
    ),
    _vote(
        "vote-of-equals-roundrobin-range",
        "the order of a Java hash table of the names decides",
        {"a": ("roundrobin", "range"), "b": ("range", "roundrobin")},
        "range",
    ),
    Case(
        "nothing-in-common",
        "INCONSISTENT_GROUP_PROTOCOL, also for another type; the group is undisturbed",
        (
            group_of_one(protocols=supports("range", "sticky")),
            ask("b", join(protocols=supports("roundrobin"), member=""), Error.INCONSISTENT_GROUP_PROTOCOL),
            ask("b", join(protocol_type="connect", member=""), Error.INCONSISTENT_GROUP_PROTOCOL),
            ask("a", join(protocols=supports("roundrobin")), Error.INCONSISTENT_GROUP_PROTOCOL),
            ask("a", heartbeat(), OK),
            request_member_id("b", protocols=supports("sticky")),
        ),
    ),
    Case(
        "empty-group-takes-any-type",
        "protocol type and protocols are those of the first member",
        (
            group_of_one(protocol_type="connect", protocols=(("default", b"opaque"),)),
            ask("a", join(protocol_type="consumer"), Error.INCONSISTENT_GROUP_PROTOCOL),
        ),
    ),
    Case(
        "eager-to-cooperative",
        "the first of the two restarts of KIP-429: a member with both protocols lists the eager one last",
        (
            group_of_one(protocols=supports("range")),
            send_join("b", protocols=supports(_COOPERATIVE, "range")),
            Until("PreparingRebalance", 2),
            Send("a", join(protocols=supports(_COOPERATIVE, "range"))),
            Receive("a", {"error_code": "NONE", "generation_id": 2, "protocol_name": _COOPERATIVE}),
            Receive("b", {"error_code": "NONE", "generation_id": 2, "protocol_name": _COOPERATIVE}),
        ),
    ),
)

COOPERATIVE = (
    Case(
        "cooperative-rounds",
        "a round that revokes and a round that assigns: the member that revoked joins again by itself",
        (
            group_of_one(protocols=_owning()),
            second_round("b", protocols=_owning(), own={"protocols": _owning(0, 1, 2)}),
            Send("b", sync(protocol=_COOPERATIVE)),
            ask("a", sync(protocol=_COOPERATIVE, assignments={"a": b"0 1", "b": b""}), {"assignment": "0 1"}),
            Receive("b", {"error_code": "NONE", "assignment": ""}),
            Send("a", join(protocols=_owning(0, 1))),
            Until("PreparingRebalance", 2),
            ask("b", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Send("b", join(protocols=_owning())),
            Receive("a", {"error_code": "NONE", "generation_id": 3, "members": [{}, {}]}),
            Receive("b", {"error_code": "NONE", "generation_id": 3}),
            Send("b", sync(protocol=_COOPERATIVE)),
            ask(
                "a", sync(protocol=_COOPERATIVE, assignments={"a": b"0 1", "b": b"2"}), {"assignment": "0 1"}
            ),
            Receive("b", {"assignment": "2"}),
            ask("a", heartbeat(), OK),
        ),
    ),
    Case(
        "cooperative-member-stays-during-a-round",
        "heartbeats in PreparingRebalance say so, and keep the session: consumption goes on until the join",
        (
            group_of_one(protocols=_owning(), session=700),
            second_round("b", protocols=_owning(), own={"session": 700}),
            Send("b", sync(protocol=_COOPERATIVE)),
            ask("a", sync(protocol=_COOPERATIVE, assignments={"a": b"0", "b": b"1"}), OK),
            Receive("b", {"assignment": "1"}),
            Send("b", join(protocols=_owning(1))),
            SendHeartbeats(("a",), 1_000),
            ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Send("a", join(protocols=_owning(0), session=700)),
            Receive("a", {"error_code": "NONE", "generation_id": 3, "members": [{}, {}]}),
            Receive("b", {"error_code": "NONE", "generation_id": 3}),
        ),
    ),
)

CASES = (*VOTES, *COOPERATIVE)
