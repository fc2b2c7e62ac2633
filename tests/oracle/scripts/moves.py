"""Moves: short sequences of steps that random scripts are made of. Each adds its steps to a draft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.scripts.draft import Client, Draft

_AGAIN = ["REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"]

#: Between the timers' deadlines, at them, and one millisecond to either side.
_PAUSES_MS = (0, 1, 10, 500, 1_000, 2_999, 3_000, 3_001, 5_000, 5_999, 6_000, 6_001, 9_999, 10_000, 20_000)
_LONG_PAUSES_MS = (30_000, 60_000, 60_001, 100_000, 299_999, 300_000, 300_001)


def _arrive(draft: Draft) -> None:
    """Clients come, most with the id that they are sent back with (KIP-394)."""
    for client in draft.some()[:4]:
        draft.join(client, "" if draft.chance(0.9) else "$")
        if client.instance is None and client.version >= 4 and draft.chance(0.9):
            draft.join(client, "$", when="join:MEMBER_ID_REQUIRED")


def _late(draft: Draft) -> None:
    """Somebody comes in the middle of a delay or a round, some of the time together with others."""
    draft.wait(draft.random.choice([1, 500, 999, 1_000, 1_500, 2_999, 3_000]))
    _arrive(draft)
    draft.wait(draft.random.choice([0, 1, 500, 2_000, 2_999, 3_000]))


def _settle(draft: Draft) -> None:
    """Everybody hears of the round and joins again, it closes, and they sync, with the leader or without."""
    if draft.chance(0.7):
        _beat(draft)
    if draft.chance(0.7):
        delay_ms = draft.config["group.initial.rebalance.delay.ms"]
        draft.wait(delay_ms if draft.chance(0.7) else draft.random.choice(_PAUSES_MS))
    clients = draft.clients if draft.chance(0.8) else draft.some()
    for client in draft.random.sample(clients, len(clients)):
        draft.sync(client, when="join:NONE")


def _beat(draft: Draft) -> None:
    """Heartbeats, and what a client does about their answers."""
    clients = draft.clients if draft.chance(0.6) else draft.some()
    for client in draft.random.sample(clients, len(clients)):
        draft.request("heartbeat", client, when=["sync:NONE", "heartbeat:NONE"], **draft.instance(client))
        if draft.chance(0.9):
            draft.join(client, "$", when=_AGAIN)
        if client.instance is None and client.version >= 4 and draft.chance(0.3):
            draft.join(client, "$", when="join:MEMBER_ID_REQUIRED")
    if draft.chance(0.5):
        for client in draft.some():
            draft.sync(client, when="join:NONE")


def _wait(draft: Draft) -> None:
    """A pause: short, at a deadline of somebody's, or long."""
    if draft.chance(0.4):
        client = draft.one()
        ms = draft.random.choice([client.session_ms, client.rebalance_ms]) + draft.random.choice([-1, 0, 1])
    elif draft.chance(0.1):
        ms = draft.random.choice(_LONG_PAUSES_MS)
    else:
        ms = draft.random.choice(_PAUSES_MS)
    draft.wait(max(ms, 0))


def _rejoin(draft: Draft) -> None:
    """Members join again: with the same metadata, or with other."""
    for client in draft.some()[:3]:
        if draft.chance(0.5):
            client.protocols = draft.protocols()
        if draft.chance(0.15):
            client.session_ms = draft.random.choice(draft.workload.sessions_ms)
            client.rebalance_ms = draft.random.choice(draft.workload.rebalances_ms)
        draft.join(client, "$")
    if draft.chance(0.6):
        for client in draft.some():
            draft.sync(client, when="join:NONE")


def _double(draft: Draft) -> None:
    """A second join or sync while the first is parked: the first is never answered."""
    client = draft.one()
    if draft.chance(0.6):
        draft.join(client, "$")
        draft.join(client, "$", when="PENDING")
    else:
        draft.sync(client, when=["join:NONE", "sync:PENDING"])
        draft.sync(client, when="sync:PENDING")


def _abandon(draft: Draft) -> None:
    """A client asks for an id, or joins, and is not heard of again for long."""
    client = draft.one()
    draft.join(client, "" if draft.chance(0.5) else "$")
    draft.wait(client.session_ms + draft.random.choice([-1, 0, 1]))


def _unsynced(draft: Draft) -> None:
    """Some of those who have joined do not sync, though they are alive; the leader may, and the group be
    stable without them."""
    _arrive(draft)
    draft.wait(draft.config["group.initial.rebalance.delay.ms"])
    for client in draft.some():
        draft.sync(client, when="join:NONE", assignments="auto")
    total_ms = max(client.rebalance_ms for client in draft.clients) + draft.random.choice([-1, 0, 1])
    pauses = -(-total_ms // 5_000) if total_ms < 30_000 and draft.chance(0.7) else 1
    for _ in range(pauses):
        draft.wait(-(-total_ms // pauses))
        for client in draft.clients if draft.chance(0.7) else draft.some():
            draft.request("heartbeat", client, **draft.instance(client))


def _leave(draft: Draft) -> None:
    client = draft.one()
    draft.request("leave", client, **(draft.instance(client) if draft.chance(0.8) else {}))


def _leave_many(draft: Draft) -> None:
    """A batch: members by id, by id and instance, by instance alone, ids that are not there, one twice."""
    pairs: list[list[str | None]] = []
    for client in draft.some()[:4]:
        pairs.append(draft.random.choice(_identities(client, draft)))
    if pairs and draft.chance(0.1):
        pairs.append(pairs[0])
    draft.request("leave", draft.one(), members=pairs if draft.chance(0.95) else [])


def _identities(client: Client, draft: Draft) -> list[list[str | None]]:
    own = f"${client.label}"
    wrong = draft.random.choice(["nobody", "$m1", "$m2", "$m9", ""])
    return [[own, client.instance], [own, client.instance], [own, None], ["", client.instance], [wrong, None]]


def _leave_by_instance(draft: Draft) -> None:
    """Remove a static member as an administrator does."""
    client = draft.one()
    draft.request("leave", client, members=[["", client.instance or "i9"]])


def _restart(draft: Draft) -> None:
    """A process comes back: without an id, under its instance if it has one (KIP-345)."""
    client = draft.one()
    if draft.chance(0.2):
        client.protocols = draft.protocols()
    draft.join(client, "", **({"version": draft.random.choice([5, 8, 9])} if client.instance else {}))
    if draft.chance(0.8):
        draft.sync(client, when="join:NONE")
    if draft.chance(0.3):
        draft.request("heartbeat", client, **draft.instance(client))


def _impostor(draft: Draft) -> None:
    """Another process takes a static member's place; both go on, one of them fenced."""
    client = draft.one()
    instance = client.instance or draft.random.choice(["i1", "i2"])
    other = draft.other_than(client)
    draft.join(other, draft.random.choice(["", "", f"${client.label}", "$"]), instance=instance)
    for who in draft.random.sample([client, other], 2):
        op = draft.random.choice(["heartbeat", "sync", "join", "commit", "leave"])
        _send(draft, op, who, {"instance": instance})


def _send(draft: Draft, op: str, client: Client, fields: dict[str, Any]) -> None:
    """One request of any kind, its fields partly given."""
    match op:
        case "join":
            draft.join(client, fields.pop("member", "$"), **fields)
        case "sync":
            draft.sync(client, **fields)
        case "commit":
            draft.request(
                "commit", client, **{"offsets": _offsets(draft), **draft.instance(client), **fields}
            )
        case "leave":
            fields.pop("generation", None)
            draft.request("leave", client, **{**draft.instance(client), **fields})
        case _:
            draft.request("heartbeat", client, **{**draft.instance(client), **fields})


def _stray(draft: Draft) -> None:
    """A request with a wrong generation, a wrong or foreign id, instance, protocol or group."""
    client = draft.one()
    op = draft.random.choice(["join", "sync", "sync", "heartbeat", "heartbeat", "commit", "leave"])
    foreign = f"${draft.one().label}"
    wrong: list[dict[str, Any]] = [
        {"member": draft.random.choice(["", "nobody", "$m1", "$m2", "$m9", foreign])},
        {"instance": draft.random.choice(["i1", "i2", "i9"])},
    ]
    if op in ("sync", "heartbeat", "commit"):
        wrong += [{"generation": draft.random.choice(["$-1", "$+1", -1, 0, 1, 99, foreign])}] * 2
    if op == "sync":
        wrong.append({"type": draft.random.choice([None, "consumer", "connect"]), "version": 5})
        wrong.append({"protocol": draft.random.choice([None, "range", "nonsense"]), "version": 5})
    if draft.chance(0.1):
        wrong = [{"group": draft.random.choice(["", "nowhere", "h"])}]
    _send(draft, op, client, draft.random.choice(wrong))


def _fail(draft: Draft) -> None:
    """A request that has something to write, and cannot."""
    client = draft.one()
    fields: dict[str, Any] = {"append_error": draft.append_error()}
    match draft.random.choice(["sync", "commit", "restart", "outside", "outside", "leave"]):
        case "sync":
            for member in draft.random.sample(draft.clients, len(draft.clients)):
                draft.sync(member, when=["join:NONE", "sync:PENDING"], **fields)
        case "commit":
            _send(draft, "commit", client, fields)
        case "restart":
            draft.join(client, "", **fields)
        case "leave":
            draft.request("leave", client, **{**draft.instance(client), **fields})
        case _:
            _from_outside(draft, fields)


def _inconsistent(draft: Draft) -> None:
    """Protocols that do not go with the group's, none at all, a session that the broker does not allow."""
    client = draft.one()
    wrong: dict[str, Any] = draft.random.choice(
        [
            {"protocols": [["other", ""]]},
            {"protocols": []},
            {"type": "connect"},
            {"type": ""},
            {"session": 5},
            {"session": 5_999},
            {"session": 1_800_001},
            {"version": 0, "session": 6_000},
        ]
    )
    draft.join(client, draft.random.choice(["", "$"]), **wrong)


def _offsets(draft: Draft) -> dict[str, dict[str, int]]:
    topics = draft.random.sample(["foo", "bar", "baz", "Aa", "BB", "тема"], draft.random.choice([1, 1, 2, 3]))
    highest = draft.random.choice([3, 3, 9, 40])
    return {
        topic: {
            str(number): draft.random.choice([draft.random.randrange(100), 2**63 - 1, -1])
            for number in draft.random.sample(range(highest), draft.random.randint(0, min(highest, 6)))
        }
        for topic in topics
    }


def _commit(draft: Draft) -> None:
    for client in draft.some()[:2]:
        fields: dict[str, Any] = {"version": draft.random.choice([9, 9, 8, 5, 2])}
        if draft.chance(draft.workload.stray_share):
            fields["generation"] = draft.random.choice(["$-1", "$+1", -1, 5])
        if draft.chance(draft.workload.stray_share):
            fields["member"] = draft.random.choice(["", "nobody", f"${draft.one().label}"])
        _send(draft, "commit", client, fields)


def _outside(draft: Draft) -> None:
    """Somebody who manages its partitions itself commits to a group, alive or not."""
    fields: dict[str, Any] = {}
    if draft.chance(0.2):
        fields["member"] = "nobody"
    if draft.chance(0.1):
        fields["generation"] = draft.random.choice([0, 1])
    _from_outside(draft, fields)


def _from_outside(draft: Draft, fields: dict[str, Any]) -> None:
    group = draft.random.choice(["own", "own", "g", "h", ""])
    outside = {"member": "", "generation": -1, "group": group, "instance": None}
    _send(draft, "commit", draft.one(), {**outside, "version": draft.random.choice([9, 8]), **fields})


def _overwrite(draft: Draft) -> None:
    """Offsets are committed over others, and cannot be written; everybody looks at what is left."""
    for _ in range(draft.random.randint(2, 5)):
        failing = {"append_error": draft.append_error()} if draft.chance(0.5) else {}
        _from_outside(draft, {**failing, "group": "own"})
        if draft.chance(0.6):
            draft.request("fetch_offsets", draft.one(), group="own", topics=None)


def _fetch(draft: Draft) -> None:
    topics = draft.random.choice([None, None, {"foo": [0, 1, 2]}, {"bar": [1], "baz": [0]}, {"nothing": [7]}])
    version = 9 if topics is None else draft.random.choice([9, 8, 2, 1])
    group = draft.random.choice([client.group for client in draft.clients] + ["own", "nowhere"])
    member = {"member": draft.random.choice(["$", "nobody"])} if draft.chance(0.1) else {}
    draft.request("fetch_offsets", draft.one(), group=group, topics=topics, version=version, **member)


def _describe(draft: Draft) -> None:
    group = draft.random.choice([draft.one().group, draft.one().group, "nowhere", ""])
    draft.request("describe", draft.one(), group=group, version=draft.random.choice([6, 5, 0]))


def _topics(draft: Draft) -> None:
    """Topics grow, come and go; offsets of those that go are gone."""
    topic = draft.random.choice(["foo", "bar", "baz", "Aa"])
    if draft.chance(0.6):
        draft.steps.append({"op": "topics", "remove": [topic]})
    if draft.chance(0.6):
        draft.steps.append({"op": "topics", "set": {topic: draft.random.randint(1, 6)}})


def _odd(draft: Draft) -> None:
    """Steps that are no requests: both sides have to say so."""
    client = draft.one()
    step: dict[str, Any] = draft.random.choice(
        [
            {"op": "nonsense"},
            {"op": "join", "version": 10},
            {"op": "sync", "version": -1},
            {"op": "join", "session": "long"},
            {"op": "join", "protocols": [["range", "not base64"]]},
            {"op": "join", "protocols": {"range": ""}},
            {"op": "heartbeat", "generation": "soon"},
            {"op": "heartbeat", "append_error": "NO_SUCH_ERROR"},
            {"op": "leave", "members": [["nobody"]]},
            {"op": "commit", "offsets": {"foo": [1]}},
            {"op": "sync", "assignments": 7},
            {"op": "advance", "ms": -1},
        ]
    )
    draft.steps.append({**step, "as": client.label})


_MOVES: tuple[Callable[[Draft], None], ...] = (
    *(_arrive, _late, _settle, _beat, _wait, _rejoin, _double, _abandon, _unsynced, _leave, _leave_many),
    *(_leave_by_instance, _restart, _impostor, _stray, _fail, _inconsistent, _commit, _outside, _fetch),
    *(_describe, _topics, _odd, _overwrite),
)
#: By the names that workloads give weights to.
MOVES = {move.__name__.removeprefix("_"): move for move in _MOVES}
