"""The table of what people notice is made from the code."""

from __future__ import annotations

from groupstorm.verdicts.measures import MEASURES, Measure, Unit
from tests.generated_pages import check_section


def test_the_measures() -> None:
    """GROUPSTORM_REWRITE=1 writes them anew."""
    lines = ["| `--rank` | figure | a difference is noticed from |", "|---|---|---|"]
    lines += [f"| `{one.key}` | `{one.figure}` | {noticed(one)} |" for one in MEASURES]
    check_section("verdicts.md", "measures", "\n".join(lines))


def noticed(measure: Measure) -> str:
    least = f"{measure.noticed:,.0f}" if measure.unit is Unit.COUNT else measure.show(measure.noticed)
    if not measure.of_records:
        return f"{least} on"
    return f"{least} on, and {measure.of_records * 1e6:,.0f} of a million records processed"
