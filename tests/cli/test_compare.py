"""`groupstorm compare`: its files, its answer, the variants that it names."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.command import groupstorm, refused

SMALL = ["--set", "members=4", "--set", "partitions=8", "--set", "start_ms=1000", "--set", "ready_ms=500"]


@pytest.mark.slow
def test_compare_runs_every_variant_and_says_the_difference(tmp_path: Path) -> None:
    one = ("--json", *SMALL, "--seeds", "1")
    result = groupstorm("compare", "rolling-deploy", *one, "--out", "c", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    content = json.loads(result.stdout)
    assert content == json.loads((tmp_path / "c" / "comparison.json").read_text())
    assert list(content) == ["preset", "seed", "variants", "answer"]
    assert list(content["variants"]) == ["eager", "cooperative", "static", "consumer"]
    for variant, figures in content["variants"].items():
        assert figures == json.loads((tmp_path / "c" / variant / "figures.json").read_text())
    only = groupstorm("compare", "rolling-deploy", "--variant", "static", *one, "--out", "d", cwd=tmp_path)
    assert list(json.loads(only.stdout)["variants"]) == ["static"]


@pytest.mark.slow
def test_a_comparison_leaves_nothing_of_an_older_one(tmp_path: Path) -> None:
    command = ["compare", "cold-start", "--out", "c", *SMALL[:4]]
    assert groupstorm(*command, "--seeds", "3", cwd=tmp_path).returncode == 0
    assert groupstorm(*command, "--variant", "no-delay", "--seeds", "2", cwd=tmp_path).returncode == 0
    assert {path.name for path in (tmp_path / "c").iterdir()} == {"no-delay", "comparison.json"}
    assert {path.name for path in (tmp_path / "c" / "no-delay").iterdir()} == {"seed-0", "seed-1"}
    assert groupstorm(*command, "--variant", "no-delay", "--seeds", "1", cwd=tmp_path).returncode == 0
    assert [*(tmp_path / "c" / "no-delay").glob("seed-*")] == []


@pytest.mark.slow
def test_compare_names_the_variants_that_meet_a_requirement(tmp_path: Path) -> None:
    command = ["compare", "cold-start", *SMALL[:4], "--out", "c", "--require"]
    some = groupstorm(*command, "settled_after_ms<16s", cwd=tmp_path)
    assert some.returncode == 0, some.stderr
    settled = {
        name: figures["settled_after_ms"]
        for name, figures in json.loads((tmp_path / "c" / "comparison.json").read_text())["variants"].items()
    }
    meeting = [name for name, value in settled.items() if value < 16_000]
    assert 0 < len(meeting) < len(settled)
    told = " ".join(some.stdout.split())
    assert all(name in told.rpartition("files in c")[2] for name in meeting)
    assert "settled_after_ms<16000" in told
    none = groupstorm(*command, "generations<1 for 50%", "--require", "generations<1", cwd=tmp_path)
    assert none.returncode == 1
    assert "no variant meets generations<1 for 50% and generations<1" in none.stderr
    assert "seed 0: generations is " in none.stderr


@pytest.mark.slow
def test_tables_come_in_other_formats(tmp_path: Path) -> None:
    command = ["compare", "cold-start", *SMALL[:4], "--seeds", "2", "--variant", "no-delay", "--out", "c"]
    rows = list(csv.DictReader(io.StringIO(groupstorm(*command, "--csv", cwd=tmp_path).stdout)))
    assert [(row["variant"], row["seed"]) for row in rows] == [("no-delay", "0"), ("no-delay", "1")]
    figures = json.loads((tmp_path / "c" / "no-delay" / "seed-1" / "figures.json").read_text())
    assert rows[1]["settled_after_ms"] == str(figures["settled_after_ms"])
    page = groupstorm(*command, "--markdown", cwd=tmp_path).stdout
    assert "| figure | no-delay |\n| :-- | --: |\n| generations | " in page
    assert "one of them at a time" in refused(groupstorm(*command, "--csv", "--json", cwd=tmp_path))


@pytest.mark.slow
def test_variants_that_cannot_settle_for_one_cause_are_named_once_with_what_it_costs(tmp_path: Path) -> None:
    named = ["--variant", "crashes", "--variant", "slower-than-the-poll-interval"]
    few = ["--seeds", "2", "--no-remedies", "--out", "x"]
    ran = groupstorm("compare", "poison-livelock", *named, *few, cwd=tmp_path)
    assert ran.returncode == 0
    assert ran.stderr.count("this configuration cannot settle") == 2, "once for both seeds"
    said, answer = (" ".join(text.split()) for text in (ran.stderr, ran.stdout))
    assert "because a record of topic-0-7 ends every process that reads it" in said
    assert "because a slow record of topic-0-7 takes 360 s (slow_records)" in said
    assert "crashes cannot settle because a record of topic-0-7 ends" in answer
    both = (
        "Not ranked are crashes and slower-than-the-poll-interval: the group did not come to rest (crashes: "
    )
    assert answer.count(both) == 1
    assert json.loads((tmp_path / "x" / "comparison.json").read_text())["answer"].count("; it costs ") == 2


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("session.timeout.ms: 1s", "variant bad: heartbeat.interval.ms: 3000 must be lower than"),
        ("partition.assignment.strategy: [stikcy]", "variant bad: assignor 'stikcy': did you mean sticky"),
        ("group.max.size: 1", "variant bad: group.max.size: 1: the broker refuses further members"),
        ("members: 0", "s.yaml: variants: bad: members: 0 lies outside"),
    ],
)
def test_an_error_of_one_variant_names_it(tmp_path: Path, settings: str, told: str) -> None:
    steps = "steps: [{at_ms: 0, do: start}]"
    (tmp_path / "s.yaml").write_text(f"{{name: s, variants: {{good: {{}}, bad: {{{settings}}}}}, {steps}}}")
    result = groupstorm("compare", "s.yaml", "--seeds", "1", cwd=tmp_path)
    assert result.returncode == 2
    assert told in result.stderr.splitlines()[-1]  # the progress of slow runs comes before


@pytest.mark.slow
def test_compare_with_a_broker_sets_virtual_beside_real(tmp_path: Path) -> None:
    quick = ["--set", "arrival_ms=200", "--set", "tail_ms=100", "--set", "record_rate=0"]
    quick += ["--set", "group.initial.rebalance.delay.ms=2000"]
    different: list[object] = [None]
    for attempt in range(3):  # on a busy machine members come one after the other
        if not different:
            break
        out = tmp_path / f"x{attempt}"
        result = groupstorm(
            "compare", "cold-start", "--on", "emulator", "--out", out.name, *SMALL[:4], *quick, cwd=tmp_path
        )
        assert result.returncode == 0, result.stderr
        assert "figure" in result.stdout
        variants = json.loads((out / "fidelity.json").read_text())["variants"]
        assert all((out / name / "real" / "trace.jsonl").is_file() for name in variants)
        generations = [
            [one[side]["generations"] for side in ("virtual", "real")] for one in variants.values()
        ]
        different = [pair for pair in generations if pair[0] != pair[1]]
    assert not different
