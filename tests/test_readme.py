"""What the README shows is what the commands print."""

from __future__ import annotations

import pytest

from groupstorm.report.story import Selection, story
from groupstorm.report.tables import figures_grid
from groupstorm.storms.runs.run import Run, run
from groupstorm.storms.runs.several import sentences
from groupstorm.storms.scenario.files import load
from groupstorm.trace.reader import read_rows
from groupstorm.verdicts.comparison import one_run_each
from groupstorm.visible import wrapped
from tests.generated_pages import check_section

README = "../README.md"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder, scenario = tmp_path_factory.mktemp("runs"), load("rolling-deploy")
    return {name: run(scenario.resolve(name, 0, {}), folder / name) for name in scenario.variants}


@pytest.mark.slow
def test_table_and_answer_of_a_comparison(runs: dict[str, Run]) -> None:
    """GROUPSTORM_REWRITE=1 writes them anew."""
    figures = one_run_each({variant: finished.figures for variant, finished in runs.items()})
    answer = sentences({variant: [finished] for variant, finished in runs.items()})
    lines = [line for sentence in answer for line in wrapped(sentence, 80)]
    table = figures_grid("rolling-deploy, seed 0", figures).text(80)
    check_section(README, "compare", block([load("rolling-deploy").question, "", *table, "", *lines]))


@pytest.mark.slow
def test_story_of_a_partition(runs: dict[str, Run]) -> None:
    selection = Selection(partition="topic-0-7", to_us=400_000_000)
    check_section(README, "story", block(list(story(read_rows(runs["cooperative"].folder), selection))))


def block(lines: list[str]) -> str:
    return "\n".join(["```", *lines, "```"])
