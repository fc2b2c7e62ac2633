"""Moves in scripts of consumer groups and of migrations, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.scripts.groups import REGEXES, TOPICS, Member, Play

_FENCED = ("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID")


def _arrive(play: Play) -> None:
    """Members start, one after the other."""
    for member in play.some():
        _start(play, member)
        if play.chance(0.3):
            play.advance(play.pick(100, 500, 1_000))


def _start(play: Play, member: Member) -> None:
    if not member.is_classic:
        play.start(member)
        return
    play.join(member, member="")
    play.join(member, when=["join:MEMBER_ID_REQUIRED"])


def _round(play: Play) -> None:
    """All members do what a client does at its next heartbeat."""
    for member in play.all():
        if member.is_classic:
            play.classic_beat(member, when=["join:NONE", "sync:NONE", "heartbeat:NONE", *_rejoins()])
            play.join(member, when=["REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"])
            play.join(member, when=["join:MEMBER_ID_REQUIRED"])
        else:
            play.beat(member, play.pick("$", "$", "$", None))
            if play.chance(0.7):
                play.start_again(member, _FENCED)
    if any(member.is_classic for member in play.members):
        play.advance(play.pick(0, 0, 0, 3_000))
        for member in play.all():
            play.sync(member, when=["join:NONE"])


def _rejoins() -> list[str]:
    return ["heartbeat:REBALANCE_IN_PROGRESS"]


def _settle(play: Play) -> None:
    """Rounds of heartbeats until the members have their targets."""
    for _ in range(play.random.randint(1, 3)):
        play.advance(play.pick(500, 1_000, 3_000, 5_000))
        _round(play)


def _beat(play: Play) -> None:
    for member in play.some():
        if member.is_classic:
            play.classic_beat(member)
        else:
            play.beat(member, play.pick("$", "$", "$", "$prev", "$common", None, {}, {"foo": [0]}))


def _wait(play: Play) -> None:
    """Some members are silent for so long that their time is over."""
    play.advance(play.pick(1_000, 5_000, 10_000, 10_001, 30_000, 45_000, 46_000))


def _wait_with_beats(play: Play) -> None:
    """Time passes for one member alone."""
    silent = play.one()
    for _ in range(play.random.randint(2, 10)):
        play.advance(5_000)
        for member in play.all():
            if member is silent:
                continue
            if member.is_classic:
                play.classic_beat(member)
            else:
                play.beat(member)


def _leave(play: Play) -> None:
    member = play.one()
    if member.is_classic:
        play.classic_leave(member)
    else:
        play.quit(member)


def _leave_for_a_while(play: Play) -> None:
    """A static member goes with epoch -2, and perhaps comes back under another id."""
    member = play.one()
    play.quit(member, -2)
    if play.chance(0.6):
        play.advance(play.pick(0, 1_000, 20_000, 46_000))
        play.start(member, **({"member": "$"} if play.chance(0.3) else {}))


def _restart(play: Play) -> None:
    """A member's process starts anew without a word; it may speak the other protocol now."""
    member = play.one()
    if play.chance(play.switching):
        member.is_classic = not member.is_classic
    _start(play, member)


def _subscribe(play: Play) -> None:
    """Another subscription: by names, by a regular expression, by both, to nothing."""
    member = play.one()
    member.topics = play.topics_of()
    fields: dict[str, Any] = {"topics": member.topics}
    if play.chance(0.4):
        member.regex = play.random.choice(REGEXES)
        fields = {"regex": member.regex} | play.pick({}, {"topics": []}, {"topics": member.topics})
    if member.is_classic:
        play.join(member)
    else:
        play.beat(member, play.pick("$", "$", None), **fields)


def _prefer(play: Play) -> None:
    member = play.one()
    member.assignor = play.pick("range", "uniform", "nonsense")
    play.beat(member, assignor=member.assignor)
    if member.assignor == "nonsense":
        member.assignor = None


def _topics(play: Play) -> None:
    """Topics are created, grow, go."""
    topic = play.random.choice(TOPICS)
    fields: dict[str, Any] = {}
    if play.chance(0.8):
        fields["set"] = {topic: play.random.randint(1, 8)}
    if play.chance(0.3):
        fields["remove"] = [play.random.choice(TOPICS)]
    play.add("topics", **fields)


def _options(play: Play) -> None:
    """Options of the group, some beyond the broker's bounds."""
    options = {
        "consumer.session.timeout.ms": play.pick(45_000, 50_000, 60_000, 1_000),
        "consumer.heartbeat.interval.ms": play.pick(5_000, 10_000, 15_000, 1),
        "consumer.assignment.interval.ms": play.pick(0, 2_000, 20_000),
    }
    chosen = play.random.sample(list(options), play.random.randint(1, 3))
    play.add("group_config", set={name: options[name] for name in chosen})


def _stray(play: Play) -> None:
    """A heartbeat with a wrong epoch, a foreign id or instance, or fields that no group takes."""
    member, other = play.one(), play.one()
    wrong: list[dict[str, Any]] = [
        {"epoch": play.pick("$-1", "$+1", 99, -3, 1, 0, -2)},
        {"member": play.pick("", "nobody", f"${other.label}", " ")},
        {"instance": play.pick("i1", "i2", "i9", "", None)},
        {"group": play.pick("", "nowhere", "h")},
        {"epoch": 0, "rebalance": play.pick(-1, 1_000), "owned": play.pick(None, {}, {"foo": [0]})},
        {"epoch": 0, "topics": None, "rebalance": 1_000, "owned": {}},
        {"rack": "", "regex": "("},
        {"assignor": "nonsense"},
        {"epoch": "$-1", "owned": play.pick("$", "$prev", {})},
    ]
    play.beat(member, **play.random.choice(wrong))


def _classic_stray(play: Play) -> None:
    """A request of the classic protocol, whatever the member speaks."""
    member, other = play.one(), play.one()
    wrong = play.pick(
        {}, {}, {"member": f"${other.label}"}, {"member": "nobody"}, {"instance": play.pick("i1", "i2", "i9")}
    )
    match play.pick("join", "join", "sync", "heartbeat", "leave"):
        case "join":
            play.join(member, **play.pick(wrong, wrong, {"type": "connect"}, {"protocols": [["odd", ""]]}))
        case "sync":
            play.sync(member, **(wrong | play.pick({}, {"protocol": "odd"}, {"generation": "$+1"})))
        case "heartbeat":
            play.classic_beat(member, **(wrong | play.pick({}, {"generation": "$+1"})))
        case _:
            play.classic_leave(member, **wrong)


def _leave_many(play: Play) -> None:
    leaving = [
        play.pick([f"${member.label}", None], [f"${member.label}", member.instance], ["", member.instance])
        for member in play.some()
    ]
    play.add("leave", play.one(), members=leaving)


def _commit(play: Play) -> None:
    """Members commit, at their epochs and at others."""
    for member in play.some()[:3]:
        epoch = {} if member.is_classic else {"epoch": True}
        offsets = {
            topic: {str(number): play.random.randrange(100) for number in range(play.random.randint(1, 4))}
            for topic in play.random.sample(TOPICS, play.pick(1, 1, 2))
        }
        fields = {"generation": play.pick("$", "$", "$", "$-1", "$-1", "$+1", "$-2", -1, 0)}
        if play.chance(0.1):
            fields["member"] = play.pick("", "nobody")
        play.add("commit", member, version=play.pick(9, 9, 9, 8), offsets=offsets, **(epoch | fields))


def _fetch(play: Play) -> None:
    member = play.one()
    topics = play.pick(None, {"foo": [0, 1, 2]}, {"bar": [0], "Aa": [1]})
    named = play.pick(
        {}, {"member": "$", "generation": play.pick("$", "$", "$-1", "$+1", -1)}, {"member": "no"}
    )
    play.add("fetch_offsets", member, version=play.pick(9, 8), topics=topics, **named)


def _describe(play: Play) -> None:
    play.add("describe", play.one(), version=play.pick(6, 5))


_MOVES: tuple[Callable[[Play], None], ...] = (
    *(_arrive, _round, _settle, _beat, _wait, _wait_with_beats, _leave, _leave_for_a_while, _restart),
    *(_subscribe, _prefer, _topics, _options, _stray, _classic_stray, _leave_many, _commit, _fetch),
    _describe,
)
#: By the names that workloads give weights to.
MOVES = {move.__name__.removeprefix("_"): move for move in _MOVES}
