"""Transcripts: a script of commands, each followed by what the coordinator did.

    # a comment
    join a version=4 topics=t
    ----
    what happened, one event or answer a line

Commands (each client remembers its id and generation, as a real one does):

* ``join NAME [instance=I] [version=9] [session=10s] [rebalance=60s] [topics=t,u] [owned=t-0,t-1]``
* ``sync NAME [MEMBER=t-0,t-1 ...]``: the plan, if the client leads; MEMBER is a client's name
* ``heartbeat NAME``, ``leave NAME``, ``commit NAME t-0=5``
* ``advance 3s`` (or ``250ms``): time passes, deadline by deadline
* ``options initial-delay=3s``: a new coordinator; before all other commands
* ``show``: the group

Member ids are ``NAME#1``, ``NAME#2``, ... in the order of drawing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable
from typing import Any

from groupstorm.assignors.userdata import Subscription, TopicPartition, encode_assignment, encode_subscription
from groupstorm.coordinator import events
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeavingMember,
    OffsetCommit,
    SyncGroup,
    SyncGroupResponse,
)
from groupstorm.coordinator.subscriptions import assigned_partitions

_ANSWERS = (events.JoinAnswered, events.SyncAnswered)
_LEFT_OUT = ("group", "member")


def play(text: str) -> str:
    """The transcript with the output of every command as it is now."""
    stage = _Stage()
    blocks = []
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        head = lines[: lines.index("----")] if "----" in lines else lines
        commands = [line for line in head if not line.startswith("#")]
        output = [line for command in commands for line in stage.do(command)]
        blocks.append("\n".join([*head, "----", *output]) if commands else block)
    return "\n\n".join(blocks) + "\n"


def _milliseconds(text: str) -> int:
    match = re.fullmatch(r"(\d+)(ms|s|m)", text)
    assert match is not None, f"{text} is no duration"
    return int(match[1]) * {"ms": 1, "s": 1000, "m": 60_000}[match[2]]


def _partitions(text: str) -> tuple[TopicPartition, ...]:
    pairs = [part.rpartition("-") for part in text.split(",") if part]
    return tuple(TopicPartition(topic, int(number)) for topic, _, number in pairs)


class _Client:
    def __init__(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.instance: str | None = None


class _Stage:
    def __init__(self) -> None:
        self._now_ms = 0
        self._drawn: Counter[str] = Counter()
        self._clients: dict[str, _Client] = {}
        self._asked: dict[Hashable, tuple[str, str]] = {}
        self._lines: list[str] = []
        self._coordinator = self._new(CoordinatorConfig())

    def _new(self, config: CoordinatorConfig) -> GroupCoordinator:
        return GroupCoordinator(config, member_ids=self._draw)

    def _draw(self, prefix: str) -> str:
        self._drawn[prefix] += 1
        return f"{prefix}#{self._drawn[prefix]}"

    def do(self, line: str) -> list[str]:
        """Run one command; the lines that it brought about."""
        command, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        self._lines = []
        match command:
            case "options":
                delay_ms = _milliseconds(options["initial-delay"])
                self._coordinator = self._new(CoordinatorConfig(initial_rebalance_delay_ms=delay_ms))
            case "show":
                self._lines.append(repr(self._coordinator.group("g")))
            case "advance":
                self._advance(_milliseconds(names[0]))
            case _:
                client = self._clients.setdefault(names[0], _Client())
                request = self._request(command, names[0], client, options)
                token = len(self._asked)
                self._asked[token] = (command, names[0])
                self._take(self._coordinator.handle(request, self._now_ms, token))
        return self._lines or ["ok"]

    def _request(self, command: str, name: str, client: _Client, options: dict[str, str]) -> Any:
        member, instance, generation = client.member_id, client.instance, client.generation
        match command:
            case "join":
                return self._join(name, client, options)
            case "sync":
                plan = tuple(
                    (self._clients[who].member_id, encode_assignment(_partitions(partitions)))
                    for who, partitions in options.items()
                )
                return SyncGroup("g", member, instance, generation, None, None, plan, 5, name)
            case "heartbeat":
                return Heartbeat("g", member, instance, generation, 4, name)
            case "leave":
                return LeaveGroup("g", (LeavingMember(member, instance),), 5, name)
            case "commit":
                offsets: dict[str, dict[int, CommittedOffset]] = {}
                for partition, offset in options.items():
                    ((topic, number),) = _partitions(partition)
                    offsets.setdefault(topic, {})[number] = CommittedOffset(int(offset))
                return OffsetCommit("g", member, instance, generation, offsets, 9, name)
        raise AssertionError(f"{command} is no command")

    def _join(self, name: str, client: _Client, options: dict[str, str]) -> JoinGroup:
        if "instance" in options:  # a restarted process knows its instance, and no member id
            client.instance, client.member_id = options["instance"], ""
        subscription = Subscription(
            tuple(options.get("topics", "t").split(",")),
            owned=_partitions(options.get("owned", "")),
            generation=client.generation,
        )
        protocols = (("cooperative-sticky", encode_subscription(subscription)),)
        return JoinGroup(
            "g",
            client.member_id,
            client.instance,
            _milliseconds(options.get("session", "10s")),
            _milliseconds(options.get("rebalance", "60s")),
            "consumer",
            protocols,
            int(options.get("version", "9")),
            client.instance or name,
        )

    def _advance(self, duration_ms: int) -> None:
        until_ms = self._now_ms + duration_ms
        while (due_ms := self._coordinator.next_deadline()) is not None and due_ms <= until_ms:
            self._now_ms = max(due_ms, self._now_ms)
            shown = len(self._lines)
            self._take(self._coordinator.fire(self._now_ms))
            if len(self._lines) > shown:
                self._lines.insert(shown, f"at {self._now_ms} ms")
        self._now_ms = until_ms

    def _take(self, effects: Effects) -> None:
        for event in effects.events:
            if not isinstance(event, _ANSWERS):
                self._lines.append(_event(event))
        for token, response in effects.replies:
            command, name = self._asked[token]
            self._remember(name, response)
            self._lines.append(f"-> {name}: {command} {_answer(response)}")

    def _remember(self, name: str, response: Any) -> None:
        client = self._clients[name]
        if isinstance(response, JoinGroupResponse):
            client.member_id = response.member_id or client.member_id
            if not response.error:
                client.generation = response.generation
        if getattr(response, "error", Error.NONE) is Error.UNKNOWN_MEMBER_ID:
            client.member_id, client.generation = "", -1


def _event(event: Any) -> str:
    words = [re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()]
    for name, value in event._asdict().items():
        if name not in _LEFT_OUT and value is not None and value != ():
            text = ",".join(map(str, value)) if isinstance(value, tuple) else value
            words.append(f"{name}={text}")
    return " ".join(words)


def _answer(response: Any) -> str:
    match response:
        case JoinGroupResponse(error=Error.NONE):
            members = f" members={','.join(member.member_id for member in response.members)}"
            skip = " skip-assignment" if response.skip_assignment else ""
            return (
                f"generation={response.generation} id={response.member_id} leader={response.leader}"
                f"{members if response.members else ''}{skip}"
            )
        case JoinGroupResponse():
            return f"{response.error.name} id={response.member_id or 'none'}"
        case SyncGroupResponse(error=Error.NONE):
            return f"partitions={','.join(assigned_partitions(response.assignment) or ()) or 'none'}"
        case HeartbeatResponse() | SyncGroupResponse():
            return response.error.name
        case _:
            error = response.error if hasattr(response, "error") else Error.NONE
            rows = getattr(response, "members", None) or response.partitions
            return next((row[-1].name for row in rows if row[-1]), error.name)
