"""Sessions, rebalance timeouts, pending members and pending syncs: what ends them, and when."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.lives import alone, enter, knock, second_round, together
from tests.conformance.raw.requests import Subscribed, commit, describe, heartbeat, join, sync
from tests.conformance.raw.steps import (
    OK,
    Beat,
    Case,
    Hear,
    Parked,
    Send,
    Timed,
    Until,
    ask,
)

_SHORT = 1_000
_ROUND = 1_000
_CHANGED = (("range", Subscribed(owned=(0,))),)
_GONE = Error.UNKNOWN_MEMBER_ID

SESSIONS = (
    Case(
        "session-ends",
        "session.timeout.ms after the last answer that renewed it the member is removed",
        (
            alone(session_ms=_SHORT),
            ask("a", heartbeat(), OK, mark="last"),
            Until("Empty", 0, timed=Timed("a session ends after the last heartbeat", "last", _SHORT)),
            ask("a", heartbeat(), _GONE),
        ),
    ),
    Case(
        "session-begins-with-the-answer-of-a-join",
        "and not with the JoinGroup, which may have been parked for longer",
        (
            alone(),
            enter("b", session_ms=_SHORT),
            Until("PreparingRebalance", 2),
            Beat(("a",), 700),
            Send("a", join()),
            Hear("a", {"error_code": "NONE", "generation_id": 2}),
            Hear("b", {"error_code": "NONE", "generation_id": 2}, mark="last"),
            Until(
                "PreparingRebalance",
                1,
                beating=("a",),
                timed=Timed("a session ends after the answer of a join", "last", _SHORT),
            ),
        ),
    ),
    Case(
        "session-begins-with-the-assignment",
        "the answer of a parked SyncGroup renews the session",
        (
            alone(),
            second_round("b", own=None, session_ms=_SHORT),
            Send("b", sync()),
            Beat(("a",), 700),
            ask("a", sync(plan={"a": b"1", "b": b"2"}), OK),
            Hear("b", {"assignment": "2"}, mark="last"),
            Until(
                "PreparingRebalance",
                1,
                beating=("a",),
                timed=Timed("a session ends after the assignment", "last", _SHORT),
            ),
        ),
    ),
    Case(
        "commit-renews-the-session",
        "OffsetCommit of a member counts as a heartbeat",
        (
            alone(session_ms=_SHORT),
            Beat((), 500),
            ask("a", commit(), {}, mark="last"),
            Until("Empty", 0, timed=Timed("a session ends after the last commit", "last", _SHORT)),
        ),
    ),
    Case(
        "sync-in-stable-does-not-renew-the-session",
        "only an answer to a parked SyncGroup does",
        (
            alone(session_ms=_SHORT),
            ask("a", heartbeat(), OK, mark="last"),
            Beat((), 500),
            ask("a", sync(), {"assignment": "all"}),
            Until("Empty", 0, timed=Timed("a session ends, a sync in Stable between", "last", _SHORT)),
        ),
    ),
    Case(
        "parked-member-keeps-its-session",
        "while its JoinGroup is parked a member cannot send heartbeats, and need not",
        (
            together("b", session_ms=_SHORT),
            Send("a", join(session_ms=_SHORT), mark="parked"),
            Until("PreparingRebalance", 2, beating=("b",)),
            Beat(("b",), 2 * _SHORT, mark="beaten"),
            Parked("a"),
            Send("b", join(session_ms=_SHORT)),
            Hear("a", {"error_code": "NONE", "generation_id": 3, "members": [{}, {}]}),
            Hear("b", {"error_code": "NONE", "generation_id": 3}),
        ),
    ),
    Case(
        "parked-newcomer-keeps-its-session",
        "a newcomer, too, is not removed while its JoinGroup is parked, however short its session",
        (
            alone(),
            enter("b", session_ms=_SHORT),
            Until("PreparingRebalance", 2),
            Beat(("a",), 2 * _SHORT),
            Parked("b"),
            Send("a", join()),
            Hear("b", {"error_code": "NONE", "generation_id": 2}),
            Hear("a", {"error_code": "NONE", "generation_id": 2, "members": [{}, {}]}),
        ),
    ),
    Case(
        "silent-member-ends-the-round",
        "a session that ends in PreparingRebalance: the others are answered",
        (
            together("b", session_ms=_SHORT),
            ask("b", heartbeat(), OK, mark="last"),
            Send("a", join(session_ms=_SHORT)),
            Hear(
                "a",
                {"error_code": "NONE", "generation_id": 3, "leader": "{a}", "members": [{}]},
                timed=Timed("a parked join is answered when a session ends", "last", _SHORT),
            ),
        ),
    ),
    Case(
        "leader-is-silent",
        "the session of the leader ends: the others get a round and a leader",
        (
            together("b", own={"session_ms": _SHORT}),
            ask("a", heartbeat(), OK, mark="last"),
            Until(
                "PreparingRebalance",
                1,
                beating=("b",),
                timed=Timed("the leader's session ends", "last", _SHORT),
            ),
            Send("b", join()),
            Hear("b", {"error_code": "NONE", "generation_id": 3, "leader": "{b}"}),
            ask("a", heartbeat(), _GONE),
        ),
    ),
)

ROUNDS = (
    Case(
        "late-member-is-dropped",
        "who has not joined within the rebalance timeout is removed, though it sends heartbeats",
        (
            together("b", rebalance_ms=_ROUND),
            Send("a", join(rebalance_ms=_ROUND), mark="round"),
            Hear(
                "a",
                {"error_code": "NONE", "generation_id": 3, "members": [{}]},
                beating=("b",),
                timed=Timed("a round waits for a member that does not join", "round", _ROUND),
            ),
            ask("b", heartbeat(), _GONE),
        ),
    ),
    Case(
        "late-leader-is-replaced",
        "the leader is one of those who have joined (KAFKA-8220)",
        (
            together("b", rebalance_ms=_ROUND),
            Send(
                "b", join(rebalance_ms=_ROUND, protocols=(("range", Subscribed(owned=(0,))),)), mark="round"
            ),
            Hear(
                "b",
                {"error_code": "NONE", "generation_id": 3, "leader": "{b}", "members": [{}]},
                beating=("a",),
                timed=Timed("a round waits for a leader that does not join", "round", _ROUND),
            ),
            ask("a", heartbeat(), _GONE),
        ),
    ),
    Case(
        "round-has-the-longest-timeout",
        "of all members' rebalance timeouts; later joins do not extend it",
        (
            together("b", "c", rebalance_ms=400, own={"rebalance_ms": 1_200}),
            Send("a", join(rebalance_ms=1_200), mark="round"),
            Until("PreparingRebalance", 3, beating=("c",)),
            Beat(("c",), 500),
            Send("b", join(rebalance_ms=400)),
            Parked("a"),
            Hear(
                "a",
                {"error_code": "NONE", "generation_id": 3, "members": [{}, {}]},
                beating=("c",),
                timed=Timed("a round lasts as long as the longest rebalance timeout", "round", 1_200),
            ),
            Hear("b", {"error_code": "NONE", "generation_id": 3}),
        ),
    ),
    Case(
        "join-v0-rebalance-timeout",
        "JoinGroup 0 has none: its session timeout is taken",
        (
            alone(version=0, session_ms=_ROUND),
            Send("b", join(version=0, session_ms=_ROUND), mark="round"),
            Hear(
                "b",
                {"error_code": "NONE", "generation_id": 2, "leader": "{b}"},
                beating=("a",),
                timed=Timed("a round of JoinGroup 0 waits for the session timeout", "round", _ROUND),
            ),
        ),
    ),
    Case(
        "sync-that-does-not-come",
        "who has its JoinGroup answered and does not sync within the rebalance timeout is removed",
        (
            alone(rebalance_ms=_ROUND),
            second_round("b", rebalance_ms=_ROUND, mark="round"),
            ask("a", sync(plan={"a": b"1", "b": b"2"}), {"assignment": "1"}),
            Until(
                "PreparingRebalance",
                1,
                beating=("a", "b"),
                timed=Timed("a member that does not sync is removed", "round", _ROUND),
            ),
            ask("b", sync(), _GONE),
        ),
    ),
    Case(
        "leader-does-not-sync",
        "the group does not wait for the leader's plan longer than the rebalance timeout",
        (
            alone(rebalance_ms=_ROUND),
            second_round("b", rebalance_ms=_ROUND, mark="round"),
            Send("b", sync()),
            Hear(
                "b",
                {"error_code": "REBALANCE_IN_PROGRESS", "assignment": ""},
                beating=("a",),
                timed=Timed("a sync waits for the leader", "round", _ROUND),
            ),
            ask("a", heartbeat(), _GONE),
            Send("b", join(rebalance_ms=_ROUND)),
            Hear("b", {"error_code": "NONE", "generation_id": 3, "leader": "{b}"}),
        ),
    ),
    Case(
        "pending-member-is-forgotten",
        "an id that was given out counts for session.timeout.ms, then the round ends without it",
        (
            alone(),
            ask("p", join(member_id="", session_ms=_SHORT), Error.MEMBER_ID_REQUIRED, mark="given"),
            Send("a", join()),
            Hear(
                "a",
                {"error_code": "NONE", "generation_id": 2, "members": [{}]},
                timed=Timed("a pending member is forgotten", "given", _SHORT),
            ),
            ask("p", join(session_ms=_SHORT), _GONE),
        ),
    ),
    Case(
        "nobody-joins",
        "all members miss the round: they end by their sessions, the round by the last of them",
        (
            together("b", session_ms=_SHORT),
            knock("c"),
            Send("c", join(), mark="round"),
            Until("PreparingRebalance", 3, beating=("a", "b")),
            ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
            ask("b", heartbeat(), Error.REBALANCE_IN_PROGRESS, mark="last"),
            Hear(
                "c",
                {"error_code": "NONE", "generation_id": 3, "leader": "{c}"},
                timed=Timed("a newcomer waits for sessions that end", "last", _SHORT),
            ),
            ask("a", describe(), {"groups": [{"members": [{}]}]}),
        ),
    ),
)

CASES = (*SESSIONS, *ROUNDS)
