from __future__ import annotations

import json
import re
from itertools import chain, pairwise
from operator import itemgetter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from groupstorm.cli.commands import app
from groupstorm.problems import InputError
from groupstorm.report.story import GROUP_EVENTS, OVERVIEW_EVENTS, SENTENCES, Selection, sentence, story
from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import imported as imported_events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events import streams as streams_events
from groupstorm.trace.reader import Row, read_rows
from groupstorm.trace.rows import as_mapping, event_name
from tests.figures.tracing import SECOND, Trace, coordinator_trace

WITHOUT_SENTENCE = {"requests_counted", "operation_failed"}
#: The event of a share group that explanations show.
OF_SHARE_GROUPS = {"share_consumer_gone"}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder: Path = tmp_path_factory.mktemp("story") / "run"
    settings = {"members": 6, "partitions": 12}
    run(load("rolling-deploy").resolve("cooperative", 3, settings), folder)
    return list(read_rows(folder))


def lines_of(rows: list[Row], **selected: object) -> list[str]:
    return list(story(rows, Selection(**selected)))  # type: ignore[arg-type]  # the selection's own fields


def test_every_event_has_a_sentence() -> None:
    modules = (coordinator_events, member_events, streams_events, world_events, imported_events)
    names = {event_name(event_type) for module in modules for event_type in module.Event.__args__}
    assert (names - WITHOUT_SENTENCE) | OF_SHARE_GROUPS == set(SENTENCES)
    assert set(SENTENCES) >= GROUP_EVENTS | OVERVIEW_EVENTS


def test_the_overview_is_short_and_begins_and_ends_with_the_scenario(rows: list[Row]) -> None:
    lines = lines_of(rows)
    assert "scenario   begins with 12 partitions" in lines[0]
    assert lines[-1].endswith("scenario   ends")
    assert len(lines) < len(rows) / 3
    assert any(
        re.search(r"round of \d+\.\d{3} s, 6 members, \d+ partitions? given up", line) for line in lines
    )


def test_a_partition_is_followed_from_owner_to_owner(rows: list[Row]) -> None:
    lines = lines_of(rows, partition="topic-0-3")
    hops = [match for line in lines if (match := re.search(r"topic-0-3: (\S+) -> (\S+), un-owned", line))]
    assert len(hops) >= 2
    assert all(before[2] == after[1] for before, after in pairwise(hops))
    assert not any("topic-0-4" in line for line in lines)


def test_a_partition_of_a_storm_waits_from_the_first_start_for_its_first_owner(rows: list[Row]) -> None:
    started_us = next(row["time_us"] for row in rows if row["event"] == "member_started")
    owned = next(
        row for row in rows if row["event"] == "partitions_assigned" and "topic-0-3" in row["partitions"]
    )
    gap_s = (owned["time_us"] - started_us) / 1e6
    first = next(line for line in lines_of(rows, partition="topic-0-3") if "un-owned for" in line)
    assert first.strip() == f"topic-0-3: nobody -> {owned['member']}, un-owned for {gap_s:.3f} s over 1 round"


def test_a_member_is_followed(rows: list[Row]) -> None:
    lines = lines_of(rows, member="member-2")
    assert any("member-2   polls for the first time" in line for line in lines)
    assert not any(line.split(" s  ")[-1].startswith("member-3 ") for line in lines)


def test_time_is_cut_out(rows: list[Row]) -> None:
    whole, part = (
        lines_of(rows, everything=True),
        lines_of(rows, everything=True, from_us=60_000_000, to_us=70_000_000),
    )
    assert part
    assert set(part) <= set(whole)
    times = [float(line.split(" s ")[0]) for line in part if " s  " in line and line.lstrip()[0].isdigit()]
    assert 60 <= min(times) <= max(times) <= 70


def test_the_story_of_a_streams_application(tmp_path: Path) -> None:
    """Every kind of event has a sentence, and the overview has the main ones."""
    settings = {"members": 1, "partitions": 4, "topics": 1, "num.stream.threads": 1, "racks": 2}
    settings["first_hosts_have_state"] = False
    run(load("stateful-warmup").resolve("shipped", 0, settings), tmp_path / "run")
    rows = list(read_rows(tmp_path / "run"))
    overview = "\n".join(lines_of(rows))
    for words in (
        "scenario   the application has 4 tasks",
        "instance-1 starts with 1 threads in rack-1, SubscriptionInfo 11",
        "has placed the tasks, 2 warm-ups: warm-ups are under way",
        "instance-1 is to warm up 0_1",
        "asks for a rebalance: probing",
        "instance-0-StreamThread-1 suspends 0_2: revoked",
        "instance-1-StreamThread-1 restores 0_2 from its standby: 10.0 kB",
        "instance-1-StreamThread-1 runs 0_2",
    ):
        assert words in overview, sentence
    assert re.search(r"StreamThread-1 has caught up with 0_\d: 6\.4 GB in 1[23]\d\.\d{3} s", overview)
    assert re.search(
        r"traffic    changelog: [\d.]+ GB, [\d.]+ MB of it between racks \(\$0\.\d{4}\)", overview
    )
    assert "fetches nothing from topic-0-0 topic-0-1" not in overview
    assert "fetches nothing from topic-0-0 topic-0-1" in "\n".join(lines_of(rows, everything=True))
    of_instance = lines_of(rows, member="instance-1")
    assert any("follows 0_1, 6," in line for line in of_instance)
    assert not any("instance-0-StreamThread-1 suspends" in line for line in of_instance)


def of_group(group: str, shift_s: float = 0) -> list[tuple[float, Row]]:
    """A coordinator's rows of a group in which a second member joins; without their seq."""
    trace = coordinator_trace("range")
    rows = [(at_us / SECOND + shift_s, source, event) for at_us, source, event in trace.rows]
    return [
        (at_s, as_mapping(0, int(at_s * SECOND), source, event) | {"group": group})
        for at_s, source, event in rows
    ]


def served(*groups: list[tuple[float, Row]]) -> list[Row]:
    """The rows of several groups in the order of time, as `serve --trace` writes them."""
    merged = sorted(chain(*groups), key=itemgetter(0))
    return [dict(row) | {"seq": seq} for seq, (_, row) in enumerate(merged)]


def test_rounds_belong_to_their_group() -> None:
    """Two groups rebalance at the same time: each round lasts as long as in a trace of its own."""
    rows = served(of_group("alpha"), of_group("beta", 0.5), of_group("gamma", 1))
    alone = [line for line in lines_of(served(of_group("alpha"))) if "round of" in line]
    assert [line.strip() for line in alone] == ["round of 3.000 s, 1 member", "round of 3.000 s, 1 member"]
    for group in ("alpha", "beta", "gamma"):
        rounds = [line for line in lines_of(rows, groups=frozenset({group})) if "round of" in line]
        assert rounds == alone
    together = lines_of(rows, group_width=5)
    assert sum("round of 3.000 s" in line for line in together) == 6
    assert all(line[15:22].strip() in ("alpha", "beta", "gamma") for line in together)


def test_a_round_names_the_members_of_the_group_not_the_answers() -> None:
    """A member that joins twice in one round is one member."""
    trace = Trace(has_member_rows=False)
    trace.start(0, "a")
    trace.state_to(0, "PreparingRebalance", 0)
    trace.state_to(1, "CompletingRebalance", 1)
    trace.join(1, "a", 1)
    trace.join(2, "a", 1)
    trace.state_to(3, "Stable", 1)
    rows: list[Row] = [as_mapping(seq, *row) for seq, row in enumerate(trace.rows)]
    assert [line.strip() for line in lines_of(rows) if "round of" in line] == ["round of 3.000 s, 1 member"]


def test_the_gap_of_a_partition_belongs_to_its_group(rows: list[Row]) -> None:
    other: list[Row] = [dict(row) | {"group": "other", "time_us": row["time_us"] + 1} for row in rows]
    both = sorted([*rows, *other], key=lambda row: row["time_us"])
    alone = [line for line in lines_of(rows, partition="topic-0-3") if "un-owned for" in line]
    assert alone
    mixed = [line for line in lines_of(both, partition="topic-0-3") if "un-owned for" in line]
    assert sorted(mixed) == sorted(2 * alone)


def test_names_that_are_not_there(tmp_path: Path) -> None:
    rows = served(of_group("alpha"), of_group("beta", 0.5))
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def refusal(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["trace", str(tmp_path), *arguments])
        assert isinstance(result.exception, InputError), result.output
        return str(result.exception)

    assert refusal("--group", "gamma") == "--group gamma: not in the trace; there are: alpha, beta"
    assert refusal("--group", "alpa") == "--group alpa: not in the trace; near it: alpha"
    assert refusal("--member", "c") == "--member c: not in the trace; there are: a, b"
    assert refusal("--partition", "t-7") == "--partition t-7: not in the trace; near it: t-1, t-0"
    assert "no row of a member in this time names it" in refusal("--partition", "t-1")
    assert refusal("--from", "3", "--to", "2").startswith("--to 2: expected at least 3")
    assert refusal("--from", "nan") == "--from nan: expected seconds below 9e+12"
    assert refusal("--to", "inf") == "--to inf: expected seconds below 9e+12"
    result = CliRunner().invoke(app, ["trace", str(tmp_path), "--group", "beta", "--member", "b"])
    assert result.exit_code == 0
    assert "b          is added to the group: new-member" in result.output
    assert "alpha" not in result.output


def test_a_row_that_no_story_tells_of_is_named_by_its_event() -> None:
    counted = {"event": "requests_counted", "api": "OffsetCommit", "error": "ILLEGAL_GENERATION", "count": 3}
    assert sentence(counted) == "requests_counted 3 OffsetCommit ILLEGAL_GENERATION"
    assert sentence({"event": "scenario_ended"}) == "scenario   ends"


def test_a_static_member_is_not_called_another_name() -> None:
    """Spring counts the group.instance.ids of a process from 1 and its client ids from 0."""
    row = {"event": "member_replaced", "member": "pod-0-0", "instance": "pod-0-1"}
    assert sentence(row).endswith("is back under a new id (group.instance.id pod-0-1)")


@pytest.mark.parametrize(
    ("cause", "said"), [("join", "g is created"), ("loaded", "g is loaded by its coordinator")]
)
def test_a_group_that_its_coordinator_loads_was_there_before(cause: str, said: str) -> None:
    assert sentence({"event": "group_created", "group": "g", "cause": cause}) == f"group      {said}"
