"""The tables of the assignors' pages agree with the code.

python -m tests.assignors.test_documented_assignors writes the table of promises anew
"""

from __future__ import annotations

import re
from pathlib import Path

from groupstorm.assignors import registry
from groupstorm.assignors.promises import promises_of
from groupstorm.assignors.streams.leader import ON_A_PLACEMENT, TASK_ASSIGNORS
from groupstorm.assignors.streams.model import Config

DOCS = Path(__file__).resolve().parents[2] / "docs"
CONSUMERS, STREAMS = DOCS / "assignors.md", DOCS / "streams-assignors.md"
BEGIN, END = "<!-- promises: begin -->\n", "<!-- promises: end -->\n"


def promises_table() -> str:
    """Return the table of what every assignor of ours promises, as the page has it."""
    columns = (
        "name",
        "protocols",
        "subscriptions",
        "balance",
        "fewest moves",
        "co-partitioning",
        "member order",
        "leaves out",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name in registry.BUILT_IN:
        assignor = registry.get(name)
        promises = promises_of(assignor)
        why = "" if promises.leaves_out is None else (promises.leaves_out.__doc__ or "").strip()
        cells = (
            f"`{name}`",
            ", ".join(assignor.protocols),
            "equal" if assignor.needs_equal_subscriptions else "any",
            promises.balance or "",
            "yes" if promises.fewest_moves else "",
            promises.co_partitioned or "",
            "any" if promises.any_member_order else "",
            why,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def first_column(page: Path, head: str) -> list[str]:
    """The names in backticks in the first column of the table with that head."""
    table = page.read_text("utf-8").partition(head)[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_the_table_of_promises_is_the_codes() -> None:
    written = CONSUMERS.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    assert written == promises_table()


def test_the_table_of_assignors_names_all_of_ours_in_their_order() -> None:
    assert first_column(CONSUMERS, "| name | source |") == list(registry.BUILT_IN)


def test_the_table_of_task_assignors_names_all_of_them() -> None:
    assert sorted(first_column(STREAMS, "| assignor |")) == sorted([*TASK_ASSIGNORS, *ON_A_PLACEMENT])


def test_the_page_names_every_setting_of_a_streams_case() -> None:
    kafkas = re.findall(
        r"`([a-z_]+)`", STREAMS.read_text("utf-8").partition("## Settings")[2].partition("|")[0]
    )
    assert sorted([*kafkas, *first_column(STREAMS, "| setting |")]) == sorted(Config._fields)


def main() -> None:
    """Write the table of promises anew."""
    page = CONSUMERS.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    CONSUMERS.write_text(before + BEGIN + promises_table() + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
