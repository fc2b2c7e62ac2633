from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from groupstorm.clients import events as member_events
from groupstorm.clients.streams import events as streams_events
from groupstorm.coordinator import events as coordinator_events
from groupstorm.report.story import GROUP_EVENTS, OVERVIEW_EVENTS, SENTENCES, Filter, tell
from groupstorm.storms import events as world_events
from groupstorm.storms.run import run
from groupstorm.storms.scenario import load
from groupstorm.trace.reader import Row, read_rows
from groupstorm.trace.rows import event_name

NOT_TOLD = {"requests_counted", "operation_failed", "group_deleted"}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder: Path = tmp_path_factory.mktemp("story") / "run"
    settings = {"members": 6, "partitions": 12}
    run(load("rolling-deploy").resolve("cooperative", 3, settings), folder)
    return list(read_rows(folder))


def story(rows: list[Row], **wanted: object) -> list[str]:
    return list(tell(rows, Filter(**wanted)))  # type: ignore[arg-type]  # the filter's own fields


def test_every_event_can_be_told() -> None:
    modules = (coordinator_events, member_events, streams_events, world_events)
    names = {event_name(event_type) for module in modules for event_type in module.Event.__args__}
    assert names - NOT_TOLD == set(SENTENCES)
    assert set(SENTENCES) >= GROUP_EVENTS | OVERVIEW_EVENTS


def test_the_overview_is_short_and_begins_and_ends_with_the_scenario(rows: list[Row]) -> None:
    lines = story(rows)
    assert "scenario   begins with 12 partitions" in lines[0]
    assert lines[-1].endswith("scenario   ends")
    assert len(lines) < len(rows) / 3
    assert any(
        re.search(r"round of \d+\.\d{3} s, 6 members, \d+ partitions? given up", line) for line in lines
    )


def test_a_partition_is_followed_from_owner_to_owner(rows: list[Row]) -> None:
    lines = story(rows, partition="topic-0-3")
    hops = [match for line in lines if (match := re.search(r"topic-0-3: (\S+) -> (\S+), un-owned", line))]
    assert len(hops) >= 2
    assert all(before[2] == after[1] for before, after in pairwise(hops))
    assert not any("topic-0-4" in line for line in lines)


def test_a_member_is_followed(rows: list[Row]) -> None:
    lines = story(rows, member="member-2")
    assert any("member-2   polls for the first time" in line for line in lines)
    assert not any(line.split(" s  ")[-1].startswith("member-3 ") for line in lines)


def test_time_is_cut_out(rows: list[Row]) -> None:
    whole, part = (
        story(rows, everything=True),
        story(rows, everything=True, from_us=60_000_000, to_us=70_000_000),
    )
    assert part
    assert set(part) <= set(whole)
    times = [float(line.split(" s ")[0]) for line in part if " s  " in line and line.lstrip()[0].isdigit()]
    assert 60 <= min(times) <= max(times) <= 70


def test_a_streams_application_is_told(tmp_path: Path) -> None:
    """Every kind of its events has a sentence that can be made, and the overview tells the main ones."""
    settings = {"members": 1, "partitions": 4, "topics": 1, "num.stream.threads": 1, "racks": 2}
    settings["first_hosts_have_state"] = False
    run(load("stateful-warmup").resolve("shipped", 0, settings), tmp_path / "run")
    rows = list(read_rows(tmp_path / "run"))
    overview = "\n".join(story(rows))
    for sentence in (
        "scenario   the application has 4 tasks",
        "instance-1 starts with 1 threads in rack-1, SubscriptionInfo 11",
        "has placed the tasks, 2 warm-ups: warm-ups are under way",
        "instance-1 is to warm up 0_1",
        "instance-1-StreamThread-1 has caught up with 0_2: 6.4 GB in 127.521 s",
        "asks for a rebalance: probing",
        "instance-0-StreamThread-1 suspends 0_2: revoked",
        "instance-1-StreamThread-1 restores 0_2 from its standby: 10.0 kB",
        "instance-1-StreamThread-1 runs 0_2",
    ):
        assert sentence in overview, sentence
    assert re.search(
        r"traffic    changelog: [\d.]+ GB, [\d.]+ MB of it between racks \(\$0\.\d{4}\)", overview
    )
    assert "does not fetch topic-0-0, topic-0-1" not in overview
    assert "does not fetch topic-0-0, topic-0-1" in "\n".join(story(rows, everything=True))
    of_instance = story(rows, member="instance-1")
    assert any("follows 0_1, 6," in line for line in of_instance)
    assert not any("instance-0-StreamThread-1 suspends" in line for line in of_instance)
