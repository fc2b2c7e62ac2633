"""Random rules and questions for an authorizer, and what ours and Kafka's StandardAuthorizer decide."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from groupstorm.broker.authorization import (
    Acl,
    Acls,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    Who,
)
from tests.conformance.programs.building import answers

PROGRAM = Path(__file__).with_name("Decisions.java")
SUPER_USERS = ("User:root", "User:CN=r, O=x")
#: As the name in a question: any resource of its type.
ANY = "*any*"
_NAMES = ("a", "ab", "abc", "abd", "b", "*", "ab*", "kafka-cluster")
_PREFIXES = ("a", "ab", "abc", "b", "*", "kafka-cluster")
_TYPES = (ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
_OPERATIONS = tuple(one for one in Operation if one not in (Operation.UNKNOWN, Operation.ANY))


class Question(NamedTuple):
    name: str
    host: str
    operation: Operation
    resource_type: ResourceType
    resource_name: str


class Case(NamedTuple):
    allows_without_acls: bool
    acls: Sequence[Acl]
    questions: Sequence[Question]


def draw_case(draw: random.Random) -> Case:
    operations = draw.sample(_OPERATIONS, 3)
    count = draw.choice((0, 1, 2, 3, 5, 8))
    acls = list(dict.fromkeys(_acl(draw, operations) for _ in range(count)))
    return Case(draw.random() < 0.3, acls, [_question(draw, operations) for _ in range(40)])


def _acl(draw: random.Random, operations: Sequence[Operation]) -> Acl:
    is_prefix = draw.random() < 0.4
    return Acl(
        draw.choice(_TYPES),
        draw.choice(_PREFIXES if is_prefix else _NAMES),
        PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        draw.choice(("User:alice", "User:alice", "User:*", "User:bob", "Group:alice")),
        draw.choice(("*", "*", "10.0.0.1", "10.0.0.2")),
        draw.choice((*operations, Operation.ALL)),
        draw.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
    )


def _question(draw: random.Random, operations: Sequence[Operation]) -> Question:
    asked = (*operations, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
    named = (*(name for name in _NAMES if name != "*"), "nobody's", ANY)
    return Question(
        draw.choice(("alice", "alice", "alice", "bob", "root", "ANONYMOUS")),
        draw.choice(("10.0.0.1", "10.0.0.2", "::1")),
        draw.choice(asked),
        draw.choice(_TYPES),
        draw.choice(named),
    )


def decide(case: Case) -> str:
    """Our decisions, a digit each."""
    acls = Acls()
    for acl in case.acls:
        acls.add(acl)
    authorizer = Authorizer(acls, SUPER_USERS, case.allows_without_acls)
    return "".join(str(int(_decide(authorizer, question))) for question in case.questions)


def _decide(authorizer: Authorizer, question: Question) -> bool:
    who = Who(f"User:{question.name}", question.host)
    if question.resource_name == ANY:
        return authorizer.allows_some(who, question.operation, question.resource_type)
    return authorizer.allows(who, question.operation, question.resource_type, question.resource_name)


def as_line(case: Case) -> str:
    """The case for `Decisions.java`."""
    rules = ";".join("|".join(_text(part) for part in acl) for acl in case.acls)
    questions = ";".join("|".join(_text(part) for part in question) for question in case.questions)
    return f"{str(case.allows_without_acls).lower()}\t{rules}\t{questions}"


def _text(part: object) -> str:
    return str(getattr(part, "name", part))


def ask_kafka(cases: Sequence[Case]) -> list[str]:
    """Kafka's decisions. Raises ProgramUnavailable."""
    return answers(PROGRAM, map(as_line, cases))


def record(path: Path, count: int = 300) -> None:
    """Write Kafka's decisions about the first cases."""
    lines = ask_kafka([draw_case(random.Random(seed)) for seed in range(count)])
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
