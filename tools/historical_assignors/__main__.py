"""`./dev assignor-history`: bugs of Kafka's assignors, round by round, before and after."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from groupstorm.assignors import registry
from groupstorm.assignors.check.history import Change
from groupstorm.assignors.check.rendering import step_to_json
from groupstorm.cli.printing import print_json, print_line
from tools.command import run_tool
from tools.historical_assignors.bug_histories import BugHistory, load, names
from tools.historical_assignors.comparison import Side, render, sides


def assignor_history(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE", help="One of our histories, or a YAML file. [default: list ours]"
        ),
    ] = None,
    assignor: Annotated[
        str | None, typer.Option(help="Play it with this assignor alone, one of ours or a plug-in.")
    ] = None,
    as_json: bool = False,
) -> None:
    """Play a history of a group and print which member had and gets which partitions, and what is broken.

    Our histories are bugs of Kafka's assignors. The answers before a correction are recordings of Kafka's own
    classes of an earlier release; the answers after it come from our assignors.
    """
    if name is None:
        _list(as_json)
        return
    story = load(name)
    if assignor is not None:
        registry.get(assignor)  # refuse a wrong name before anything is played
        story = story._replace(assignor=assignor, before=None, after=None, meant="", mend="")
    if as_json:
        print_json(_to_json(story))
        return
    for line in render(story):
        print_line(line)


def _list(as_json: bool) -> None:
    stories = [load(name) for name in names()]
    if as_json:
        fields = ("name", "question", "assignor", "property", "before", "after", "affected")
        print_json([{name: getattr(story, name) for name in fields} for story in stories])
        return
    table = Table(header_style="bold")
    for number, heading in enumerate(("history", "question", "releases")):
        table.add_column(heading, no_wrap=number == 0)
    for story in stories:
        table.add_row(story.name, story.question, story.affected)
    Console().print(table)


def _to_json(story: BugHistory) -> dict[str, object]:
    return {
        "name": story.name,
        "question": story.question,
        "assignor": story.assignor,
        "property": story.property,
        "sides": [_side_to_json(side) for side in sides(story)],
    }


def _side_to_json(side: Side) -> dict[str, object]:
    broken = None if side.broken is None else {"step": side.broken[0], "why": side.broken[1]}
    return {
        "title": side.title,
        "broken": broken,
        "changes": [_change_to_json(change) for change in side.changes],
    }


def _change_to_json(change: Change) -> dict[str, Any]:
    """``{"step", "rounds": [{"generation", "owned", "assigned", "refusal"}]}``, lists in their order."""
    rounds = [
        {
            "generation": round_.generation,
            "owned": round_.owned,
            "assigned": round_.assigned,
            "refusal": round_.refusal,
        }
        for round_ in change.rounds
    ]
    return {"step": step_to_json(change.step), "rounds": rounds}


if __name__ == "__main__":
    run_tool("assignor-history", assignor_history)
