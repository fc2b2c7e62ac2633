"""Every argument of the testing interface is checked: the message names it and what was expected."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import groupstorm
from groupstorm.problems import InputError
from groupstorm.testing import Broker, EmulatedBroker, Group, secured
from groupstorm.testing.arguments import listed
from groupstorm.testing.chosen import chosen_broker
from tests.testing.members import AT_ONCE, GROUP, RawMember, topics_of

# groupstorm.broker


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ({"orders": 6, "payments": 1}, {"orders": 6, "payments": 1}),
        (["orders:6", "payments"], {"orders": 6, "payments": 2}),
        (("orders",), {"orders": 2}),
        (iter(["orders"]), {"orders": 2}),
        (None, {}),
        ([], {}),
    ],
)
def test_topics_are_a_mapping_or_a_list(topics: Any, expected: dict[str, int]) -> None:
    with groupstorm.broker(topics, {"num.partitions": 2}) as broker:
        assert topics_of(broker) == expected


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"topics": {"orders": "6"}}, "topics: orders: '6': expected the number of its partitions"),
        ({"topics": {"orders": True}}, "topics: orders: True: expected"),
        ({"topics": {1: 6}}, "topics: 1: expected the name of a topic"),
        ({"topics": {"a/b": 1}}, "topic 'a/b': a name is"),
        ({"topics": {"orders": 0}}, "topic orders: a topic has 1 partition or more"),
        ({"topics": ["a/b"]}, "topic 'a/b': a name is"),
        ({"topics": "orders"}, "topics: 'orders': expected {'orders': 6}, or a list: ['orders:6'"),
        ({"topics": 3}, "topics: 3: expected {'orders': 6}"),
        ({"topics": [3]}, "topics: 3: expected a name, or a name and its partitions: 'orders:6'"),
        ({"topics": ["orders:x"]}, "topics: 'orders:x': expected a name and its partitions"),
        ({"topics": ["orders:-1"]}, "topics: 'orders:-1': expected a name and its partitions"),
        ({"topics": ["orders:"]}, "topics: 'orders:': expected a name and its partitions"),
        ({"topics": ["orders", "orders:2"]}, "topics: 'orders:2': orders was named before"),
        ({"settings": ["num.partitions"]}, "settings: ['num.partitions']: expected {'num.partitions': 3}"),
        ({"settings": {1: 2}}, "settings: 1: expected the name of one of Kafka's settings"),
        ({"settings": {"num.partitions": None}}, "settings: num.partitions: None: expected a text"),
        ({"settings": {"num.partition": 1}},
         "option num.partition: not known here; did you mean num.partitions"),
        ({"settings": {"log.dirs": "/data"}},
         "option log.dirs: a setting of Kafka's that would do nothing here; leave it out"),
        ({"port": -1}, "port: -1: expected a number from 0 to 65535"),
        ({"port": "9092"}, "port: '9092': expected a number from 0 to 65535"),
        ({"control": 70_000}, "control: 70000: expected a number from 0"),
        ({"control": "yes"}, "control: 'yes': expected a number from 0"),
        ({"brokers": 0}, "brokers: 0: expected a number from 1 to 100"),
        ({"brokers": "3"}, "brokers: '3': expected a number from 1 to 100"),
        ({"as_version": "5"}, "as_version: '5': expected one of 2.8, 3.9, 4.x"),
        ({"as_version": 4}, "as_version: 4: expected one of 2.8, 3.9, 4.x"),
        ({"trace": 5}, "trace: 5: expected a path"),
        ({"security": {"alice": "secret"}},
         "security: dict: expected what groupstorm.testing.secured(...) gives"),
    ],
)  # fmt: skip
def test_arguments_of_a_broker(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        groupstorm.broker(**arguments)
    assert str(refusal.value).startswith(sentence)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "secured: expected tls_cert, sasl_users, or both"),
        ({"tls_cert": 5}, "tls_cert: 5: expected a path"),
        ({"tls_cert": "", "tls_key": "k"}, "tls_cert: '': expected a path"),
        ({"tls_key": "k"}, "tls_key: k: expected tls_cert beside it"),
        ({"sasl_users": ["alice"]}, "sasl_users: expected {'alice': 'her password'}"),
        ({"sasl_users": {}}, "sasl_users: expected {'alice': 'her password'}"),
        ({"sasl_users": {"\u00e4": "x"}}, "sasl_users: '\u00e4': expected a name in printable ASCII"),
        ({"sasl_users": {"alice": None}}, "sasl_users: alice: expected a password"),
        ({"sasl_users": {"alice": "a\0b"}}, "sasl_users: alice: expected a password"),
    ],
)
def test_arguments_of_secured(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        secured(**arguments)
    assert str(refusal.value).startswith(sentence)
    assert "secret" not in str(refusal.value)


def test_arguments_of_the_marker() -> None:
    with pytest.raises(InputError, match=r"^topic: no argument of a broker; there are topics, settings, "):
        chosen_broker("emulator", {"topic": {"orders": 1}})
    with pytest.raises(InputError, match=r"^topics: 'orders': expected"):
        chosen_broker("jvm", {"topics": "orders"})


# the calls of a broker and of a group


@pytest.fixture
def broker() -> Iterator[EmulatedBroker]:
    with groupstorm.broker(["orders:2"], AT_ONCE) as running, RawMember(running) as member:
        member.join_alone([0, 1])
        yield running


Call = Callable[[Any, Any], object]

CALLS: list[tuple[str, Call, str]] = [
    ("create_topic", lambda b, _: b.create_topic(5), "name: 5: expected a text"),
    ("create_topic", lambda b, _: b.create_topic("x", "2"), "partitions: '2': expected a number from 1"),
    ("create_topic", lambda b, _: b.create_topic("x", 0), "partitions: 0: expected a number from 1"),
    ("topic", lambda b, _: b.topic(5), "name: 5: expected a text"),
    ("group", lambda b, _: b.group(""), "name: '': expected a text"),
    ("fail", lambda b, _: b.fail("Heartbeat", "X"), "error: 'X': expected one of Kafka's names"),
    ("fail", lambda b, _: b.fail("Heartbeat", 27), "error: 27: expected a text"),
    ("fail", lambda b, _: b.fail(12, "NOT_COORDINATOR"), "api: 12: expected a text"),
    ("delay", lambda b, _: b.delay("Beat", 1), "api: 'Beat': no API of that name is served"),
    ("delay", lambda b, _: b.delay("Heartbeat", "1"), "delay_ms: '1': expected a number from 0 to"),
    ("delay", lambda b, _: b.delay("Heartbeat", -1), "delay_ms: -1: expected a number from 0 to"),
    ("disconnect", lambda b, _: b.disconnect("Fetch", count=-1), "count: -1: expected a number from 1"),
    ("disconnect", lambda b, _: b.disconnect("Fetch", count="2"), "count: '2': expected a number from 1"),
    ("disconnect", lambda b, _: b.disconnect("Fetch", count=True), "count: True: expected a number from 1"),
    ("disconnect", lambda b, _: b.disconnect("Fetch", group="g"), "group: Fetch requests name no group"),
    ("disconnect", lambda b, _: b.disconnect("JoinGroup", group=1), "group: 1: expected a text"),
    ("disconnect", lambda b, _: b.disconnect("Fetch", client_id=1), "client_id: 1: expected a text"),
    (
        "drop_connections",
        lambda b, _: b.drop_connections("nope"),
        "client_id: 'nope': no client of that name has sent a request; those that have: raw",
    ),
    ("drop_connections", lambda b, _: b.drop_connections(5), "client_id: 5: expected a text"),
    (
        "move_coordinator",
        lambda b, _: b.move_coordinator("nope"),
        "group: 'nope': there is no such group; there are: readers",
    ),
    ("move_coordinator", lambda b, _: b.move_coordinator(None), "group: None: expected a text"),
    ("move_coordinator", lambda b, _: b.move_coordinator(GROUP, 2), "broker: 2: expected one of 1"),
    ("move_coordinator", lambda b, _: b.move_coordinator(GROUP, "1"), "broker: '1': expected one of 1"),
    ("expire_member", lambda b, _: b.expire_member("nope", "raw"), "group: 'nope': there is no such group"),
    ("expire_member", lambda b, _: b.expire_member(GROUP, 1), "member: 1: expected a text"),
    ("expire_member", lambda b, _: b.expire_member(GROUP, "x"), "member: 'x' is not in group readers: in it"),
    ("in_flight", lambda b, _: b.in_flight("nope"), "group: 'nope': there is no such group"),
    ("in_flight", lambda b, _: b.in_flight(None), "group: None: expected a text"),
    ("pause", lambda b, _: b.pause(7), "broker: 7: expected one of 1"),
    ("resume", lambda b, _: b.resume(True), "broker: True: expected one of 1"),
    ("wait_stable", lambda _, g: g.wait_stable("2"), "members: '2': expected a number from 0"),
    ("wait_stable", lambda _, g: g.wait_stable(-1), "members: -1: expected a number from 0"),
    ("wait_stable", lambda _, g: g.wait_stable(0), "members: 0: a group without members is never Stable"),
    ("wait_stable", lambda _, g: g.wait_stable(partitions=-1), "partitions: -1: expected a number from 0"),
    ("wait_stable", lambda _, g: g.wait_stable(timeout_s="1"), "timeout_s: '1': expected seconds from 0"),
    ("wait_stable", lambda _, g: g.wait_stable(timeout_s=-1), "timeout_s: -1: expected seconds from 0"),
    ("wait_stable", lambda _, g: g.wait_stable(timeout_s=float("nan")), "timeout_s: nan: expected seconds"),
    ("wait_reaches", lambda _, g: g.wait_reaches("stable"), "state: 'stable': expected one of Empty, "),
    ("wait_reaches", lambda _, g: g.wait_reaches(["Stable"]), "state: ['Stable']: expected one of Empty, "),
    (
        "wait_until",
        lambda _, g: g.wait_until("Stable"),
        "condition: 'Stable': expected a function of the group",
    ),
    ("wait_until", lambda _, g: g.wait_until(bool, what=7), "what: 7: expected a text"),
    ("committed", lambda _, g: g.committed(1, 0), "topic: 1: expected a text"),
    ("committed", lambda _, g: g.committed("orders", "0"), "partition: '0': expected a number from 0"),
    ("committed", lambda _, g: g.committed("orders"), "partition: None: expected a number from 0"),
    ("wait_caught_up", lambda _, g: g.wait_caught_up(1), "topics: 1: expected a text"),
    ("wait_caught_up", lambda _, g: g.wait_caught_up(timeout_s=-1), "timeout_s: -1: expected seconds from 0"),
    ("configure", lambda _, g: g.configure({1: 2}), "settings: 1: expected the name of one of Kafka's"),
    ("configure", lambda _, g: g.configure({"a.b": 1}), "settings: Unknown group config name: a.b"),
    ("slow", lambda b, _: b.slow(-1), "delay_ms: -1: expected a number from 0"),
    ("slow", lambda b, _: b.slow(5, "heartbeat"), "api: 'heartbeat': no API of that name is served"),
    ("produce", lambda b, _: b.produce("nope", "a"), "topic: 'nope': there is no such topic; there are: "),
    ("produce", lambda b, _: b.produce("orders", 1), "values: 1: expected a text, bytes or None"),
    ("produce", lambda b, _: b.produce("orders", "a", key=1), "key: 1: expected a text, bytes or None"),
    ("produce", lambda b, _: b.produce("orders", "a", headers=[]), "headers: []: expected {'name': 'value'}"),
    ("produce", lambda b, _: b.produce("orders", "a", headers={1: ""}), "headers: 1: expected the name of a"),
    ("produce", lambda b, _: b.produce("orders", "a", partition=-1), "partition: -1: expected a number"),
    ("produce", lambda b, _: b.produce("orders", "a", partition=9), "partition: 9: expected a number"),
    ("produce", lambda b, _: b.produce("orders", "a" * 2_000_000), "orders-0: MESSAGE_TOO_LARGE: a record"),
    ("records", lambda b, _: b.records("nope"), "topic: 'nope': there is no such topic; there are: "),
    ("records", lambda b, _: b.records("orders", 9), "partition: 9: expected a number from 0 to"),
]


@pytest.mark.parametrize(("call", "sentence"), [(call, sentence) for _, call, sentence in CALLS])
def test_arguments_of_the_calls(broker: EmulatedBroker, call: Call, sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        call(broker, broker.group(GROUP))
    assert str(refusal.value).startswith(sentence)
    assert "\n" not in str(refusal.value)


async def test_arguments_of_the_calls_that_are_awaited(broker: EmulatedBroker) -> None:
    with pytest.raises(InputError, match=r"^members: '2': expected"):
        await broker.group(GROUP).stable("2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^state: 'stable': expected"):
        await broker.group(GROUP).reaches("stable")
    with pytest.raises(InputError, match=r"^timeout_s: -1: expected"):
        await broker.fail("Heartbeat", "NOT_COORDINATOR").used_up(timeout_s=-1)


def test_every_call_that_takes_an_argument_is_tried_above() -> None:
    """A new call needs a test of its arguments."""
    awaited = {
        "stable": "wait_stable",
        "reaches": "wait_reaches",
        "until": "wait_until",
        "caught_up": "wait_caught_up",
    }
    there = set()
    for kind in (Broker, Group):
        for name, call in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") and len(inspect.signature(call).parameters) > 1:
                there.add(awaited.get(name, name))
    assert there == {name for name, _, _ in CALLS}


def test_a_broker_that_does_not_run_is_not_acted_on(tmp_path: Path) -> None:
    broker = groupstorm.broker()
    with pytest.raises(InputError, match=r"^the emulator: use it inside `with` or `async with`"):
        broker.move_coordinator(GROUP)
    with pytest.raises(InputError, match=r"^the emulator: use it inside `with` or `async with`"):
        _ = broker.bootstrap_servers
    with broker:
        pass
    with pytest.raises(InputError, match=r"^the emulator: a broker runs once: make another one"), broker:
        pass
    with pytest.raises(InputError, match=r"^the emulator: use it inside `with` or `async with`"):
        broker.drop_connections()


def test_many_names_are_counted() -> None:
    assert listed([]) == "none"
    assert listed(["b", "a"]) == "a, b"
    assert listed(map(str, range(10, 23))).endswith("18, 19 and 3 more")
