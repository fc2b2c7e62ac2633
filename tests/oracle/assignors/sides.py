"""The assignors that are held against Kafka: those of the consumer, and those of the broker."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from groupstorm.assignors import cases
from groupstorm.assignors.server import cases as servers
from tests.oracle.assignors import consumer_cases, golden, server_cases, sizes
from tests.oracle.assignors.differential import Answer, Verdict
from tests.oracle.assignors.sizes import Size
from tests.oracle.assignors.validity import consumer_is_valid, server_is_valid
from tests.oracle.comparison import plain
from tests.oracle.running import Ask, Case, as_line

Answerer = Callable[[Case], Answer]

#: Our answers as Kafka's, its defects included, and without them.
COMPATIBLE, MENDED = "OURS, bug_compat", "OURS"


class MembersSide(NamedTuple):
    """A `Side` whose cases are members with their topics."""

    command: str
    title: str
    assignors: tuple[str, ...]
    draw: Callable[[random.Random, str, str, Size], Case]
    answer: Answerer
    is_valid: Callable[[Case, Answer], bool]
    form: Callable[[Case, Answer], str]

    def random_cases(self, seed: int, count: int) -> Iterator[Case]:
        """The first cases of a seed, the assignors in turn; each depends on seed and number alone."""
        for number in range(count):
            generator = random.Random(f"{self.command}:{seed}:{number}")
            assignor = self.assignors[number % len(self.assignors)]
            yield self.draw(generator, f"{seed}-{number}", assignor, sizes.any_size(generator))

    def judge(self, case: Case, kafkas: Answer) -> Verdict:
        """With ``bug_compat`` ours has to be Kafka's; without, Kafka's if that is valid, else a valid one."""
        compatible = self.answer({**case, "bug_compat": True})
        mended = self.answer(case)
        kafka_is_valid = self.is_valid(case, kafkas)
        wrong = ""
        if compatible != kafkas:
            wrong = "with bug_compat it is not Kafka's"
        elif kafka_is_valid and mended != kafkas:
            wrong = "it is not Kafka's, which is valid"
        elif not kafka_is_valid and not self.is_valid(case, mended):
            wrong = "it is not valid, nor is Kafka's"
        return Verdict(kafkas, {COMPATIBLE: compatible, MENDED: mended}, wrong, kafka_is_valid)

    def size(self, case: Case) -> int:
        return len(case["members"])

    @property
    def measured_in(self) -> str:
        return "members"

    @property
    def golden_path(self) -> Path:
        return golden.path(self)

    def write_golden(self, ask: Ask) -> int:
        return golden.write(self, ask)


def _consumers_answer(case: Case) -> Answer:
    return plain(cases.answer(cases.read_case(as_line(case).encode(), "case")))


def _servers_answer(case: Case) -> Answer:
    return plain(servers.answer(servers.read_case(as_line(case).encode(), "case")))


def _consumers_form(case: Case, answer: Answer) -> str:
    known = any(any(entry.get("racks", ())) for entry in case["topics"].values())
    racks = ", racks" if known and any(member.get("rack") for member in case["members"]) else ""
    if case["assignor"] == "roundrobin":
        return "plain"
    if "constrained" not in answer:
        return ("plain" if case["assignor"] == "range" or "error" not in answer else "refused") + racks
    return ("constrained" if answer["constrained"] else "general") + racks


def _servers_form(case: Case, answer: Answer) -> str:
    return "homogeneous" if len({frozenset(m["topics"]) for m in case["members"]}) == 1 else "heterogeneous"


CONSUMER = MembersSide(
    "consumer",
    "The assignors of Kafka 4.3.1's consumer and ours",
    consumer_cases.ASSIGNORS,
    consumer_cases.draw_case,
    _consumers_answer,
    consumer_is_valid,
    _consumers_form,
)

SERVER = MembersSide(
    "server",
    "The assignors of Kafka 4.3.1's broker and ours",
    server_cases.ASSIGNORS,
    server_cases.draw_case,
    _servers_answer,
    server_is_valid,
    _servers_form,
)
