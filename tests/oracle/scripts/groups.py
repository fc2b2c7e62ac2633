"""A script of consumer groups in the making: its clients of both protocols, its steps, its virtual time."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.oracle.scripts.steps import APPEND_ERRORS, Steps

TOPICS = ("foo", "bar", "baz", "Aa", "BB")
REGEXES = (
    "foo|bar",
    "ba.*",
    ".*",
    "f.*",
    "[",
    "none",
    "(?i)FOO",
    "B+|A.",
    "(foo",
    "",
    r"\C",
    "(?P<n>f)(?<n>o)o",
    r"\éfoo|\Qfoo\E",
)


@dataclass
class Member:
    """A label of the script, and the fixed fields of its requests."""

    label: str
    number: int
    is_classic: bool
    instance: str | None
    version: int
    rebalance_ms: int
    session_ms: int
    topics: list[str]
    regex: str | None
    assignor: str | None
    rack: str | None
    protocol: str
    #: How often it was started: a new process of the new protocol draws another id.
    lives: int = 0


class Play(Steps):
    def __init__(self, generator: random.Random, config: dict[str, Any], append_error_share: float) -> None:
        super().__init__(generator)
        self.config = config
        self.members: list[Member] = []
        #: How often a member that restarts speaks the other protocol.
        self.switching = 0.0
        self._append_error_share = append_error_share

    def one(self) -> Member:
        return self.random.choice(self.members)

    def some(self) -> list[Member]:
        """Some of the members, in any order."""
        return self.random.sample(self.members, self.random.randint(1, len(self.members)))

    def all(self) -> list[Member]:
        """All members, in any order."""
        return self.random.sample(self.members, len(self.members))

    def add(self, op: str, member: Member | None = None, /, **fields: Any) -> None:
        """A step; now and then the records of a request cannot be appended."""
        step: dict[str, Any] = {"op": op}
        if member is not None:
            step["as"] = member.label
        if member is not None and self.chance(self._append_error_share):
            step["append_error"] = self.random.choice(APPEND_ERRORS)
        self.steps.append(step | fields)

    def topics_of(self) -> list[str]:
        """A subscription by names; most members have the usual one."""
        usual = ["foo", "bar", "baz"]
        return self.random.choice(
            [usual, usual, usual, ["foo"], ["bar"], ["foo", "bar"], ["Aa", "BB", "foo"], []]
        )

    def member(self, number: int, *, is_classic: bool, static_share: float) -> Member:
        return Member(
            label=f"r{number}",
            number=number,
            is_classic=is_classic,
            instance=f"i{number}" if self.chance(static_share) else None,
            version=self.pick(0, 1, 1),
            rebalance_ms=self.pick(5_000, 10_000, 30_000, 45_000, 60_000, 300_000),
            session_ms=self.pick(6_000, 10_000, 30_000, 45_000),
            topics=self.topics_of(),
            regex=self.random.choice(REGEXES) if self.chance(0.15) else None,
            assignor=self.pick(None, None, "range", "uniform"),
            rack=self.pick(None, None, None, "rack1"),
            protocol=self.pick("range", "range", "cooperative-sticky"),
        )

    # the new protocol

    def instance(self, member: Member) -> dict[str, Any]:
        return {} if member.instance is None else {"instance": member.instance}

    def start(self, member: Member, /, **fields: Any) -> None:
        """The member joins by a heartbeat with epoch 0."""
        member.lives += 1
        named = {"member": f"{member.label}.{member.lives}"}
        if member.version == 0 and self.chance(0.7):
            named = {"member": ""}
        subscription: dict[str, Any] = {"topics": member.topics}
        if member.regex is not None:
            subscription = {"topics": self.pick(None, [], member.topics), "regex": member.regex}
        preferences = {"assignor": member.assignor, "rack": member.rack}
        self.add(
            "chb",
            member,
            version=member.version,
            **(
                named
                | {"epoch": 0, "rebalance": member.rebalance_ms, "owned": {}}
                | subscription
                | {name: value for name, value in preferences.items() if value is not None}
                | self.instance(member)
                | fields
            ),
        )

    def start_again(self, member: Member, errors: tuple[str, ...]) -> None:
        """The member joins again if its last heartbeat said that it has to."""
        self.start(member, member=self.pick("$", f"{member.label}.{member.lives + 1}"), when=list(errors))

    def beat(self, member: Member, owned: Any = "$", /, **fields: Any) -> None:
        """A heartbeat that says what the member owns."""
        full = {"rebalance": member.rebalance_ms, "topics": member.topics} if self.chance(0.25) else {}
        if full and member.regex is not None:
            full["regex"] = member.regex
        self.add(
            "chb",
            member,
            version=member.version,
            **(self.instance(member) | {"owned": owned} | full | fields),
        )

    def quit(self, member: Member, epoch: int = -1) -> None:
        self.add("chb", member, version=member.version, epoch=epoch, **self.instance(member))

    # the classic protocol

    def join(self, member: Member, /, **fields: Any) -> None:
        subscription: dict[str, Any] = {"topics": member.topics, "version": self.pick(0, 1, 2, 3)}
        if member.protocol == "cooperative-sticky" or self.chance(0.2):
            subscription |= {"owned": "$", "generation": "$", "version": self.pick(1, 2, 3)}
        protocols: list[Any] = [[member.protocol, subscription]]
        if self.chance(0.3):
            protocols.append(["roundrobin", subscription])
        if self.chance(0.02):
            protocols = [[member.protocol, self.pick("", "AAE=", "AAF/////")]]
        self.add(
            "join",
            member,
            **(
                {
                    "member": "$",
                    "session": member.session_ms,
                    "rebalance": member.rebalance_ms,
                    "version": self.pick(9, 9, 9, 5, 3) if member.instance is None else self.pick(9, 5),
                    "protocols": protocols,
                }
                | self.instance(member)
                | fields
            ),
        )

    def sync(self, member: Member, /, **fields: Any) -> None:
        how = self.pick("auto-consumer", "auto-consumer", "auto-consumer", "auto-consumer", "auto", None)
        plan = {} if how is None else {"assignments": how}
        self.add("sync", member, **(plan | self.instance(member) | fields))

    def classic_beat(self, member: Member, /, **fields: Any) -> None:
        self.add("heartbeat", member, **(self.instance(member) | fields))

    def classic_leave(self, member: Member, /, **fields: Any) -> None:
        self.add("leave", member, **(self.instance(member) | fields))
