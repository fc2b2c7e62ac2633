"""What docs/watch.md says: the example's output, and the table of metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.visible import wrapped
from groupstorm.watch.prometheus import METRICS
from groupstorm.watch.rolling import LATE_US, Rolling
from groupstorm.watch.wording import group_line, heading
from groupstorm.wording import seconds
from tests.explain.explaining import storm
from tests.generated_pages import DOCS, check_section
from tests.watch.rolling_rows import SECOND, picture_of, rows_of

HOUR_US = 3_600 * SECOND


def test_the_table_of_metrics() -> None:
    lines = ["| metric | labels | type | |", "|---|---|---|---|"]
    for rule in METRICS:
        name = f"{rule.name}_total" if rule.is_counter else rule.name
        labels = ", ".join(f"`{label}`" for label in rule.labels)
        lines.append(f"| `{name}` | {labels} | {'counter' if rule.is_counter else 'gauge'} | {rule.help} |")
    check_section("watch.md", "metrics", "\n".join(lines))


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
