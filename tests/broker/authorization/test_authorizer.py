"""Decisions by rules: those of Kafka's StandardAuthorizer, and those that its documentation describes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.broker.authorization import (
    Acl,
    AclFilter,
    Acls,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    Who,
    read_super_users,
)
from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.problems import InputError
from groupstorm.turns import at_once
from tests.broker.authorization.__main__ import GOLDEN
from tests.broker.authorization.decisions import ask_kafka, decide, draw_case

ALICE = Who("User:alice", "10.0.0.1")
RECORDED = GOLDEN / "decisions.kafka-4.3.1.txt"


def test_decisions_are_those_of_kafka() -> None:
    expected = RECORDED.read_text("utf-8").split()
    assert [decide(draw_case(random.Random(seed))) for seed in range(len(expected))] == expected
    assert len(expected) == 300


@pytest.mark.slow
def test_kafka_decides_other_cases_as_we_do() -> None:
    cases = [draw_case(random.Random(seed)) for seed in range(10_000, 11_500)]
    try:
        expected = ask_kafka(cases)
    except (BrokerUnavailable, StopIteration) as missing:
        pytest.skip(f"needs Java and Kafka's jars: {missing}")
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
INCLUDED = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


@given(st.lists(acls, max_size=5), names, operations, st.booleans())
def test_matching_of_names_hosts_and_operations(
    rules: list[Acl], name: str, operation: Operation, allows_without: bool
) -> None:
    """Every rule is looked at, without an index."""
    held = Acls()
    for rule in rules:
        held.add(rule)
    about = [
        rule
        for rule in rules
        if (rule.pattern_type is PatternType.PREFIXED and name.startswith(rule.resource_name))
        or (rule.pattern_type is PatternType.LITERAL and rule.resource_name in (name, "*"))
    ]
    mine = [rule for rule in about if rule.principal != "User:bob" and rule.host in ("*", "10.0.0.1")]
    same = {operation, Operation.ALL}
    denied = any(rule.permission is Permission.DENY and rule.operation in same for rule in mine)
    allowed = any(
        rule.permission is Permission.ALLOW and rule.operation in same | INCLUDED.get(operation, set())
        for rule in mine
    )
    expected = not denied and (allowed or (allows_without and not about))
    authorizer = Authorizer(held, (), allows_without)
    assert authorizer.allows(ALICE, operation, ResourceType.TOPIC, name) == expected
    assert Authorizer(held, ("User:alice",)).allows(ALICE, operation, ResourceType.TOPIC, name)
    assert not Authorizer(held).allows(ALICE, operation, ResourceType.GROUP, name)


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


def test_a_filter_of_type_match_finds_the_rules_about_a_resource() -> None:
    def rule(name: str, pattern: PatternType) -> Acl:
        return Acl(ResourceType.TOPIC, name, pattern, "User:a", "*", Operation.READ, Permission.ALLOW)

    held = Acls()
    wanted = [
        rule("orders", PatternType.LITERAL),
        rule("*", PatternType.LITERAL),
        rule("ord", PatternType.PREFIXED),
    ]
    for one in (*wanted, rule("ord", PatternType.LITERAL), rule("orders-2", PatternType.PREFIXED)):
        held.add(one)
    found = AclFilter(
        ResourceType.TOPIC, "orders", PatternType.MATCH, None, None, Operation.ANY, Permission.ANY
    )
    assert at_once(held.matching(found)) == wanted
    assert at_once(held.matching(found._replace(pattern_type=PatternType.ANY))) == wanted[:1]


@pytest.mark.parametrize("text", ["alice", "User:", ":alice", "User:a;b"])
def test_super_users_are_principals(text: str) -> None:
    with pytest.raises(InputError, match=r"option super.users=.*expected User:NAME;User:NAME"):
        read_super_users("super.users", text)


def test_super_users_have_semicolons_between_them() -> None:
    text = "User:CN=a,O=b; User:alice;;User:alice"
    assert read_super_users("super.users", text) == ("User:CN=a,O=b", "User:alice")
