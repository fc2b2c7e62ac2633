"""The benchmark of the assignors measures what it says: tiny groups, the same bytes as Kafka's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchmarks import assignors
from benchmarks.assignorspeed import java
from benchmarks.assignorspeed.rounds import PHASES, BenchmarkGroup, Names, Size, Subscribed
from groupstorm.assignors import registry
from groupstorm.assignors.userdata import decode_assignment, decode_subscription
from tests.needs import needed
from tests.oracle.build import OracleUnavailable, build

TINY = (Size(4, 12, 3, Names.SCATTERED), Size(4, 12, 3, subscribed=Subscribed.RANDOM))


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignors, "SMALL", TINY)
    # a full collection goes through all objects of thousands of tests, and the benchmark makes two a row
    idle = SimpleNamespace(**dict.fromkeys(("collect", "freeze", "unfreeze"), lambda: None))
    monkeypatch.setattr(assignors, "gc", idle)


def test_without_java_ours_are_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert assignors.main(["--small", "--repeat", "1", "--without-java"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert "ours" in head
    # eight assignors for equal subscriptions, five for unequal ones, three phases each
    assert len(lines) == (8 + 5) * len(PHASES)
    assert not any("equal" in line[47:] for line in lines)  # nothing to be equal to


def test_where_java_is_missing_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable() -> None:
        raise OracleUnavailable("no java was found: install a JDK")

    monkeypatch.setattr(assignors, "build", unavailable)
    assert assignors.main(["--small", "--repeat", "1", "--assignor", "sticky"]) == 0
    assert "install a JDK" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_members_come_with_what_they_were_assigned(name: str) -> None:
    """One more joins, then a tenth (here: one in ten) leaves; a cooperative group settles in between."""
    group = BenchmarkGroup(Size(10, 60, 3), registry.get(name))
    assert [len(round_.members) for round_ in group.timed().values()] == [10, 11, 10]
    assert len(group.rounds) == (3 if name == "sticky" else 5)
    for before, after in zip(group.rounds, group.rounds[1:], strict=False):
        for member, _, data in after.members:
            subscription = decode_subscription(data)
            if member not in before.answer:
                continue
            given = set(decode_assignment(before.answer[member]).partitions)
            told = registry.get(name).owned_data(subscription)  # type: ignore[attr-defined]  # the sticky ones
            assert set(told.partitions) == given


def test_another_answer_than_kafkas_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class NotOurs:
        warm_up = java.WarmUp(0, 0)

        def load(self, assignor: str, topics: object, rounds: dict) -> dict[str, str]:
            return dict.fromkeys(rounds, "another digest")

        def run_ms(self, phase: str) -> float:
            return 1.0

    row = assignors.measure(TINY[0], "range", 1, NotOurs())  # type: ignore[arg-type]  # as far as it is used
    assert row.equal is False
    assignors.print_row(row)
    assert "DIFFERENT" in capsys.readouterr().out


@pytest.mark.slow
def test_beside_kafkas_java(capsys: pytest.CaptureFixture[str]) -> None:
    with needed():
        build()
    assert assignors.main(["--small", "--repeat", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("  equal\n") == len(TINY) * len(java.KAFKAS)
    assert "DIFFERENT" not in printed
    assert "KAFKA-9987: sticky of kafka-clients 2.5.0" in printed
    assert "KAFKA-12464: phase 1" in printed
