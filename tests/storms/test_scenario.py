from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from groupstorm.assignors.streams.leader import TASK_ASSIGNORS
from groupstorm.assignors.streams.model import StandbyPlacement, Strategy, TagsOrRacks, TradeOff
from groupstorm.assignors.userdata.streams import EARLIEST_PROBEABLE_VERSION, LATEST_SUPPORTED_VERSION
from groupstorm.clients.profiles import JAVA, LATENESS, PROFILES
from groupstorm.problems import InputError
from groupstorm.storms.scenario import setting_names
from groupstorm.storms.scenario.files import load, parse
from groupstorm.storms.scenario.preset_files import preset_names, preset_summaries
from groupstorm.storms.scenario.setting_names import SETTINGS
from groupstorm.storms.scenario.settings import BY_NAME, Settings
from groupstorm.storms.scenario.steps import CONSUMER_STEPS, STEP_KINDS, STREAMS_STEPS

MINIMAL = "steps: [{at_ms: 0, do: start}]"


def test_there_are_presets_and_each_has_a_question_and_variants() -> None:
    assert {"rolling-deploy", "cold-start", "slow-member-hostage"} <= set(preset_names())
    for summary in preset_summaries():
        preset = load(summary.name)
        assert summary == (preset.name, preset.question, tuple(preset.variants))
        assert preset.question.endswith("?")
        assert len(preset.variants) >= 2
        for variant in preset.variants:
            preset.resolve(variant, 1, {})


def test_a_resolved_scenario_is_a_file_that_resolves_to_itself(tmp_path: Path) -> None:
    resolved = load("rolling-deploy").resolve(
        "static", 7, {"members": 12, "net_latency_ms": {"uniform": [1, 2]}}
    )
    file = tmp_path / "scenario.yaml"
    file.write_text(resolved.as_yaml())
    again = load(str(file)).resolve(None, None, {})
    assert again.as_yaml() == resolved.as_yaml()
    assert (again.seed, again.variant) == (7, "static")
    assert again.steps == resolved.steps


def test_a_toml_file_gives_the_same_scenario_as_a_yaml_file() -> None:
    toml = 'name = "x"\n[settings]\nmembers = 3\n[[steps]]\nat_ms = 0\ndo = "start"\n'
    as_yaml = "name: x\nsettings: {members: 3}\nsteps: [{at_ms: 0, do: start}]"
    from_toml = parse(toml, "toml", "f").resolve(None, 1, {})
    assert from_toml.as_yaml() == parse(as_yaml, "yaml", "f").resolve(None, 1, {}).as_yaml()


def test_the_command_line_overrides_the_variant_the_settings_and_the_defaults_in_this_order() -> None:
    scenario = parse(
        "settings: {members: 2, partitions: 3}\nvariants: {v: {members: 4}}\n" + MINIMAL, "yaml", "f"
    )
    resolved = scenario.resolve("v", 1, {"partitions": 6})
    assert resolved.settings.integer("members") == 4
    assert resolved.settings.integer("partitions") == 6
    assert resolved.settings.integer("topics") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps: []", "steps"),
        ("[]", "expected names with values"),
        ("a: [", "not YAML"),
        ("nonsense: 1\n" + MINIMAL, "nonsense"),
        ("settings: {sessoin.timeout.ms: 3}\n" + MINIMAL, "did you mean session.timeout.ms"),
        ("settings: {members: 0}\n" + MINIMAL, "members: 0 lies outside 1"),
        ("settings: {members: many}\n" + MINIMAL, "'many' is no whole number"),
        ("settings: {enable.auto.commit: 3}\n" + MINIMAL, "neither true nor false"),
        ("settings: {order: up}\n" + MINIMAL, "ordinal, reverse, random"),
        ("settings: {session.timeout.ms: 2000}\n" + MINIMAL, "must be lower than session.timeout.ms"),
        ("settings: {session.timeout.ms: 5000}\n" + MINIMAL, "the broker allows 6000"),
        ("settings: {net_latency_ms: 9000}\n" + MINIMAL, "net_latency_ms"),
        ("settings: {max_unavailable: 0}\n" + MINIMAL, "max_unavailable"),
        ("settings: {partition.assignment.strategy: 'os:system'}\n" + MINIMAL, "a file cannot name code"),
        ("settings: {partition.assignment.strategy: [range, range]}\n" + MINIMAL, "twice"),
        ("steps: [{at_ms: 0, do: explode}]", "explode"),
        ("steps: [{do: start}]", "needs at_ms"),
        ("steps: [{at_ms: 0, do: start}, {at_ms: 5, do: busy}]", "needs for_ms, members"),
        (
            "steps: [{at_ms: 0, do: start}, {at_ms: 5, do: crash, members: [99]}]",
            "from 0 to 9, as members is 10: the step needs 100 or more",
        ),
        ("steps: [{at_ms: later, do: start}]", "'later'"),
        ("steps: [{at_ms: -1, do: start}]", "-1"),
        ("steps: [{at_ms: 0, do: start, colour: red}]", "colour"),
        (
            "steps: [{at_ms: 0, do: start}, {at_ms: 1, do: add-partitions, topic: x, partitions: 3}]",
            "topic-0",
        ),
        ("steps: [{at_ms: 1, do: rolling-restart}]", "nobody ever starts"),
        ("steps: [{at_ms: 1, do: rolling-restart, start_ms: 5}]", "start_ms: 5: expected a list of mill"),
        ("steps: [{at_ms: 5, do: create-topic, topic: a b, partitions: 1}]", "'a b'"),
        ("steps: [{at_ms: 5, do: delete-topic, topic: topic-9}]", "'topic-9'"),
        ("steps: [{at_ms: 5, do: create-topic, topic: x}]", "needs partitions"),
        ("settings: {topic_pattern: (}\n" + MINIMAL, "topic_pattern: '(': no regular expression"),
        ("seed: -3\n" + MINIMAL, "seed: -3"),
        ("variant: x\n" + MINIMAL, "'x' is not one of default"),
        ("name: ../../evil\n" + MINIMAL, "name: '../../evil': expected letters, digits"),
        ("name: .hidden\n" + MINIMAL, "name: '.hidden'"),
        ("name: /etc/passwd\n" + MINIMAL, "name: '/etc/passwd'"),
        ("name: ''\n" + MINIMAL, "name: ''"),
        ("name: 2026\n" + MINIMAL, "name: 2026: expected letters, digits"),
        (f"name: {'x' * 101}\n" + MINIMAL, "at most 100 characters"),
        ("variants: {../x: {}}\n" + MINIMAL, "variants: '../x': expected letters, digits"),
        ("variants: {1: {}, '1': {}}\n" + MINIMAL, "variants: 1: expected letters"),
        ("settings:\n  members: 3\n  members: 4\n" + MINIMAL, "line 3: members: a second value"),
    ],
)
def test_the_message_of_an_error_names_the_wrong_value(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        parse(text, "yaml", "file.yaml").resolve(None, None, {})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_name_that_is_neither_preset_nor_file_is_refused() -> None:
    with pytest.raises(InputError, match="rolling-deploy"):
        load("rolling-deplyo")
    with pytest.raises(InputError, match="no such file"):
        load("nowhere.yaml")


def test_the_choices_of_the_table_are_those_of_the_code() -> None:
    names = setting_names
    choices: dict[str, Iterable[str]] = {
        "client_profile": PROFILES, "task.assignor": TASK_ASSIGNORS, "trade_off": TradeOff,
        "rack.aware.assignment.strategy": Strategy, "standby_placement": StandbyPlacement,
        "tags_or_racks": TagsOrRacks, "auto.offset.reset": ("latest", names.EARLIEST, names.NONE),
        "commits": (names.BACKGROUND, names.BATCH, names.RECORD, names.INTERVAL, names.NEVER),
        "deployment": (names.PROCESSES, names.DEPLOYMENT, names.STATEFUL_SET),
        "ready_when": (names.POLLS, names.ASSIGNED, names.RUNS),
        "autoscaler": (names.NO_AUTOSCALER, names.HPA, names.KEDA),
    }  # fmt: skip
    assert {name: BY_NAME[name].allowed for name in choices} == {
        name: tuple(map(str, allowed)) for name, allowed in choices.items()
    }
    assert BY_NAME[LATENESS].default == JAVA.defaults[LATENESS]
    version = BY_NAME["metadata_version"]
    assert (version.least, version.most) == (EARLIEST_PROBEABLE_VERSION, LATEST_SUPPORTED_VERSION)
    assert version.default == LATEST_SUPPORTED_VERSION


def test_every_default_is_a_value_that_its_setting_allows() -> None:
    written = dict(Settings().written())
    assert list(written) == [row.name for row in SETTINGS if row.in_files]
    again = dict(Settings(("", written)).written())
    assert again == written


@pytest.mark.parametrize("application", ["consumer", "streams"])
def test_steps_are_written_as_they_are_read(application: str) -> None:
    fields: dict[str, Any] = {
        "members": [1], "for_ms": 5, "over_ms": 7, "count": 2, "topic": "topic-0", "partitions": 30,
        "rack": 1,
        "append_ms": 3000, "direction": "both", "api": "Fetch", "error": "NOT_COORDINATOR", "delay_ms": 50,
    }  # fmt: skip
    if application == "consumer":
        fields["settings"] = {"session.timeout.ms": 40_000}
    unknown = STREAMS_STEPS if application == "consumer" else CONSUMER_STEPS
    settings = {"application": application} | ({"racks": 2} if application == "streams" else {})
    steps = [
        {
            "at_ms": 0,
            "do": kind.name,
            **{name: fields[name] for name in sorted(kind.required | kind.optional) if name in fields},
        }
        for kind in STEP_KINDS
        if kind.name not in unknown
    ]
    text = yaml.safe_dump({"steps": steps, "settings": settings})
    resolved = parse(text, "yaml", "f").resolve(None, 1, {})
    assert [step.written() for step in resolved.steps] == steps
