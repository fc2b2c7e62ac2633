"""`groupstorm report` as a user meets it: files, pictures, Markdown, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.command import ROOT, groupstorm, refused, tool

SMALL = ["--set", "members=4", "--set", "partitions=8", "--set", "start_ms=7s", "--set", "ready_ms=500"]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    wanted = ["--variant", "eager", "--variant", "static", "--seeds", "2"]
    ran = groupstorm("compare", "rolling-deploy", *SMALL, *wanted, "--out", "both", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    over = ["--over", "session.timeout.ms=10s..30s:10s", "--over", "variant=static,eager", "--seeds", "2"]
    ran = groupstorm("sweep", "rolling-deploy", *SMALL, *over, "--out", "s", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return folder


def content_of(file: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', file.read_text("utf-8"))
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def shown(file: Path) -> ET.Element:
    """The part of a page that a browser shows without a script, which is XML, too."""
    found = re.search(r"<main>.*</main>", file.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return ET.fromstring(found[0])


def answer_of(page: ET.Element) -> list[str]:
    """The sentences of the answer, in their order."""
    lists = [part for part in page.findall("header//ul") if part.get("class") != "patterns"]
    return [one.text or "" for one in (*page.findall("header/p"), *(li for part in lists for li in part))]


def figures_of(page: ET.Element) -> dict[str, list[ET.Element]]:
    """Measure, in words -> its cells."""
    return {row.findtext("th", ""): row.findall("td") for row in page.iterfind(".//tbody/tr")}


def names_of(page: ET.Element) -> list[str]:
    return [head.text or "" for head in page.iterfind(".//thead/tr/th")]


@pytest.mark.slow
def test_a_comparison(compared: Path) -> None:
    ran = groupstorm("report", "both", "-o", "page.html", cwd=compared)
    assert ran.returncode == 0, ran.stderr
    assert "page.html" in ran.stdout
    content, page = content_of(compared / "page.html"), shown(compared / "page.html")
    assert page.findtext("header/h1", "").startswith("What does a rolling deploy cost")
    assert [run["name"] for run in content["runs"]] == ["eager", "static"]
    written = json.loads((compared / "both" / "comparison.json").read_text())["answer"]
    assert (page.findtext("header/p[@class='answer']") or "").startswith("Recommendation: ")
    assert all(sentence in written for sentence in answer_of(page))
    assert written.startswith("Recommendation: ")
    assert answer_of(page)[1].startswith("It costs (")
    unowned = figures_of(page)["un-owned time, in all"]
    assert len(unowned) == 2
    assert all(" to " in one.findtext("small", "") for one in unowned)
    assert len(content["points"]) == 4


def test_the_answer_comes_first_then_bars_and_figures_and_none_needs_a_script(compared: Path) -> None:
    groupstorm("report", "both", "-o", "order.html", cwd=compared)
    page = shown(compared / "order.html")
    assert [part.tag for part in page] == ["header", "figure", "section", "noscript", "div"]
    picture = page.find("figure/{*}svg")
    assert picture is not None
    assert picture.get("role") == "img"
    assert picture.findtext("{*}title") == "Un-owned time, in all: median and range of 2 seeds"
    description = picture.findtext("{*}desc", "")
    for name, cell in zip(names_of(page), figures_of(page)["un-owned time, in all"], strict=True):
        median = cell.findtext("strong") or cell.text
        assert f"{name}: {median} ({cell.findtext('small')})" in description


@pytest.mark.slow
def test_the_bars_have_the_figure_that_ranks(compared: Path) -> None:
    wanted = ["--variant", "eager", "--variant", "static", "--rank", "moves", "--seeds", "1"]
    ran = groupstorm("compare", "rolling-deploy", *SMALL, *wanted, "--out", "moves", cwd=compared)
    assert ran.returncode == 0, ran.stderr
    groupstorm("report", "moves", "-o", "moves.html", cwd=compared)
    page = shown(compared / "moves.html")
    assert page.findtext("figure/{*}svg/{*}title") == "Partitions moved"


@pytest.mark.slow
def test_long_names_have_several_lines_and_of_many_runs_those_with_the_least_have_bars(
    compared: Path,
) -> None:
    names = [f"session.timeout.ms={number}0s, heartbeat.interval.ms=3s" for number in range(1, 14)]
    for name in names:
        shutil.copytree(compared / "both" / "eager" / "seed-0", compared / "long" / name)
    groupstorm("report", *(f"long/{name}" for name in names), "-o", "long.html", cwd=compared)
    words = [text.text for text in shown(compared / "long.html").iterfind("figure/{*}svg/{*}text")]
    assert words.count("heartbeat.interval.ms=3s") == 12
    assert words[-1] == "and 1 more, none with less"


def test_one_run_has_no_bars(compared: Path) -> None:
    groupstorm("report", "both/eager/seed-0", "-o", "single.html", cwd=compared)
    assert shown(compared / "single.html").find("figure") is None


def test_the_page_names_no_other_file(compared: Path) -> None:
    groupstorm("report", "both/eager/seed-0", "-o", "one.html", cwd=compared)
    text = (compared / "one.html").read_text("utf-8")
    assert re.findall(r'(?:src|href)="?([^"\s>]+)', text) == []
    assert "default-src 'none'" in text
    assert len(content_of(compared / "one.html")["runs"]) == 1


@pytest.mark.slow
def test_svg_and_markdown(compared: Path, swept: Path) -> None:
    for folder, source in ((compared, "both"), (swept, "s")):
        drawn = groupstorm("report", source, "--svg", cwd=folder)
        assert drawn.returncode == 0, drawn.stderr
        root = ET.fromstring(drawn.stdout)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        inline = groupstorm("report", source, "--markdown", cwd=folder).stdout
        assert inline.startswith("### ")
        assert "<svg" in inline
        beside = groupstorm("report", source, "-o", "pull.md", cwd=folder)
        assert beside.returncode == 0, beside.stderr
        assert "](pull.svg)" in (folder / "pull.md").read_text("utf-8")
        assert ET.fromstring((folder / "pull.svg").read_text("utf-8")).tag == root.tag


def test_markdown_has_the_figures_and_the_command(compared: Path) -> None:
    text = groupstorm("report", "both", "--markdown", cwd=compared).stdout
    assert re.search(r"^\| un-owned time, in all \| .*<br>.* to ", text, re.MULTILINE)
    assert "groupstorm replay both/eager/seed-0" in text


def test_a_run_in_real_time_is_not_offered_for_a_replay(compared: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(compared / "both" / "eager" / "seed-0", run)
    measured = json.loads((run / "measured.json").read_text("utf-8"))
    options = {"on": "jvm", "with": "aiokafka"}
    (run / "measured.json").write_text(json.dumps({"real_time": options} | measured), "utf-8")
    text = groupstorm("report", "run", "--markdown", cwd=tmp_path).stdout
    assert "groupstorm run run/scenario.yaml --on jvm --with aiokafka" in text
    assert "replay" not in text
    refusal = refused(groupstorm("replay", "run", cwd=tmp_path))
    assert "run: ran in real time (--on jvm --with aiokafka): no such run repeats" in refusal


@pytest.mark.slow
def test_a_sweep(swept: Path) -> None:
    ran = groupstorm("report", "s", "-o", "sweep.html", cwd=swept)
    assert ran.returncode == 0, ran.stderr
    (sweep,) = content_of(swept / "sweep.html")["sweeps"]
    assert sweep["axis"] == "session.timeout.ms"
    assert sweep["isNumeric"]
    assert {curve["others"] for curve in sweep["curves"]} == {"variant=static", "variant=eager"}
    assert [point["x"] for point in sweep["curves"][0]["points"]] == [10.0, 20.0, 30.0]
    assert len(sweep["points"]) == 12


@pytest.mark.slow
def test_the_question_of_a_sweep_is_about_what_it_sweeps_over(swept: Path) -> None:
    over = ["--over", "session.timeout.ms=10s,20s", "--seeds", "1"]
    groupstorm("sweep", "rolling-deploy", *SMALL, "--variant", "static", *over, "--out", "one", cwd=swept)
    groupstorm("report", "one", "-o", "one.html", cwd=swept)
    question = shown(swept / "one.html").findtext("header/h1")
    assert question == "Which session.timeout.ms for rolling-deploy (static)?"
    groupstorm("report", "s", "-o", "both.html", cwd=swept)
    question = shown(swept / "both.html").findtext("header/h1")
    assert question is not None
    assert question.startswith("What does a rolling deploy cost")


def test_of_several_groups_the_one_with_the_most_unowned_time_is_named_first(compared: Path) -> None:
    rows = [
        json.loads(line)
        for variant in ("eager", "static")
        for line in (compared / "both" / variant / "seed-0" / "trace.jsonl").read_text().splitlines()
    ]
    half = next(place for place, row in enumerate(rows) if place and row["seq"] == 0)
    for row in rows[half:]:
        row["group"] = "billing"
    both = sorted(rows, key=lambda row: row["time_us"])
    (compared / "groups").mkdir()
    lines = (json.dumps(row | {"seq": number}) for number, row in enumerate(both))
    (compared / "groups" / "trace.jsonl").write_text("".join(f"{line}\n" for line in lines))
    ran = groupstorm("report", "groups", "-o", "groups.html", cwd=compared)
    assert ran.returncode == 0, ran.stderr
    page = shown(compared / "groups.html")
    names, answer = names_of(page), answer_of(page)
    costs = [float("".join(one.itertext()).split()[0]) for one in figures_of(page)["un-owned time, in all"]]
    assert answer[0] == f"Most un-owned time: {names[costs.index(max(costs))]}."
    assert [one.partition(": ")[0] for one in answer[1:]] == names
    patterns = [one.text or "" for one in page.iterfind("header/ul[@class='patterns']/li")]
    assert {one.split(": ")[0] for one in patterns} <= {*names}
    assert patterns


def test_one_group_and_a_window(compared: Path) -> None:
    window = ["--from", "20", "--to", "40", "--group", "storm", "-o", "part.html"]
    ran = groupstorm("report", "both/eager/seed-0", *window, cwd=compared)
    assert ran.returncode == 0, ran.stderr
    (part,) = content_of(compared / "part.html")["runs"]
    assert (part["fromSeconds"], part["toSeconds"]) == (20, 40)


def test_the_answer_on_a_part_is_about_that_part(compared: Path) -> None:
    """comparison.json speaks of the whole runs, and of all seeds."""
    ran = groupstorm("report", "both", "--from", "1", "--to", "5", "-o", "early.html", cwd=compared)
    assert ran.returncode == 0, ran.stderr
    written = json.loads((compared / "both" / "comparison.json").read_text())["answer"]
    answer = answer_of(shown(compared / "early.html"))
    assert answer
    assert not any(sentence in written for sentence in answer if "un-owned" in sentence)
    assert len(content_of(compared / "early.html")["points"]) == 2


def test_runs_that_differ_by_their_seeds_alone_have_no_best_one(compared: Path) -> None:
    seeds = ["both/eager/seed-0", "both/eager/seed-1"]
    assert groupstorm("report", *seeds, "-o", "seeds.html", cwd=compared).returncode == 0
    answer = answer_of(shown(compared / "seeds.html"))
    assert answer[0].startswith("Only the seeds of these runs differ: none is better")
    assert [one.split(": ")[0] for one in answer[1:]] == [
        "Where un-owned time went",
        "Longest gap, under all seeds",
    ]


def test_runs_of_several_scenarios_have_no_question_in_common(compared: Path) -> None:
    groupstorm("run", "cold-start", *SMALL, "--out", "cold", cwd=compared)
    assert groupstorm("report", "both/static", "cold", "-o", "two.html", cwd=compared).returncode == 0
    assert shown(compared / "two.html").findtext("header/h1", "").startswith("What happened in ")
    assert answer_of(shown(compared / "two.html"))[0].startswith(
        "There is no best variant: they differ in what "
    )


def test_an_import_that_does_not_know_owners_has_no_gaps(compared: Path) -> None:
    printed = tool("log_printing", "both/eager/seed-0", "--as", "broker-log", cwd=compared)
    (compared / "server.log").write_text(printed.stdout)
    ran = groupstorm("import", "server.log", "--out", "imported", cwd=compared)
    assert ran.returncode == 0, ran.stderr
    groupstorm("report", "imported", "-o", "imported.html", cwd=compared)
    (run,) = content_of(compared / "imported.html")["runs"]
    assert run["missing"]
    assert run["unknown"]
    assert run["gaps"] == []
    assert not run["ownershipKnown"]
    groupstorm("report", "imported", "both/eager/seed-0", "-o", "beside.html", cwd=compared)
    answer = answer_of(shown(compared / "beside.html"))
    assert answer[0] == "It is not known how long the partitions of imported had no owner."
    assert answer[1].startswith("Under seed-0 partitions were un-owned for ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["both", "--markdown", "--svg"], "--markdown, --svg: one of them at a time"),
        (["both", "-o", "page.txt"], "expected a name that ends in .html or .md or .svg"),
        (["both", "--svg", "-o", "page.html"], "expected a name that ends in .svg"),
        (["both", "-o", "both"], "is a folder: expected the name of a file"),
        (["nowhere"], "nowhere: no such file or folder"),
        (["both", "--group", "g"], "--group g: not in the traces; there are: storm"),
        (["both", "--from", "9", "--to", "3"], "--to 3: expected at least 9"),
    ],
)
def test_refused(compared: Path, arguments: list[str], says: str) -> None:
    assert says in refused(groupstorm("report", *arguments, cwd=compared))


@pytest.mark.slow
def test_a_sweep_has_no_window_and_must_be_one(swept: Path) -> None:
    assert "a sweep has no traces" in refused(groupstorm("report", "s", "--from", "3", cwd=swept))
    (swept / "t").mkdir()
    (swept / "t" / "sweep.json").write_text('{"preset": "x"}')
    assert "over is missing" in refused(groupstorm("report", "t", cwd=swept))


@pytest.mark.slow
def test_the_picture_in_the_documentation(tmp_path: Path) -> None:
    """GROUPSTORM_REWRITE=1 draws it anew."""
    page = (ROOT / "docs" / "report.md").read_text("utf-8")
    section = re.search(r"<!-- commands -->\n```sh\n(.*?)```", page, re.DOTALL)
    assert section is not None
    for line in section[1].splitlines():
        command = shlex.split(line.partition(" > ")[0])
        ran = groupstorm(*command[1:], cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "deploy.html").is_file()
    picture = ROOT / "docs" / "report.svg"
    before = picture.read_text("utf-8")
    if os.environ.get("GROUPSTORM_REWRITE"):
        picture.write_text(ran.stdout, "utf-8")
    assert before == ran.stdout, "docs/report.svg is out of date: run this test with GROUPSTORM_REWRITE=1"
