"""Decisions by rules: those of Kafka's StandardAuthorizer, and those that its documentation describes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.broker.authorization import (
    Acl,
    Acls,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    Who,
    read_super_users,
)
from groupstorm.problems import InputError
from tests.broker.authorization.__main__ import GOLDEN
from tests.broker.authorization.decisions import ask_kafka, decide, draw_case
from tests.needs import needed

ALICE = Who("User:alice", "10.0.0.1")
RECORDED = GOLDEN / "decisions.kafka-4.3.1.txt"


def test_decisions_are_those_of_kafka() -> None:
    expected = RECORDED.read_text("utf-8").split()
    assert [decide(draw_case(random.Random(seed))) for seed in range(len(expected))] == expected
    assert len(expected) == 300


@pytest.mark.slow
def test_kafka_decides_other_cases_as_we_do() -> None:
    cases = [draw_case(random.Random(seed)) for seed in range(10_000, 11_500)]
    with needed():
        expected = ask_kafka(cases)
    assert [decide(case) for case in cases] == expected


names = st.text("ab*", min_size=1, max_size=3)
operations = st.sampled_from(
    [Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL, Operation.ALTER_CONFIGS]
)
acls = st.builds(
    Acl,
    st.just(ResourceType.TOPIC),
    names,
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(["User:alice", "User:bob", "User:*"]),
    st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
    operations,
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)


@given(st.lists(acls, max_size=6, unique=True))
def test_rules_that_are_removed_decide_nothing_more(rules: list[Acl]) -> None:
    held = Acls()
    for rule in rules:
        held.add(rule)
    for rule in rules[::2]:
        held.remove(rule)
    fresh = Acls()
    for rule in rules[1::2]:
        fresh.add(rule)
    assert list(held) == list(fresh)
    for name in ("a", "ab", "b", "*"):
        for operation in Operation:
            question = (ALICE, operation, ResourceType.TOPIC, name)
            assert Authorizer(held).allows(*question) == Authorizer(fresh).allows(*question)


@pytest.mark.parametrize("text", ["alice", "User:", ":alice", "User:a;b"])
def test_super_users_are_principals(text: str) -> None:
    with pytest.raises(InputError, match=r"option super.users=.*expected User:NAME;User:NAME"):
        read_super_users("super.users", text)


def test_super_users_have_semicolons_between_them() -> None:
    text = "User:CN=a,O=b; User:alice;;User:alice"
    assert read_super_users("super.users", text) == ("User:CN=a,O=b", "User:alice")
