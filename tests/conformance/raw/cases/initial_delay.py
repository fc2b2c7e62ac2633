"""group.initial.rebalance.delay.ms: how long an empty group waits for more members (KIP-134)."""

from __future__ import annotations

from typing import Any

from groupstorm.coordinator.errors import Error
from tests.conformance.backends import DELAYED, INITIAL_DELAY_MS
from tests.conformance.raw.openings import group_of_one, joined, request_member_id, send_join
from tests.conformance.raw.requests import heartbeat, join, leave
from tests.conformance.raw.steps import (
    OK,
    Case,
    Parked,
    Receive,
    Send,
    SendHeartbeats,
    Timed,
    Until,
    ask,
    late,
)

_HALF = INITIAL_DELAY_MS // 2


def _case(name: str, about: str, *steps: Any) -> Case:
    return Case(name, about, steps, DELAYED)


CASES = (
    _case(
        "initial-delay-alone",
        "the first member waits for the delay",
        send_join("a", mark="joined"),
        Until("PreparingRebalance", 1),
        Parked("a"),
        late("a", joined(1), "the first member waits", "joined", INITIAL_DELAY_MS),
    ),
    _case(
        "initial-delay-is-extended",
        "each newcomer during the delay adds another delay",
        send_join("a", mark="joined"),
        Until("PreparingRebalance", 1),
        SendHeartbeats((), _HALF),
        send_join("b"),
        late(
            "a", joined(1, members=[{}, {}]), "another member joins meanwhile", "joined", 2 * INITIAL_DELAY_MS
        ),
        Receive("b", joined(1)),
    ),
    _case(
        "initial-delay-is-bounded",
        "by the rebalance timeout, however many join",
        send_join("a", mark="joined", rebalance=INITIAL_DELAY_MS + _HALF),
        Until("PreparingRebalance", 1),
        SendHeartbeats((), _HALF),
        send_join("b", rebalance=INITIAL_DELAY_MS + _HALF),
        Until("PreparingRebalance", 2),
        late(
            "a",
            joined(1, members=[{}, {}]),
            "the delay ends with the rebalance timeout",
            "joined",
            INITIAL_DELAY_MS + _HALF,
        ),
        Receive("b", joined(1)),
    ),
    _case(
        "initial-delay-and-joining-again",
        "a member that joins again is not a newcomer: no delay is added",
        send_join("a", mark="joined"),
        Until("PreparingRebalance", 1),
        SendHeartbeats((), _HALF),
        Send("a", join(), over="second"),
        Receive(
            "a",
            joined(1, members=[{}]),
            over="second",
            timed=Timed("the same member joins again meanwhile", "joined", INITIAL_DELAY_MS),
        ),
    ),
    _case(
        "initial-delay-and-a-leave",
        "a leave does not end it early",
        send_join("a", mark="joined"),
        send_join("b"),
        Until("PreparingRebalance", 2),
        ask("admin", leave(("$b", None)), OK),
        Receive("b", {"error_code": "UNKNOWN_MEMBER_ID"}),
        Parked("a"),
        late("a", joined(1, members=[{}]), "a newcomer has left again", "joined", 2 * INITIAL_DELAY_MS),
    ),
    _case(
        "initial-delay-and-a-pending-member",
        "a pending member expires and all others have joined: the delay ends (in Scala it does not)",
        ask("p", join(member="", session=_HALF), Error.MEMBER_ID_REQUIRED, mark="given"),
        send_join("a"),
        late("a", joined(1), "a pending member is forgotten during the delay", "given", _HALF),
    ),
    _case(
        "initial-delay-is-for-empty-groups",
        "a group that has members does not wait",
        group_of_one(),
        request_member_id("b"),
        Send("b", join(), mark="joined"),
        Until("PreparingRebalance", 2),
        ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
        Send("a", join(), mark="all"),
        late("b", joined(2), "all have joined a group that was not empty", "all", 0),
        Receive("a", {"generation_id": 2}),
    ),
)
