"""Third parties' assignors: defaults, declarations, and wrong ones refused in one line."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.contract import (
    AssignmentRefused,
    AssignmentResult,
    RebalanceProtocol,
    TopicMetadata,
    subscription_user_data,
)
from groupstorm.assignors.custom import INVALID_ASSIGNMENT, adapt
from groupstorm.assignors.promises import Balance, Promises
from groupstorm.assignors.userdata import Assignment, Subscription, TopicPartition
from groupstorm.cli.app import Stopped
from groupstorm.problems import ExitCode, InputError

TOPICS = {"t": TopicMetadata(2)}
MEMBERS = {"a": Subscription(topics=("t",)), "b": Subscription(topics=("t",))}


def answering(answer: object) -> Any:
    return adapt(lambda topics, members: answer, "the test")


def all_to_a(topics: dict, members: dict) -> dict:
    return {"a": [(topic, n) for topic in topics for n in range(topics[topic].partitions)]}


def test_a_function_alone_is_an_assignor() -> None:
    assignor = adapt(all_to_a, "the test")
    assert assignor.name == "all_to_a"
    assert assignor.protocols == (RebalanceProtocol.EAGER,)
    assert assignor.needs_equal_subscriptions is False
    assert assignor.promises == Promises()
    assert assignor.user_data((), 1) is None
    assert subscription_user_data(assignor, Assignment((), b"x"), 1) is None
    expected = {"a": [TopicPartition("t", 0), TopicPartition("t", 1)], "b": []}
    assert assignor.assign(TOPICS, MEMBERS).partitions == expected


def test_an_assignor_may_use_up_what_it_is_given() -> None:
    def takes_out(topics: dict, members: dict) -> dict:
        return {members.popitem()[0]: [(topic, 0)] for topic in list(topics) if topics.pop(topic)}

    assignor = adapt(takes_out, "the test")
    for _ in range(2):
        assert assignor.assign(TOPICS, MEMBERS).partitions == {"a": [], "b": [TopicPartition("t", 0)]}


def test_an_object_declares_in_attributes_and_may_send_user_data() -> None:
    told = AssignmentResult({"a": [("t", 0)], "b": {("t", 1)}}, user_data=b"epoch 2", epoch=2)  # type: ignore[dict-item,list-item]
    plug_in = SimpleNamespace(
        name="mine",
        protocols="cooperative",
        needs_equal_subscriptions=True,
        promises=Promises(Balance.TO_ONE),
        assign=lambda topics, members: told,
        user_data=lambda owned, generation: b"first",
        user_data_after=lambda assignment, generation: assignment.user_data + b" in %d" % generation,
    )
    assignor = adapt(plug_in, "the test")
    assert (assignor.name, assignor.protocols) == ("mine", (RebalanceProtocol.COOPERATIVE,))
    assert assignor.needs_equal_subscriptions
    assert assignor.promises.balance is Balance.TO_ONE
    result = assignor.assign(TOPICS, MEMBERS)
    assert result.partitions == {"a": [TopicPartition("t", 0)], "b": [TopicPartition("t", 1)]}
    assert (result.user_data, result.epoch) == (b"epoch 2", 2)
    assert subscription_user_data(assignor, None, -1) == b"first"
    assert subscription_user_data(assignor, Assignment((), b"x"), 7) == b"x in 7"


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"assign": 3}, "expected a function of topics and subscriptions"),
        ({"name": ""}, "name: '': expected a text of 1 to 32767 bytes"),
        ({"name": 7}, "name: 7: expected a text"),
        ({"protocols": ()}, "protocols: (): expected one or both of 'eager', 'cooperative'"),
        ({"protocols": ("lazy",)}, "protocols: ('lazy',): expected one or both"),
        ({"protocols": 5}, "protocols: 5: expected one or both"),
        ({"needs_equal_subscriptions": "yes"}, "needs_equal_subscriptions: 'yes': expected True or False"),
        ({"promises": {"balance": 1}}, "promises: {'balance': 1}: expected a groupstorm.assignors.promises"),
    ],
)
def test_a_wrong_declaration_is_named_with_its_value(declared: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as raised:
        adapt(SimpleNamespace(**{"assign": all_to_a} | declared), "the test")
    assert str(raised.value).startswith("the test: ")
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "the answer is None, expected members with their partitions"),
        ([("t", 0)], "expected members with their partitions"),
        ({"c": []}, "the answer has a member 'c', who is not in the group"),
        ({"a": "t-0"}, "a is given 't-0', expected a list of (topic, partition)"),
        ({"a": 5}, "a is given 5, expected a list"),
        ({"a": ["t-0"]}, "a is given 't-0', expected (topic, partition)"),
        ({"a": [("t", -1)]}, "a is given ('t', -1), expected (topic, partition)"),
        ({"a": [("t", 1 << 31)]}, "expected (topic, partition)"),
        ({"a": [("t", True)]}, "a is given ('t', True), expected (topic, partition)"),
        (AssignmentResult({}, user_data="text"), "user_data gave 'text', expected bytes or None"),  # type: ignore[arg-type]
    ],
)
def test_an_answer_that_is_none_is_refused(answer: object, told: str) -> None:
    with pytest.raises(AssignmentRefused) as raised:
        answering(answer).assign(TOPICS, MEMBERS)
    assert raised.value.error == INVALID_ASSIGNMENT
    assert told in str(raised.value)


class NoWeights(Exception):
    """An error of a plug-in's own."""


@pytest.mark.parametrize("error", [ZeroDivisionError("no"), FileNotFoundError("no"), NoWeights("no")])
def test_what_it_throws_is_told_with_its_place(error: Exception) -> None:
    def throws(*_: object) -> None:
        raise error

    throws.user_data = throws  # type: ignore[attr-defined]
    assignor = adapt(throws, "the test")
    told = rf"^{type(error).__name__}: throws: no \(test_custom\.py, line \d+\)$"
    with pytest.raises(AssignmentRefused, match=told):
        assignor.assign(TOPICS, MEMBERS)
    with pytest.raises(InputError, match=f"^user_data of an assignor: {told[1:]}"):
        assignor.user_data((), 3)


def test_a_refusal_stays_one() -> None:
    def refuses(topics: dict, members: dict) -> None:
        raise AssignmentRefused("TooMany", "two are too many")

    with pytest.raises(AssignmentRefused, match="TooMany: two are too many"):
        adapt(refuses, "the test").assign(TOPICS, MEMBERS)


def test_an_exit_is_an_error_of_the_assignor_and_a_stop_signal_is_none() -> None:
    def exits(topics: dict, members: dict) -> None:
        sys.exit(2)

    def is_stopped(topics: dict, members: dict) -> None:
        raise Stopped(ExitCode.TERMINATED)

    with pytest.raises(AssignmentRefused, match=r"SystemExit: exits: 2 \(test_custom\.py, line"):
        adapt(exits, "the test").assign(TOPICS, MEMBERS)
    with pytest.raises(Stopped):
        adapt(is_stopped, "the test").assign(TOPICS, MEMBERS)
