"""The scenario that is made from a trace does what the trace says: of storms, and of their logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.problems import InputError
from groupstorm.storms.runs.choices import AS_IT_WAS
from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load, parse
from groupstorm.trace.reader import read_rows
from groupstorm.whatif.agreement import Agreement, repeat, replay
from groupstorm.whatif.drafting import Draft, draft_of, scenario_text
from groupstorm.whatif.knobs import changes_of, variants_of
from groupstorm.whatif.reading import read_run
from tests.soaking import one_in
from tests.whatif.storms import KNOWN, SIZE, as_logs, drafted, replayed, storm
from tools.log_printing.logs import LogKind, as_log

QUICK = {"start_ms": {"exactly": 7_000}, "ready_ms": {"exactly": 6_000}}
#: One restart is over before the next one begins.
APART = {**QUICK, "ready_ms": {"exactly": 10_000}}
STORMS = [
    ("rolling-deploy", "eager", QUICK),
    ("rolling-deploy", "cooperative", QUICK),
    ("rolling-deploy", "static", QUICK),
    ("slow-member-hostage", "eager", {}),
    ("slow-member-hostage", "cooperative-short-poll-interval", {}),
    ("cold-start", "delay-3s", {}),
    pytest.param("deploy-and-crash", "cooperative", {}, marks=pytest.mark.slow),
    pytest.param("deploy-and-crash", "eager", {}, marks=pytest.mark.slow),
]
CONSUMER_STORMS = [
    ("rolling-deploy", "consumer", QUICK),
    ("slow-member-hostage", "consumer-short-poll-interval", {}),
]


def has_rollout(draft: Draft) -> bool:
    return any(one.step["do"] == "rolling-restart" for one in draft.steps)


def apart(found: Agreement) -> list[str]:
    return [line.what for line in found.lines if not line.agrees]


@pytest.mark.parametrize(("preset", "variant", "settings"), one_in(2, [*CONSUMER_STORMS, *STORMS]))
def test_a_storm(tmp_path: Path, preset: str, variant: str, settings: dict[str, int]) -> None:
    found, draft = replayed(storm(tmp_path / "run", preset, variant, **settings), tmp_path)
    assert apart(found) == []
    compared = {line.what for line in found.lines}
    assert compared >= {"completed rounds", "longest round", "un-owned partition-seconds"}
    assert has_rollout(draft) == (preset == "rolling-deploy")


@pytest.mark.parametrize(("preset", "variant", "settings"), one_in(3, STORMS))
def test_the_logs_of_a_storm(tmp_path: Path, preset: str, variant: str, settings: dict[str, int]) -> None:
    run = storm(tmp_path / "run", preset, variant, **settings)
    resolved = load(preset).resolve(variant, 1, SIZE).settings
    known = {name: resolved.integer(name) for name in KNOWN}
    found, draft = replayed(as_logs(run, tmp_path / "logs"), tmp_path, **known)
    assert apart(found) == []
    assert has_rollout(draft) == (preset == "rolling-deploy")


def steps(draft: Draft, *do: str) -> list[dict[str, Any]]:
    return [dict(one.step) for one in draft.steps if one.step["do"] in do]


def test_a_deployment_is_one_step_with_the_durations_that_were_observed(tmp_path: Path) -> None:
    """7 s from the end to the first poll(), then 2 s until ready, and 500 ms from SIGTERM to close()."""
    run = storm(tmp_path / "run", "rolling-deploy", "eager", **QUICK)
    _, draft = drafted(as_logs(run, tmp_path / "logs"))
    [step] = steps(draft, "rolling-restart")
    assert [round(ms, -2) for ms in step["start_ms"]] == [7_000] * 4
    assert [round(ms, -2) for ms in step["ready_ms"]] == [6_500] * 4
    assert steps(draft, "stop") == []


LATER = """
name: later
settings:
  members: 3
  partitions: 6
  start_ms: {exactly: 7s}
  ready_ms: {exactly: 10s}
  member_settings:
    - {members: [0], name: z-first}
    - {members: [1], name: a-slow, settings: {process_ms: 40, session.timeout.ms: 12s}}
steps:
  - {at_ms: 0, do: start}
  - {at_ms: 60s, do: rolling-restart}
  - {at_ms: 5m, do: add, count: 1}
"""


def test_members_keep_the_places_and_settings_that_their_names_have(tmp_path: Path) -> None:
    """Names sort otherwise, and one comes after the deployment: neither reverses its order."""
    run(parse(LATER, "yaml", "x").resolve(None, 1, {}), tmp_path / "run")
    _, draft = drafted(tmp_path / "run")
    assert draft.names == ("z-first", "a-slow", "member-2", "member-3")
    assert "order" not in draft.settings
    assert has_rollout(draft)
    [*_, last] = draft.settings["member_settings"].value
    assert last == {"members": [1], "settings": {"process_ms": 40, "session.timeout.ms": "12s"}}


SET = """
name: set
settings: {members: 3, partitions: 6, deployment: statefulset, start_ms: {exactly: 7s}}
steps:
  - {at_ms: 0, do: start}
  - {at_ms: 60s, do: rolling-restart}
"""


def test_a_stateful_set_stays_one_and_is_advised_no_surge(tmp_path: Path) -> None:
    run(parse(SET, "yaml", "x").resolve(None, 1, {}), tmp_path / "run")
    _, draft, again = repeat(tmp_path / "run", None, {})
    assert draft.names == ("member-0", "member-1", "member-2")
    assert has_rollout(draft)
    tried = {one.name for one in changes_of(again.resolve(AS_IT_WAS, 0, {}))}
    assert tried.isdisjoint({"max_surge=1, max_unavailable=0", "order=reverse"})
    assert "max_unavailable=25%" in tried


def test_a_slow_machine_stays_with_its_pod(tmp_path: Path) -> None:
    """Every pod of a Deployment gets a new name: places are others than the storm's."""
    slow = SET.replace("statefulset", "deployment, machines: [{members: [2], factor: 3}]")
    run(parse(slow, "yaml", "x").resolve(None, 1, {}), tmp_path / "run")
    found, draft = replayed(tmp_path / "run", tmp_path)
    [machine] = draft.settings["machines"].value
    assert [draft.names[number] for number in machine["members"]] == ["member-2", "member-2-v2"]
    [sentence] = found.not_compared
    assert sentence.endswith("the replays count each of 3 stops as one, and the run has 1 deployment")
    with pytest.raises(InputError, match=r"^max_surge: the replay starts and stops each process by itself, "):
        variants_of(load(str(tmp_path / "whatif.yaml")), {"max_surge": 2}, ())


BACKLOG = """
name: backlog
settings: {members: 3, partitions: 6, record_rate: 4, process_ms: 150, start_ms: {exactly: 3s}}
steps:
  - {at_ms: 0, do: start}
  - {at_ms: 60s, do: crash, members: [0]}
  - {at_ms: 112s, do: stop, members: [1]}
"""


def test_a_storm_works_on_its_records_once(tmp_path: Path) -> None:
    """Batches of what waited for the dead member hold the round up: the records say so, and no step."""
    file = tmp_path / "run" / "whatif.yaml"
    figures = run(parse(BACKLOG, "yaml", "x").resolve(None, 1, {}), tmp_path / "run").figures
    _, draft, _ = repeat(tmp_path / "run", None, {})
    assert steps(draft, "busy", "pause") == []
    file.write_text(scenario_text(draft, "a test", {}), "utf-8")
    again = replay((str(file), AS_IT_WAS, 1)).figures
    assert again.staleness_max_seconds == pytest.approx(figures.staleness_max_seconds, rel=0.1)


def test_work_before_a_stop_moves_with_no_rollout(tmp_path: Path) -> None:
    """Each process drains as it is stopped, and a step in which all go sooner would not change that."""
    settings = {"drain_ms": {"exactly": 4_000}}
    run(parse(SET, "yaml", "x").resolve(None, 1, settings), tmp_path / "run")
    _, draft, again = repeat(tmp_path / "run", None, {})
    assert not has_rollout(draft)
    with pytest.raises(InputError, match=r"^max_unavailable: the replay starts and stops each process"):
        variants_of(again, {"max_unavailable": 2}, ())


def test_settings_of_records_say_nothing_where_no_record_is_known(tmp_path: Path) -> None:
    imported = as_logs(storm(tmp_path / "run", "rolling-deploy", "eager", members=2), tmp_path / "logs")
    records: dict[str, Any] = {"max.poll.records": 50}
    with pytest.raises(InputError, match=r"^max.poll.records: no record arrives in the replay, where"):
        variants_of(repeat(imported, None, {}).scenario, records, ())
    known = {"record_rate": 5}
    assert len(variants_of(repeat(imported, None, known).scenario, records, ())) == 1


def test_a_slow_batch_is_found_in_logs(tmp_path: Path) -> None:
    """Member 3 works from 60 s on for 240 s; it leaves when max.poll.interval.ms, a minute, is over."""
    run = storm(tmp_path / "run", "slow-member-hostage", "eager-short-poll-interval")
    found, draft = replayed(as_logs(run, tmp_path / "logs"), tmp_path, **{"max.poll.interval.ms": 60_000})
    [step] = steps(draft, "busy")
    assert draft.names[step["members"][0]] == "member-3"
    assert step["at_ms"] == pytest.approx(60_000, abs=1_000)
    assert step["for_ms"] == pytest.approx(240_000, abs=1_000)
    words = "what max.poll.records does to members that worked without poll() (1 time, for up to 240 s)"
    assert any(one.startswith(words) for one in found.not_compared)


@pytest.mark.slow
def test_a_brokers_log_alone_needs_what_its_reader_knows(tmp_path: Path) -> None:
    """It names neither partitions nor the assignor. With the default, an eager one, no round follows another
    as it did: the replay does not agree."""
    run = storm(tmp_path / "run", "rolling-deploy", "cooperative", **APART)
    imported = as_logs(run, tmp_path / "logs", LogKind.BROKER)
    _, draft = drafted(imported)
    [problem] = draft.problems
    assert "--known topic_partitions" in problem
    topics = {"topic_partitions": {"t": 12}}
    eager, _ = replayed(imported, tmp_path, **topics)
    assert "completed rounds" in apart(eager)
    known = {**topics, "partition.assignment.strategy": ["cooperative-sticky"]}
    found, draft = replayed(imported, tmp_path, **known)
    assert apart(found) == []
    assert found.not_compared
    assert draft.settings["topic_partitions"].comment == "given: --known"


def test_the_file_is_a_scenario_whose_every_value_says_how_it_is_known(tmp_path: Path) -> None:
    run = storm(tmp_path / "run", "cold-start", "delay-3s")
    _, draft = drafted(as_logs(run, tmp_path / "logs"))
    text = scenario_text(draft, "logs", {})
    assert parse(text, "yaml", "x").resolve(None, 0, {}).settings.integer("members") == 4
    body = text.split("settings:\n")[1].replace("variants:\n  as-it-was: {}\nsteps:\n", "")
    words = ("observed: ", "inferred: ", "assumed: ", "given: ")
    assert [line for line in body.splitlines() if not any(f"# {word}" in line for word in words)] == []
    assert "session.timeout.ms: 45000  # assumed: the default; 'ConsumerConfig values'" in text


@pytest.mark.parametrize(
    ("preset", "sentence"),
    one_in(
        3,
        [
            ("coordinator-failover", "lost its coordinator"),
            ("eager-to-cooperative", "releases"),
            ("poison-livelock", "slow_records"),
        ],
    ),
)
def test_what_no_scenario_repeats_is_a_problem(tmp_path: Path, preset: str, sentence: str) -> None:
    _, draft = drafted(storm(tmp_path / "run", preset, members=6))
    assert any(sentence in problem for problem in draft.problems)


FAULTY = """
name: faulty
settings: {members: 2, partitions: 4}
steps:
  - {at_ms: 0, do: start}
  - {at_ms: 30s, do: disconnect, members: [0], for_ms: 20s}
"""


def test_the_storms_own_scenario_answers_for_what_no_replay_repeats(tmp_path: Path) -> None:
    """A connection is away for less than the session: no row of the group says so."""
    run(parse(FAULTY, "yaml", "x").resolve(None, 1, {}), tmp_path / "run")
    with pytest.raises(InputError) as refused:
        repeat(tmp_path / "run", None, {})
    assert "the network failed (disconnect) (at 30.0 s: row " in str(refused.value)
    assert str(refused.value).endswith(f"groupstorm compare {tmp_path}/run/scenario.yaml --set NAME=VALUE")


def test_no_file_repeats_a_storm_with_an_assignor_of_ones_own(tmp_path: Path) -> None:
    code = "examples.rendezvous:rendezvous"
    strategy: dict[str, Any] = {"partition.assignment.strategy": [code]}
    _, draft = drafted(storm(tmp_path / "run", "cold-start", **strategy))
    assert draft.problems == [f"members have an assignor of your own ({code}), which a file cannot name"]


@pytest.mark.slow
def test_what_was_not_so_does_not_agree(tmp_path: Path) -> None:
    """The first round took 6 s, and not half a minute."""
    run = storm(tmp_path / "run", "rolling-deploy", "cooperative", **QUICK)
    imported = as_logs(run, tmp_path / "logs")
    found, _ = replayed(imported, tmp_path, **{"group.initial.rebalance.delay.ms": 30_000})
    assert "longest round" in apart(found)


def test_a_trace_that_begins_in_the_middle_of_a_groups_life(tmp_path: Path) -> None:
    """The logs begin at 50 s: all four members are in the group when the first process stops. They join in
    the minute before, which counts for nothing."""
    run = storm(tmp_path / "run", "rolling-deploy", "cooperative", **APART)
    rows = list(read_rows(run))
    files = [tmp_path / f"{kind}.log" for kind in LogKind]
    for kind, file in zip(LogKind, files, strict=True):
        lines = [line for line in as_log(rows, kind) if line[12:20] >= "00:00:50"]
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    import_logs(find_logs([str(file) for file in files]), tmp_path / "imported", Options())
    found, draft = replayed(tmp_path / "imported", tmp_path)
    assert apart(found) == []
    [first] = steps(draft, "start")
    assert (first["at_ms"], first["members"]) == (0, [0, 1, 2, 3])
    assert steps(draft, "rolling-restart")[0]["at_ms"] == draft.lead_ms


def test_a_trace_of_the_coordinator_alone(tmp_path: Path) -> None:
    """As `serve --trace` writes it: without rows of members, un-owned time is not known."""
    run = storm(tmp_path / "run", "rolling-deploy", "cooperative", **APART)
    rows = [dict(row) for row in read_rows(run) if row["source"] == "coordinator"]
    (tmp_path / "trace.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    found, draft = replayed(tmp_path / "trace.jsonl", tmp_path)
    assert apart(found) == []
    assert "no row of the members" in found.not_compared[0]
    assert has_rollout(draft)


def test_a_group_lives_until_its_last_member_has_gone_for_good(tmp_path: Path) -> None:
    """All are away from 60 s to 90 s, and from 120 s to the end at 200 s: four partitions have no owner.
    Nor have they for the 6 s of the first join phase."""
    file = tmp_path / "twice.yaml"
    file.write_text(
        "question: What does it cost?\n"
        "settings: {members: 2, partitions: 4, least_duration_ms: 200s, tail_ms: 0, settle_timeout_ms: 10s}\n"
        "variants: {one: {}}\n"
        "steps:\n"
        "  - {at_ms: 0, do: start}\n"
        "  - {at_ms: 60s, do: stop, members: all}\n"
        "  - {at_ms: 90s, do: start}\n"
        "  - {at_ms: 120s, do: stop, members: all}\n"
    )
    found = replay((str(file), "one", 0))
    whole, lived = found.figures.unowned_partition_seconds, found.lived.unowned_partition_seconds
    assert whole is not None
    assert lived is not None
    assert 4 * (6 + 30) < lived < 4 * (7 + 40)
    assert whole - lived == pytest.approx(4 * 80, abs=4)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("topic_partitions", "topic-0:4", "'topic-0:4': expected topics with partitions, or null"),
        ("assign_ms", "soon", "'soon' is no duration"),
        ("partition", 4, "no such setting: did you mean partitions"),
    ],
)
def test_what_a_setting_cannot_be_is_refused_by_its_name(
    name: str, value: object, message: str, tmp_path: Path
) -> None:
    run = storm(tmp_path / "run", "rolling-deploy", "eager", members=2)
    with pytest.raises(InputError, match=rf"^--known {name}: {message}"):
        drafted(run, **{name: value})


@pytest.mark.parametrize("name", ["2026-03-04", "20260304", "on", "1e3"])
def test_a_folder_may_have_a_name_that_yaml_takes_for_something_else(tmp_path: Path, name: str) -> None:
    draft = draft_of(read_run(storm(tmp_path / "run", "cold-start")), name, {})
    scenario = parse(scenario_text(draft, name, {"no": {}}), "yaml", name)
    assert (scenario.name, list(scenario.variants)) == (name, ["as-it-was", "no"])
