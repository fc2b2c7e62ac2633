"""group.initial.rebalance.delay.ms: how long an empty group waits for more members (KIP-134)."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.backends import DELAYED, INITIAL_DELAY_MS
from tests.conformance.raw.lives import alone, enter, knock
from tests.conformance.raw.requests import heartbeat, join, leave
from tests.conformance.raw.steps import OK, Beat, Case, Hear, Parked, Send, Timed, Until, ask

_HALF = INITIAL_DELAY_MS // 2

CASES = (
    Case(
        "initial-delay-alone",
        "the first member waits for the delay",
        (
            enter("a", mark="joined"),
            Until("PreparingRebalance", 1),
            Parked("a"),
            Hear(
                "a",
                {"error_code": "NONE", "generation_id": 1},
                timed=Timed("the first member waits", "joined", INITIAL_DELAY_MS),
            ),
        ),
        DELAYED,
    ),
    Case(
        "initial-delay-is-extended",
        "whoever joins meanwhile adds another delay",
        (
            enter("a", mark="joined"),
            Until("PreparingRebalance", 1),
            Beat((), _HALF),
            enter("b"),
            Hear(
                "a",
                {"error_code": "NONE", "generation_id": 1, "members": [{}, {}]},
                timed=Timed("another member joins meanwhile", "joined", 2 * INITIAL_DELAY_MS),
            ),
            Hear("b", {"error_code": "NONE", "generation_id": 1}),
        ),
        DELAYED,
    ),
    Case(
        "initial-delay-is-bounded",
        "by the rebalance timeout, however many join",
        (
            enter("a", mark="joined", rebalance_ms=INITIAL_DELAY_MS + _HALF),
            Until("PreparingRebalance", 1),
            Beat((), _HALF),
            enter("b", rebalance_ms=INITIAL_DELAY_MS + _HALF),
            Until("PreparingRebalance", 2),
            Hear(
                "a",
                {"error_code": "NONE", "generation_id": 1, "members": [{}, {}]},
                timed=Timed("the delay ends with the rebalance timeout", "joined", INITIAL_DELAY_MS + _HALF),
            ),
            Hear("b", {"error_code": "NONE", "generation_id": 1}),
        ),
        DELAYED,
    ),
    Case(
        "initial-delay-and-joining-again",
        "a member that joins again is no newcomer: nothing is added",
        (
            enter("a", mark="joined"),
            Until("PreparingRebalance", 1),
            Beat((), _HALF),
            Send("a", join(), over="second"),
            Hear(
                "a",
                {"error_code": "NONE", "generation_id": 1, "members": [{}]},
                over="second",
                timed=Timed("the same member joins again meanwhile", "joined", INITIAL_DELAY_MS),
            ),
        ),
        DELAYED,
    ),
    Case(
        "initial-delay-and-a-leave",
        "a leave does not end it early",
        (
            enter("a", mark="joined"),
            enter("b"),
            Until("PreparingRebalance", 2),
            ask("admin", leave(("{b}", None)), OK),
            Hear("b", {"error_code": "UNKNOWN_MEMBER_ID"}),
            Parked("a"),
            Hear(
                "a",
                {"error_code": "NONE", "generation_id": 1, "members": [{}]},
                timed=Timed("a newcomer has left again", "joined", 2 * INITIAL_DELAY_MS),
            ),
        ),
        DELAYED,
    ),
    Case(
        "initial-delay-and-a-pending-member",
        "a pending member whose time is over ends it, if all others have joined (the Scala coordinator: not)",
        (
            ask("p", join(member_id="", session_ms=_HALF), Error.MEMBER_ID_REQUIRED, mark="given"),
            enter("a"),
            Hear(
                "a",
                {"error_code": "NONE", "generation_id": 1},
                timed=Timed("a pending member is forgotten during the delay", "given", _HALF),
            ),
        ),
        DELAYED,
    ),
    Case(
        "initial-delay-is-for-empty-groups",
        "a group that has members does not wait",
        (
            alone(),
            knock("b"),
            Send("b", join(), mark="joined"),
            Until("PreparingRebalance", 2),
            ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            Send("a", join(), mark="all"),
            Hear(
                "b",
                {"error_code": "NONE", "generation_id": 2},
                timed=Timed("all have joined a group that was not empty", "all", 0),
            ),
            Hear("a", {"generation_id": 2}),
        ),
        DELAYED,
    ),
)
