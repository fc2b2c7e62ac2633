"""Claims of docs/watch.md hold: the example's output, and how late a file may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.visible import wrapped
from groupstorm.watch.rolling import LATE_US, Rolling
from groupstorm.watch.wording import group_line, heading
from groupstorm.wording import seconds
from tests.explain.explaining import storm
from tests.generated_pages import DOCS
from tests.watch.rolling_rows import SECOND, picture_of, rows_of

HOUR_US = 3_600 * SECOND


def test_how_late_a_file_may_be() -> None:
    assert LATE_US / SECOND == 600
    assert seconds(600) == "10 min"


@pytest.mark.slow
def test_the_example(tmp_path: Path) -> None:
    rolling = Rolling(HOUR_US)
    rolling.add(rows_of(storm(tmp_path, "rolling-deploy", "eager", {})))
    picture = picture_of(rolling, rolling.last_us, span_us=HOUR_US, quiet_seconds=0)
    lines = [*wrapped(heading(picture, HOUR_US), 80)]
    for one in picture.groups:
        lines += wrapped(group_line(one), 80)
    assert "```\n" + "\n".join(lines) + "\n```" in (DOCS / "watch.md").read_text("utf-8")
