"""Sessions, rebalance timeouts, pending members and pending syncs: when they end."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.openings import (
    group_of_one,
    joined,
    request_member_id,
    second_round,
    send_join,
    stable_group,
)
from tests.conformance.raw.requests import Subscribed, commit, describe, heartbeat, join, sync
from tests.conformance.raw.steps import (
    OK,
    Parked,
    Receive,
    Send,
    SendHeartbeats,
    Until,
    ask,
    case,
    late,
    until_late,
)

_SHORT = 1_000
_ROUND = 1_000
_GONE = Error.UNKNOWN_MEMBER_ID

SESSIONS = (
    case(
        "session-ends",
        "the member is removed session.timeout.ms after the last answer that renewed the session",
        group_of_one(session=_SHORT),
        ask("a", heartbeat(), OK, mark="last"),
        until_late("Empty", 0, "a session ends after the last heartbeat", "last", _SHORT),
        ask("a", heartbeat(), _GONE),
    ),
    case(
        "session-begins-with-the-answer-of-a-join",
        "the answer, not the JoinGroup, starts the session: the JoinGroup may have been parked for longer",
        group_of_one(),
        send_join("b", session=_SHORT),
        Until("PreparingRebalance", 2),
        SendHeartbeats(("a",), 700),
        Send("a", join()),
        Receive("a", joined(2)),
        Receive("b", joined(2), mark="last"),
        until_late(
            "PreparingRebalance", 1, "a session ends after the answer of a join", "last", _SHORT, beats="a"
        ),
    ),
    case(
        "session-begins-with-the-assignment",
        "the answer of a parked SyncGroup renews the session",
        group_of_one(),
        second_round("b", own=None, session=_SHORT),
        Send("b", sync()),
        SendHeartbeats(("a",), 700),
        ask("a", sync(assignments={"a": b"1", "b": b"2"}), OK),
        Receive("b", {"assignment": "2"}, mark="last"),
        until_late("PreparingRebalance", 1, "a session ends after the assignment", "last", _SHORT, beats="a"),
    ),
    case(
        "commit-renews-the-session",
        "OffsetCommit of a member counts as a heartbeat",
        group_of_one(session=_SHORT),
        SendHeartbeats((), 500),
        ask("a", commit(), {}, mark="last"),
        until_late("Empty", 0, "a session ends after the last commit", "last", _SHORT),
    ),
    case(
        "sync-in-stable-does-not-renew-the-session",
        "only an answer to a parked SyncGroup does",
        group_of_one(session=_SHORT),
        ask("a", heartbeat(), OK, mark="last"),
        SendHeartbeats((), 500),
        ask("a", sync(), {"assignment": "all"}),
        until_late("Empty", 0, "a session ends, a sync in Stable between", "last", _SHORT),
    ),
    case(
        "silent-member-ends-the-round",
        "a session that ends in PreparingRebalance: the others are answered",
        stable_group("b", session=_SHORT),
        ask("b", heartbeat(), OK, mark="last"),
        Send("a", join(session=_SHORT)),
        late(
            "a",
            joined(3, leader="{a}", members=[{}]),
            "a parked join is answered when a session ends",
            "last",
            _SHORT,
        ),
    ),
    case(
        "leader-is-silent",
        "the session of the leader ends: the others have a round and get a leader",
        stable_group("b", own={"session": _SHORT}),
        ask("a", heartbeat(), OK, mark="last"),
        until_late("PreparingRebalance", 1, "the leader's session ends", "last", _SHORT, beats="b"),
        Send("b", join()),
        Receive("b", joined(3, leader="{b}")),
        ask("a", heartbeat(), _GONE),
    ),
)

ROUNDS = (
    case(
        "late-member-is-dropped",
        "a member that does not join within the rebalance timeout is removed, though it sends heartbeats",
        stable_group("b", rebalance=_ROUND),
        Send("a", join(rebalance=_ROUND), mark="round"),
        late(
            "a",
            joined(3, members=[{}]),
            "a round waits for a member that does not join",
            "round",
            _ROUND,
            beats="b",
        ),
        ask("b", heartbeat(), _GONE),
    ),
    case(
        "late-leader-is-replaced",
        "the leader is one of those who have joined (KAFKA-8220)",
        stable_group("b", rebalance=_ROUND),
        Send("b", join(rebalance=_ROUND, protocols=(("range", Subscribed(owned=(0,))),)), mark="round"),
        late(
            "b",
            joined(3, leader="{b}", members=[{}]),
            "a round waits for a leader that does not join",
            "round",
            _ROUND,
            beats="a",
        ),
        ask("a", heartbeat(), _GONE),
    ),
    case(
        "round-has-the-longest-timeout",
        "of all members' rebalance timeouts; later joins do not extend it",
        stable_group("b", "c", rebalance=400, own={"rebalance": 1_200}),
        Send("a", join(rebalance=1_200), mark="round"),
        Until("PreparingRebalance", 3, heartbeats_of=("c",)),
        SendHeartbeats(("c",), 500),
        Send("b", join(rebalance=400)),
        Parked("a"),
        late(
            "a",
            joined(3, members=[{}, {}]),
            "a round lasts as long as the longest rebalance timeout",
            "round",
            1_200,
            beats="c",
        ),
        Receive("b", joined(3)),
    ),
    case(
        "join-v0-rebalance-timeout",
        "JoinGroup 0 has no rebalance timeout: the session timeout counts",
        group_of_one(version=0, session=_ROUND),
        Send("b", join(version=0, session=_ROUND), mark="round"),
        late(
            "b",
            joined(2, leader="{b}"),
            "a round of JoinGroup 0 waits for the session timeout",
            "round",
            _ROUND,
            beats="a",
        ),
    ),
    case(
        "sync-that-does-not-come",
        "a member that does not sync within the rebalance timeout after its join's answer is removed",
        group_of_one(rebalance=_ROUND),
        second_round("b", rebalance=_ROUND, mark="round"),
        ask("a", sync(assignments={"a": b"1", "b": b"2"}), {"assignment": "1"}),
        until_late(
            "PreparingRebalance", 1, "a member that does not sync is removed", "round", _ROUND, beats="ab"
        ),
        ask("b", sync(), _GONE),
    ),
    case(
        "leader-does-not-sync",
        "the group waits for the leader's assignment no longer than the rebalance timeout",
        group_of_one(rebalance=_ROUND),
        second_round("b", rebalance=_ROUND, mark="round"),
        Send("b", sync()),
        late(
            "b",
            {"error_code": "REBALANCE_IN_PROGRESS", "assignment": ""},
            "a sync waits for the leader",
            "round",
            _ROUND,
            beats="a",
        ),
        ask("a", heartbeat(), _GONE),
        Send("b", join(rebalance=_ROUND)),
        Receive("b", joined(3, leader="{b}")),
    ),
    case(
        "pending-member-is-forgotten",
        "the round waits for a pending member for session.timeout.ms, then it ends without that member",
        group_of_one(),
        ask("p", join(member="", session=_SHORT), Error.MEMBER_ID_REQUIRED, mark="given"),
        Send("a", join()),
        late("a", joined(2, members=[{}]), "a pending member is forgotten", "given", _SHORT),
        ask("p", join(session=_SHORT), _GONE),
    ),
    case(
        "nobody-joins",
        "all members miss the round: their sessions end, and with the last one the round",
        stable_group("b", session=_SHORT),
        request_member_id("c"),
        Send("c", join(), mark="round"),
        Until("PreparingRebalance", 3, heartbeats_of=("a", "b")),
        ask("a", heartbeat(), Error.REBALANCE_IN_PROGRESS),
        ask("b", heartbeat(), Error.REBALANCE_IN_PROGRESS, mark="last"),
        late("c", joined(3, leader="{c}"), "a newcomer waits for sessions that end", "last", _SHORT),
        ask("a", describe(), {"groups": [{"members": [{}]}]}),
    ),
)

CASES = (*SESSIONS, *ROUNDS)
