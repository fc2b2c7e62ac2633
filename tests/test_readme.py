"""What the README shows is what the commands print."""

from __future__ import annotations

import re
from pathlib import Path

from groupstorm.report.story import Filter, tell
from groupstorm.report.tables import shown
from groupstorm.storms.figures import compare_answer
from groupstorm.storms.run import Run, run
from groupstorm.storms.scenario import load
from groupstorm.trace.reader import read_rows

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def storm(variant: str, folder: Path) -> Run:
    return run(load("rolling-deploy").resolve(variant, 0, {}), folder / variant)


def test_figures_answer_and_story_are_real(tmp_path: Path) -> None:
    runs = {variant: storm(variant, tmp_path) for variant in load("rolling-deploy").variants}
    rows = re.findall(r"^│ (\w+) +│ +(\S+) │ +(\S+) │ +(\S+) │$", README, re.MULTILINE)
    assert len(rows) >= 8
    for name, *values in rows:
        assert values == [shown(getattr(finished.figures, name)) for finished in runs.values()], name
    answer = compare_answer({variant: finished.figures for variant, finished in runs.items()})
    assert answer in " ".join(README.split())
    wanted = Filter(partition="topic-0-7", to_us=400_000_000)
    story = list(tell(read_rows(runs["cooperative"].folder), wanted))
    assert "\n".join(story[1:]) in README
