"""`groupstorm check-assignor` as a user meets it: the report, JSON, exit codes; code that misbehaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import groupstorm, refused

PLUG_IN = """
from __future__ import annotations

from itertools import cycle


def every(topics, members):
    wanted = sorted({topic for member in members.values() for topic in member.topics if topic in topics})
    return [(topic, number) for topic in wanted for number in range(topics[topic].partitions)]


def deal(topics, members, order):
    answer = {member: [] for member in order}
    for partition, member in zip(every(topics, members), cycle(order)):
        answer[member].append(partition)
    return answer


def good(topics, members):
    print("what a plug-in prints is not in the way")
    return deal(topics, members, sorted(members))


def by_set_order(topics, members):
    return deal(topics, members, list(set(members)))


def never_answers(topics, members):
    while len(members) > 1:
        pass
    return deal(topics, members, list(members))


good.needs_equal_subscriptions = True
by_set_order.needs_equal_subscriptions = True
never_answers.needs_equal_subscriptions = True
"""


@pytest.mark.slow
def test_what_ours_promises_holds(tmp_path: Path) -> None:
    result = groupstorm("check-assignor", "range", "--count", "8", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "range: 8 histories" in result.stdout
    assert "held in all 8" in result.stdout
    assert "100 x 1,000" in result.stdout
    assert "smallest failing history" not in result.stdout
    again = groupstorm(
        "check-assignor", "range", "--count", "8", "--no-speed", "--all", cwd=tmp_path, PYTHONHASHSEED="77"
    )
    assert again.returncode == 0
    assert "fewest moves: the smallest failing history that was found" in again.stdout


@pytest.mark.slow
def test_a_broken_promise_exits_1_with_the_smallest_history(tmp_path: Path) -> None:
    arguments = ["check-assignor", "two-phase-sticky/java-sketch", "--count", "15", "--no-speed"]
    result = groupstorm(*arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert "breaks its promises: no partition left out, balance" in result.stderr
    assert "without an owner" in result.stdout
    assert "more than 1 apart" in result.stdout
    written = groupstorm(*arguments, "--json", cwd=tmp_path)
    assert written.returncode == 1
    report = json.loads(written.stdout)
    assert report["assignor"] == "two-phase-sticky/java-sketch"
    assert report["kept"] is False
    verdicts = {row["property"]: row["verdict"] for row in report["properties"]}
    assert verdicts["balance"] == "broken"
    assert verdicts["no partition twice"] == "held"


def test_a_function_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUG_IN)
    result = groupstorm("check-assignor", "mine:good", "--count", "15", "--no-speed", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["kept"] is True


def test_other_hash_seeds_find_an_assignor_that_walks_a_set(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUG_IN)
    result = groupstorm("check-assignor", "mine:by_set_order", "--count", "15", "--no-speed", cwd=tmp_path)
    assert result.returncode == 1
    assert "breaks its promises: deterministic" in result.stderr
    assert "another process, with another hash seed, answers otherwise" in result.stdout


@pytest.mark.slow
def test_an_assignor_that_never_answers_is_broken_off(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUG_IN)
    arguments = ["--count", "3", "--no-speed", "--limit-ms", "40"]
    result = groupstorm("check-assignor", "mine:never_answers", *arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert "=> NoAnswer: none within 40 ms of CPU time" in result.stdout
    assert "2. b joins" in result.stdout


def test_what_is_not_there_exits_2(tmp_path: Path) -> None:
    told = refused(groupstorm("check-assignor", "sticki", cwd=tmp_path))
    assert "assignor 'sticki': did you mean sticky?" in told
    assert "module:attribute" in told
    assert "No module named" in refused(groupstorm("check-assignor", "nowhere:x", cwd=tmp_path))
